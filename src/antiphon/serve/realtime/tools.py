"""`tools` and `tool_choice` in, what the language model is to know of them out.

Pure. What it does not know: the agent's own tools, but for their names.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from antiphon.core.flow import ToolSpec
from antiphon.serve.realtime.errors import MISSING, NOT_SUPPORTED, RefusedError
from antiphon.think.language_model import AUTO, NONE, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Collection

    from antiphon.serve.realtime.fields import Fields

MOST_TOOLS = 128
MOST_SCHEMA_CHARS = 64_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WORDS = (AUTO, NONE, REQUIRED)


def read_tools(fields: Fields, taken: Collection[str]) -> tuple[ToolSpec, ...] | None:
    """The functions in `tools`, none of them named as in `taken`; None if the field is absent.

    Raises:
        RefusedError: a tool is no function, or its name or its schema cannot be.
    """
    listed = fields.objects("tools", most=MOST_TOOLS)
    if listed is None:
        return () if fields.has("tools") else None
    specs: list[ToolSpec] = []
    for tool in listed:
        spec = _read_tool(tool)
        if spec.name in taken or spec.name in {other.name for other in specs}:
            raise RefusedError(f"{tool.at('name')} is taken by another tool", param=tool.at("name"), hint="rename it")
        specs.append(spec)
    return tuple(specs)


def tool_wire(spec: ToolSpec) -> dict[str, object]:
    """A tool as the session's fields have it."""
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
    }


def read_choice(fields: Fields) -> str | None:
    """`tool_choice` as the language model's contract has it; None if the field is absent.

    Raises:
        RefusedError: it is none that there can be.
    """
    if isinstance(fields.values.get("tool_choice"), str):
        return fields.choice("tool_choice", *_WORDS)
    inner = fields.nested("tool_choice")
    if inner is None:
        return AUTO if fields.has("tool_choice") else None
    inner.require("type")
    if inner.text("type") == "mcp":
        raise RefusedError(f"{inner.path}: MCP servers are not supported", code=NOT_SUPPORTED, param=inner.path)
    inner.choice("type", "function")
    inner.require("name")
    return inner.name("name")


def choice_wire(choice: str) -> object:
    """`tool_choice` as the session's fields have it."""
    return choice if choice in _WORDS else {"type": "function", "name": choice}


def check_choice(choice: str, names: Collection[str], param: str) -> None:
    """Raises RefusedError if `choice` cannot be met by tools of these names."""
    if choice in {AUTO, NONE} or choice in names or (choice == REQUIRED and names):
        return
    problem = "no tool is offered" if choice == REQUIRED else "there is no such tool"
    raise RefusedError(
        f"{param} asks for a tool, but {problem}", param=param, hint="offer it in `tools`, or choose auto"
    )


def _read_tool(tool: Fields) -> ToolSpec:
    kind = tool.text("type")
    if kind not in {None, "function"}:
        raise RefusedError(
            f"{tool.at('type')}: only functions are supported", code=NOT_SUPPORTED, param=tool.at("type")
        )
    name = tool.text("name")
    if name is None:
        raise RefusedError(f"{tool.at('name')} is missing", code=MISSING, param=tool.at("name"))
    if not _NAME.fullmatch(name) or name in _WORDS:
        raise RefusedError(
            f"{tool.at('name')} cannot be a tool's name",
            param=tool.at("name"),
            hint="use up to 64 letters, digits, '_' and '-', and none of auto, none, required",
        )
    schema = tool.nested("parameters")
    parameters = {"type": "object", "properties": {}} if schema is None else schema.values
    if parameters.get("type", "object") != "object":
        raise RefusedError(f"{tool.at('parameters')} must be a schema of type object", param=tool.at("parameters"))
    if len(json.dumps(parameters)) > MOST_SCHEMA_CHARS:
        raise RefusedError(
            f"{tool.at('parameters')} has more than {MOST_SCHEMA_CHARS} characters", param=tool.at("parameters")
        )
    return ToolSpec(name=name, description=tool.text("description") or "", parameters={"type": "object", **parameters})
