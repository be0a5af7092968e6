"""`session.update` in: the fields that are in effect afterwards out.

Only fields that are there change; null turns off or goes back to the agent's own. Everything is read before anything
changes, so that a refused update changes nothing.
Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from antiphon.serve.realtime.errors import NOT_SUPPORTED, RefusedError
from antiphon.serve.realtime.extras import EXTRAS
from antiphon.serve.realtime.fields import MOST_SHOWN_CHARS
from antiphon.serve.realtime.formats import PCM_24K, read_format, refuse_former
from antiphon.serve.realtime.tools import check_choice, read_choice, read_tools
from antiphon.serve.realtime.transcription import read_transcription
from antiphon.serve.realtime.turn_taking import read_turn_taking

if TYPE_CHECKING:
    from collections.abc import Collection

    from antiphon.serve.realtime.fields import Fields
    from antiphon.serve.realtime.formats import WireFormat
    from antiphon.serve.realtime.session_fields import CallSetup, Modality, SessionFields

MOST_OUTPUT_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Update:
    """How fields are changed: by whose setup, next to which tools of the agent's own, after which voice."""

    setup: CallSetup
    own_tools: Collection[str]
    heard_voice: str = ""  # the client has heard it, and it stays

    def of(self, now: SessionFields, session: Fields) -> SessionFields:
        """What is in effect after a client has sent `session`.

        Raises:
            RefusedError: a field has a wrong type or value, or asks for what is not there.
        """
        if session.choice("type", "realtime", "transcription") == "transcription":
            raise RefusedError(
                f"{session.at('type')}: transcription sessions are not supported",
                code=NOT_SUPPORTED,
                param=session.at("type"),
                hint="use a session of type realtime",
            )
        after = self._of_audio(now, session)
        after = self._of_model(after, session)
        after = self._of_tools(after, session)
        if session.has("include"):
            after = replace(after, extras=_read_extras(session))
        _look_at_the_rest(session)
        return after

    def _of_model(self, now: SessionFields, session: Fields) -> SessionFields:
        if session.has("model"):
            now = replace(now, model=self.setup.effective_model(session.text("model") or self.setup.model))
        if session.has("instructions"):
            instructions = session.text("instructions")
            now = replace(now, instructions=self.setup.instructions if instructions is None else instructions)
        if session.has("output_modalities"):
            now = replace(now, modality=read_modality(session) or "audio")
        if session.has("max_output_tokens"):
            now = replace(now, max_output_tokens=read_most_tokens(session))
        return now

    def _of_tools(self, now: SessionFields, session: Fields) -> SessionFields:
        tools = read_tools(session, self.own_tools)
        choice = read_choice(session)
        parallel = session.flag("parallel_tool_calls")
        now = replace(
            now,
            tools=now.tools if tools is None else tools,
            tool_choice=now.tool_choice if choice is None else choice,
            parallel_tool_calls=now.parallel_tool_calls if parallel is None else parallel,
        )
        if tools is not None or choice is not None:
            names = {*self.own_tools, *(spec.name for spec in now.tools)}
            check_choice(now.tool_choice, names, session.at("tool_choice"))
        return now

    def _of_audio(self, now: SessionFields, session: Fields) -> SessionFields:
        audio = session.nested("audio")
        if audio is None:
            return now
        if (sound := audio.nested("input")) is not None:
            now = self._of_input(now, sound)
        if (sound := audio.nested("output")) is not None:
            sound.number("speed", 0.25, 1.5)
            now = replace(now, output_format=_read_format(sound, now.output_format))
            if sound.has("voice"):
                voice = self.setup.effective_voice(read_voice(sound))
                if voice != now.voice:
                    check_voice(voice, self.heard_voice, sound)
                now = replace(now, voice=voice)
        return now

    def _of_input(self, now: SessionFields, sound: Fields) -> SessionFields:
        now = replace(now, input_format=_read_format(sound, now.input_format))
        if (noise := sound.nested("noise_reduction")) is not None:
            noise.choice("type", "near_field", "far_field")
            noise.number("strength", 0.0, 1.0)
        if sound.has("transcription"):
            now = replace(now, transcription=read_transcription(self.setup, now.transcription, sound))
        if sound.is_null("turn_detection"):
            return replace(now, turn_taking=None)
        if (detection := sound.nested("turn_detection")) is not None:
            now = replace(now, turn_taking=read_turn_taking(detection, now.turn_taking))
        return now


def read_modality(fields: Fields) -> Modality | None:
    """`output_modalities`: exactly one; None if it is absent or null.

    Raises:
        RefusedError: it holds neither audio nor text, or both.
    """
    wanted = fields.texts("output_modalities", most=2)
    if wanted is None:
        return None
    match wanted:
        case ["audio"]:
            return "audio"
        case ["text"]:
            return "text"
        case _:
            path = fields.at("output_modalities")
            raise RefusedError(f"{path} cannot be that", param=path, hint='use ["audio"] or ["text"]')


def read_most_tokens(fields: Fields) -> int | None:
    """`max_output_tokens`; None for "inf", absent and null.

    Raises:
        RefusedError: it is no number in range.
    """
    if fields.values.get("max_output_tokens") == "inf":
        return None
    return fields.whole("max_output_tokens", 1, MOST_OUTPUT_TOKENS)


def read_voice(fields: Fields) -> str | None:
    """`voice`, by name or as an object with an id.

    Raises:
        RefusedError: it is neither.
    """
    if isinstance(fields.values.get("voice"), dict):
        inner = fields.nested("voice")
        assert inner is not None
        inner.require("id")
        return inner.text("id")
    return fields.text("voice")


def check_voice(voice: str, heard: str, fields: Fields) -> None:
    """Raises RefusedError if another voice has been heard already."""
    if heard and voice != heard:
        raise RefusedError(
            f"{fields.at('voice')}: another voice has been heard in this session",
            code="cannot_update_voice",
            param=fields.at("voice"),
            hint="choose the voice before the first response, or open another session",
        )


def refuse_prompt(fields: Fields) -> None:
    """Raises RefusedError if a prompt template is asked for."""
    if fields.nested("prompt") is not None:
        path = fields.at("prompt")
        raise RefusedError(f"{path}: there are no prompt templates here", code=NOT_SUPPORTED, param=path)


def check_reasoning(fields: Fields) -> None:
    """Raises RefusedError if `reasoning`, which has no effect, asks for an effort that there is not."""
    reasoning = fields.nested("reasoning")
    if reasoning is not None:
        reasoning.choice("effort", "minimal", "low", "medium", "high", "xhigh")


def _read_format(sound: Fields, now: WireFormat) -> WireFormat:
    if sound.is_null("format"):
        return PCM_24K
    wanted = sound.nested("format")
    return now if wanted is None else read_format(wanted, now)


def _read_extras(session: Fields) -> tuple[str, ...]:
    """`include`: which events of ours are wanted, which is all that there is to be had."""
    wanted = session.texts("include", most=10) or []
    for name in wanted:
        if name not in EXTRAS:
            path = session.at("include")
            raise RefusedError(
                f"{path}: there is no {name[:MOST_SHOWN_CHARS]!r} here",
                code=NOT_SUPPORTED,
                param=path,
                hint=f"leave it out, or use one of {', '.join(EXTRAS)}",
            )
    return tuple(dict.fromkeys(wanted))


def _look_at_the_rest(session: Fields) -> None:
    """Fields that change nothing here: each must be what it can be, and may not ask for what would be missed."""
    refuse_former(session)
    refuse_prompt(session)
    check_reasoning(session)
    if isinstance(session.values.get("tracing"), str):
        session.choice("tracing", "auto")
    else:
        session.nested("tracing")
    _look_at_truncation(session)


def _look_at_truncation(session: Fields) -> None:
    path = session.at("truncation")
    if isinstance(session.values.get("truncation"), str):
        if session.choice("truncation", "auto", "disabled") == "disabled":
            raise RefusedError(
                f"{path}: the history is always cut to fit the model", code=NOT_SUPPORTED, param=path, hint="use auto"
            )
        return
    wanted = session.nested("truncation")
    if wanted is None:
        return
    wanted.require("type")
    wanted.require("retention_ratio")
    wanted.choice("type", "retention_ratio")
    wanted.number("retention_ratio", 0.0, 1.0)
    if (limits := wanted.nested("token_limits")) is not None:
        limits.whole("post_instructions", 0, 10_000_000)
