"""What a run of the lab leaves behind: every turn, what they were measured on, and how.

This is result.json's schema; docs/lab.md says the same in prose. Units: ms where named so, and wall times as seconds
of the caller's monotonic clock since the run began. A latency that is None was not measured, and `outcome` says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = 1


class Outcome(StrEnum):
    """How a turn went; only `answered` turns have a latency, `silent` and `failed` ones count as infinite."""

    ANSWERED = "answered"
    CUT_IN = "cut_in"  # reply sound before the caller's true end
    SILENT = "silent"  # no audible reply within the patience
    FAILED = "failed"  # an error event, or the connection was lost
    REFUSED = "refused"  # the server said that it is full; counted, not part of percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that a caller said, and the answer."""

    clip: str
    kind: str  # clean, noisy, hesitation, or whatever the corpus says
    caller: int = 0
    number: int = 0  # of the caller's turns, from 0
    scenario: str = "single"
    callers: int = 1  # how many were connected at once when it began; a ramp's level
    outcome: Outcome
    started_s: float  # when the first sample was sent
    due_s: float | None = None  # when it should have been sent; a late turn counts from here
    v2v_ms: float | None = None  # last speech sample sent -> first audible sample received, lateness included
    late_ms: float = 0.0  # how far behind its schedule the turn began
    cut_in_ms: float | None = None  # how long before the true end the reply began
    splits: int = 0  # answers to one utterance, less one
    transcript: str = ""  # what the server says it heard
    reply: str = ""  # what it says it said
    slots: Mapping[str, str] = field(default_factory=dict)
    slots_heard: int = 0
    word_errors: int | None = None  # against the reference, where the corpus has one
    words: int | None = None
    reply_ms: float | None = None  # of audible sound
    gaps_ms: tuple[float, ...] = ()  # silences inside the reply because its next sound came late
    stop_ms: float | None = None  # barge-in: from the caller's first sample to the reply's last audible one
    heard_until_ms: float | None = None  # barge-in: of the reply, by the caller's own count
    truncation_error_ms: float | None = None  # barge-in: what the server kept against what was heard
    events_ms: Mapping[str, float] = field(default_factory=dict)  # wire events, ms after the last speech sample
    stages_ms: Mapping[str, float] = field(default_factory=dict)  # the server's own stamps, if it offers them
    error: str = ""
    session: str = ""  # the server's name for the line, as session.created told it
    stream_start_s: float | None = None  # the clip's first sample's place in all that was sent on that line
    stream_end_s: float | None = None  # its last speech sample's


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A whole run, as result.json holds it."""

    schema: int = SCHEMA
    name: str  # of the server measured: "antiphon", "pipecat", or its address
    scenario: str
    settings: Mapping[str, Any]  # all that the command line says
    server: Mapping[str, Any] = field(default_factory=dict)  # what session.created echoes
    machine: Mapping[str, Any] = field(default_factory=dict)  # fingerprint: cpu, cores, system, versions, commit
    load: Mapping[str, Any] = field(default_factory=dict)  # steal, busy_by_others, is_valid
    ruler: Mapping[str, float] = field(default_factory=dict)  # own timing error: p50_ms, p99_ms, max_ms; own cpu share
    turns: tuple[Turn, ...] = ()
    notes: tuple[str, ...] = ()
