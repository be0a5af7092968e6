"""`response.create` in, the plan of a response out: the session's fields, and what is particular to this one.

Pure but for the names it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.dialogue.options import ReplyOptions
from antiphon.serve.realtime.errors import NOT_SUPPORTED, RefusedError
from antiphon.serve.realtime.fields import Fields
from antiphon.serve.realtime.formats import PCM_24K, read_format, refuse_former
from antiphon.serve.realtime.response import Plan
from antiphon.serve.realtime.session_update import (
    check_reasoning,
    check_voice,
    read_modality,
    read_most_tokens,
    read_voice,
    refuse_prompt,
)
from antiphon.serve.realtime.tools import check_choice, read_choice, read_tools

if TYPE_CHECKING:
    from antiphon.core.flow import ToolSpec
    from antiphon.serve.realtime.call_state import CallState

MOST_METADATA = 16
MOST_KEY_CHARS = 64
MOST_VALUE_CHARS = 512


def plan_as_usual(state: CallState, options: ReplyOptions) -> Plan:
    """Of a response that nobody asked for in particular."""
    fields = state.fields
    return Plan(
        id=state.outbox.ids.new("resp"),
        options=options,
        modality="text" if options.is_text else "audio",
        voice=fields.voice,
        output_format=fields.output_format,
        max_output_tokens=fields.max_output_tokens,
        parallel_tool_calls=fields.parallel_tool_calls,
        stage="given",
    )


def read_plan(state: CallState, event: Fields) -> tuple[Plan, tuple[ToolSpec, ...]]:
    """What the client asks for, and the tools that only this response is to have.

    Raises:
        RefusedError: a field has a wrong type or value, or asks for what is not there.
    """
    wanted = event.nested("response") or Fields({}, "response")
    _refuse_apart(wanted)
    fields = state.fields
    modality = read_modality(wanted) or fields.modality
    most_tokens = read_most_tokens(wanted) if wanted.has("max_output_tokens") else fields.max_output_tokens
    parallel = wanted.flag("parallel_tool_calls")
    check_reasoning(wanted)
    refuse_former(wanted)
    lent, names = _read_tools(state, wanted)
    choice = read_choice(wanted) or fields.tool_choice
    check_choice(choice, names, wanted.at("tool_choice"))
    output_format, voice = fields.output_format, fields.voice
    audio = wanted.nested("audio")
    if audio is not None and (sound := audio.nested("output")) is not None:
        inner = sound.nested("format")
        output_format = read_format(inner, PCM_24K) if inner is not None else output_format
        wanted_voice = read_voice(sound)
        voice = voice if wanted_voice is None else state.setup.effective_voice(wanted_voice)
        if voice != fields.voice:
            check_voice(voice, state.heard_voice, sound)
    instructions, metadata = wanted.text("instructions"), _read_metadata(wanted)
    name = state.outbox.ids.new("resp")
    options = ReplyOptions(
        instructions=instructions,
        tools=names,
        tool_choice=choice,
        max_tokens=most_tokens,
        is_text=modality == "text",
        label=name,
    )
    plan = Plan(
        id=name,
        options=options,
        modality=modality,
        voice=voice,
        output_format=output_format,
        max_output_tokens=most_tokens,
        metadata=metadata,
        parallel_tool_calls=fields.parallel_tool_calls if parallel is None else parallel,
    )
    return plan, lent


def _refuse_apart(wanted: Fields) -> None:
    """Responses apart from the conversation are not there yet."""
    conversation = wanted.text("conversation")
    if conversation == "none":
        raise RefusedError(
            f"{wanted.at('conversation')}: responses outside the conversation are not supported",
            code=NOT_SUPPORTED,
            param=wanted.at("conversation"),
        )
    if conversation not in {None, "auto"}:
        raise RefusedError(
            f"{wanted.at('conversation')} cannot be that", param=wanted.at("conversation"), hint="use auto"
        )
    if wanted.listed("input", most=10_000) is not None:
        raise RefusedError(
            f"{wanted.at('input')}: a response with an input of its own is not supported",
            code=NOT_SUPPORTED,
            param=wanted.at("input"),
            hint="add items to the conversation instead",
        )
    refuse_prompt(wanted)


def _read_tools(state: CallState, wanted: Fields) -> tuple[tuple[ToolSpec, ...], tuple[str, ...]]:
    """Tools that the session does not have as they are here, and the names of all that may be used."""
    tools = read_tools(wanted, state.own_tools)
    known = state.fields.tools if tools is None else tools
    lent = tuple(spec for spec in known if spec not in state.fields.tools)
    return lent, (*sorted(state.own_tools), *(spec.name for spec in known))


def _read_metadata(wanted: Fields) -> dict[str, str] | None:
    inner = wanted.nested("metadata")
    if inner is None:
        return None
    metadata: dict[str, str] = {}
    for key in inner.values:
        value = inner.text(key, most_chars=MOST_VALUE_CHARS)
        if len(key) > MOST_KEY_CHARS or value is None:
            path = wanted.at("metadata")
            raise RefusedError(f"a key of {path} is too long or has no value", param=path)
        metadata[key] = value
    if len(metadata) > MOST_METADATA:
        raise RefusedError(f"{inner.path} has {len(metadata)} pairs, {MOST_METADATA} are possible", param=inner.path)
    return metadata
