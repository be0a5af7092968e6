"""A session's fields as the protocol has them: in effect, as the client sees them and as the conversation needs them.

Pure. What it does not know: how a client changes them; see session_update.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.dialogue.options import ReplyOptions
from antiphon.serve.realtime.formats import PCM_24K, WireFormat
from antiphon.serve.realtime.tools import choice_wire, tool_wire
from antiphon.serve.realtime.transcription import first_transcription, hints
from antiphon.serve.realtime.turn_taking import SemanticVad, TurnTaking
from antiphon.serve.realtime.usage import TokenCounter, estimate
from antiphon.think.language_model import AUTO

if TYPE_CHECKING:
    from antiphon.core.flow import ToolSpec
    from antiphon.serve.line import Track
    from antiphon.serve.realtime.outbox import Json
    from antiphon.session import SessionSettings

Modality: TypeAlias = Literal["audio", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSetup:
    """What the server knows of a call before it begins."""

    id: str  # "sess_...", its own among all sessions
    model: str  # what the client asked for
    models: tuple[str, ...] = ()  # names that are accepted as they are; the first is what any other means
    voices: tuple[str, ...] = ()  # the same for voices
    instructions: str = ""  # the agent's, until the client gives others
    max_tokens: int = 96  # of one reply, as long as the client sets no limit of its own
    recognizer: str = "whisper"  # echoed as the transcription's model
    language: str = ""  # that it hears, by its code; empty: unknown, and not echoed
    expires_at_s: int | None = None  # seconds since the epoch
    count_tokens: TokenCounter = estimate
    track: Track | None = None  # that replies sound on; None: their sound goes inside events

    def effective_model(self, wanted: str) -> str:
        """The name of the model that a client gets who wants this one."""
        return wanted if wanted in self.models or not self.models else self.models[0]

    def effective_voice(self, wanted: str | None) -> str:
        """The same for a voice; None wants the default."""
        if wanted is not None and wanted in self.voices:
            return wanted
        return self.voices[0] if self.voices else "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFields:
    """What is in effect."""

    model: str
    voice: str
    instructions: str
    modality: Modality = "audio"
    input_format: WireFormat = PCM_24K
    output_format: WireFormat = PCM_24K
    turn_taking: TurnTaking = None
    transcription: Json | None = None  # None: no transcription events
    tools: tuple[ToolSpec, ...] = ()  # that the client runs
    tool_choice: str = AUTO
    parallel_tool_calls: bool = True
    max_output_tokens: int | None = None  # None: "inf", which is the agent's own limit
    extras: tuple[str, ...] = ()  # events of ours that the client asked for, each named once


def first_fields(setup: CallSetup, settings: SessionSettings) -> SessionFields:
    """What is in effect when a call begins: the agent's own settings."""
    vad = SemanticVad(create_response=settings.answers, interrupt_response=settings.interruptible)
    return SessionFields(
        model=setup.effective_model(setup.model),
        voice=setup.effective_voice(None),
        instructions=setup.instructions,
        modality="text" if settings.usual.is_text else "audio",
        turn_taking=None if settings.by_hand else vad,
        transcription=first_transcription(setup),
        tools=settings.owner_tools,
        tool_choice=settings.usual.tool_choice,
    )


def session_wire(fields: SessionFields, setup: CallSetup) -> Json:
    """The `session` object, complete."""
    session: Json = {
        "type": "realtime",
        "object": "realtime.session",
        "id": setup.id,
        "model": fields.model,
        "instructions": fields.instructions,
        "output_modalities": [fields.modality],
        "audio": {
            "input": {
                "format": fields.input_format.wire,
                "transcription": fields.transcription,
                "noise_reduction": None,  # there is none
                "turn_detection": fields.turn_taking.wire if fields.turn_taking else None,
            },
            "output": {"format": fields.output_format.wire, "voice": fields.voice, "speed": 1.0},
        },
        "tools": [tool_wire(spec) for spec in fields.tools],
        "tool_choice": choice_wire(fields.tool_choice),
        "parallel_tool_calls": fields.parallel_tool_calls,
        "max_output_tokens": fields.max_output_tokens or "inf",
        "truncation": "auto",  # whatever was asked for: the history is cut to fit the model
        "include": list(fields.extras) or None,
        "prompt": None,
        "tracing": None,
    }
    if setup.expires_at_s is not None:
        session["expires_at"] = setup.expires_at_s
    return session


def session_settings(
    fields: SessionFields, setup: CallSetup, agent: SessionSettings, lent: tuple[ToolSpec, ...] = ()
) -> SessionSettings:
    """How the conversation is held by these fields; `agent` is how it was held before the client changed any.

    `lent` are tools of one response alone, which other responses are not offered.
    """
    vad = fields.turn_taking
    return replace(
        agent,
        instructions=fields.instructions,
        vocabulary=tuple(dict.fromkeys((*hints(fields.transcription), *agent.vocabulary))),
        turn=vad.applied(agent.turn) if vad else replace(agent.turn, idle_ms=0),
        ear=vad.heard(agent.ear) if vad else agent.ear,
        max_tokens=fields.max_output_tokens or setup.max_tokens,
        owner_tools=(*(spec for spec in fields.tools if spec.name not in {one.name for one in lent}), *lent),
        interruptible=vad.interrupt_response if vad else agent.interruptible,
        by_hand=vad is None,
        answers=vad.create_response if vad else False,
        usual=ReplyOptions(
            tools=usual_tools(fields, agent) if lent else None,
            tool_choice=fields.tool_choice,
            is_text=fields.modality == "text",
        ),
    )


def usual_tools(fields: SessionFields, agent: SessionSettings) -> tuple[str, ...]:
    """The names of all tools but those that are lent to one response."""
    return (*(tool.spec.name for tool in agent.tools), *(spec.name for spec in fields.tools))
