"""What a run of the lab is asked to measure: the server, the callers, what they say and over which line.

The command line makes a plan, `measure` carries it out, and its settings stand in the result. Units: as each name says.
It does not know how anything is measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from antiphon.core.errors import CallerError, check_range

MOST_CALLERS = 1000
MOST_TURNS = 100_000
FORMATS = ("audio/pcm", "audio/pcmu", "audio/pcma")


class TurnDetection(StrEnum):
    """Who decides that a turn is over, as the protocol names it."""

    DEFAULT = "default"  # nothing is asked for: as the server comes
    SEMANTIC = "semantic_vad"
    SERVER = "server_vad"
    BY_HAND = "none"  # the caller says so, who knows it from the corpus: what remains is the answer alone


class Eagerness(StrEnum):
    """Of `semantic_vad`."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The network between caller and server, as the lab plays it on top of the real one; in both directions."""

    delay_ms: Annotated[float, "one way"] = 0.0
    jitter_ms: Annotated[float, "at most this much on top of the delay, packets kept in order"] = 0.0
    loss: Annotated[float, "0 to 1: the share of messages that come a retransmission later, as over TCP"] = 0.0

    def __post_init__(self) -> None:
        check_range("--delay-ms", self.delay_ms, 0, 5000)
        check_range("--jitter-ms", self.jitter_ms, 0, 5000)
        check_range("--loss", self.loss, 0, 0.5)

    @property
    def is_plain(self) -> bool:
        """Whether it changes nothing."""
        return not (self.delay_ms or self.jitter_ms or self.loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWishes:
    """What each caller asks the server for; what is None or empty is not mentioned to it."""

    turn_detection: TurnDetection = TurnDetection.DEFAULT
    eagerness: Eagerness | None = None
    silence_ms: Annotated[int | None, "of server_vad"] = None
    vocabulary: Annotated[str, "words that callers will say, as the transcription's prompt"] = ""
    instructions: str | None = None
    voice: str | None = None
    format: Annotated[str, "of the sound in both directions"] = "audio/pcm"

    def __post_init__(self) -> None:
        if self.silence_ms is not None:
            check_range("--silence-ms", self.silence_ms, 20, 10_000)
        if self.silence_ms is not None and self.turn_detection is not TurnDetection.SERVER:
            raise CallerError("--silence-ms belongs to server_vad", hint="leave --eagerness out, or --silence-ms")
        if self.eagerness is not None and self.turn_detection is not TurnDetection.SEMANTIC:
            raise CallerError("--eagerness belongs to semantic_vad", hint="leave --silence-ms out, or --eagerness")
        if self.format not in FORMATS:
            raise CallerError(f"--format is {self.format!r}", hint=f"use one of {', '.join(FORMATS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """One run. Without a `url` the lab starts a server of our own and ends it afterwards."""

    url: Annotated[str | None, "ws:// or wss://; None: start `antiphon serve` with own_server"] = None
    key: Annotated[str | None, "bearer token"] = field(default=None, repr=False)
    own_server: Annotated[tuple[str, ...], "more arguments of `antiphon serve`"] = ()
    name: Annotated[str, "of the server in the report; empty: 'antiphon' or the address"] = ""
    corpus: Annotated[Path | None, "folder with manifest.jsonl; None: the few clips that come along"] = None
    kinds: Annotated[tuple[str, ...], "empty: all that the corpus has"] = ()
    callers: Annotated[int, "at once; each has a connection of its own"] = 1
    turns: Annotated[int | None, "in all, over all callers; None: each chosen clip once"] = None
    scenario: str = "single"
    seed: Annotated[int, "of the clips' order and the callers' starts"] = 0
    patience_s: Annotated[float, "from a turn's true end; without an audible reply by then it is silent"] = 10.0
    wishes: SessionWishes = field(default_factory=SessionWishes)
    line: Line = field(default_factory=Line)
    ramp_limit: Annotated[int, "most callers that the ramp goes up to"] = 64
    soak_minutes: Annotated[float, "how long the soak scenario goes on"] = 30.0
    wants_stamps: Annotated[bool, "ask the server for its stages' stamps; others ignore it"] = True
    out: Annotated[Path | None, "folder of result.json and the report"] = None

    def __post_init__(self) -> None:
        check_range("--callers", self.callers, 1, MOST_CALLERS)
        if self.turns is not None:
            check_range("--turns", self.turns, 1, MOST_TURNS)
        check_range("--patience-s", self.patience_s, 0.5, 120)
        check_range("--ramp-limit", self.ramp_limit, 1, MOST_CALLERS)
        check_range("--soak-minutes", self.soak_minutes, 0.1, 24 * 60)
        if self.url is not None and not self.url.startswith(("ws://", "wss://")):
            raise CallerError(f"the address is {self.url!r}", hint="it begins with ws:// or wss://")
        if self.url is not None and self.own_server:
            raise CallerError(
                "settings of our own server do not reach the one at --url",
                hint="leave --agent, --set, --config and --without out, or --url",
            )

    @property
    def shown_name(self) -> str:
        """The server's name in the result."""
        return self.name or self.url or "antiphon"

    def settings(self) -> dict[str, Any]:
        """All of it as JSON takes it, the key left out: `Run.settings`."""
        plain = asdict(self)
        plain["has_key"] = plain.pop("key") is not None
        return {name: _as_json(value) for name, value in plain.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return [_as_json(inner) for inner in value]
    return str(value) if isinstance(value, (Path, StrEnum)) else value
