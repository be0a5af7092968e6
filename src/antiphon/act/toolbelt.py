"""Tools in, what an agent's language model is told of them and each by its name out. Threads: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from antiphon.act.tool import Tool
    from antiphon.core.flow import ToolSpec

MOST_TOOLS = 128  # what the larger hosted models take


class Toolbelt:
    """The tools of one agent, in the order given.

    Raises:
        CallerError: two have one name, there are too many, or one is no `Tool`.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._by_name: dict[str, Tool] = {}
        for tool in tools:
            spec = getattr(tool, "spec", None)
            if spec is None:
                raise CallerError(f"not a tool: {tool!r}", hint="put @tool above the function")
            if spec.name in self._by_name:
                raise CallerError(f"two tools are called {spec.name}", hint="give one of them @tool(name=...)")
            self._by_name[spec.name] = tool
        if len(self._by_name) > MOST_TOOLS:
            raise CallerError(f"{len(self._by_name)} tools are too many", hint=f"give at most {MOST_TOOLS}")

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told."""
        return tuple(tool.spec for tool in self)

    def find(self, name: str) -> Tool | None:
        """The tool of that name, if there is one; a model may ask for others."""
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)
