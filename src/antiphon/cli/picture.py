"""A finished conversation in, timeline.png out: who spoke when, then each turn's waterfall under its own sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from antiphon.core.clock import MILLISECOND_NS
from antiphon.observe.conversation import CallerTurn, Conversation, OurReply, ToolUse, draw_conversation
from antiphon.observe.picture import PAPER, Sound, draw
from antiphon.observe.waterfall import layout, origin_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from antiphon.cli.rehearsal import Rehearsal, ReplyResult, TurnResult
    from antiphon.core.stamps import TurnTimeline

STEP_MS = 5  # one value of the envelope
QUIETEST_PEAK = 0.1  # a side that never is louder stays small; a louder one fills its lane


def draw_turns(rehearsal: Rehearsal, path: Path) -> None:
    """Draw every turn that was measured, and above them the conversation, unless it is a single turn.

    Raises:
        CallerError: the file cannot be written.
    """
    timelines = [turn.timeline for turn in rehearsal.turns if turn.timeline]
    left, right = rehearsal.recording.stereo()
    rate_hz = rehearsal.recording.rate_hz
    sounds = {}
    for timeline in timelines:
        origin_ms = _origin_ms(timeline, rehearsal.first_frame_ns or 0)
        caller, reply = (_envelope(track, rate_hz, origin_ms) for track in (left, right))
        sounds[timeline.turn] = Sound(caller=caller, reply=reply)
    draw([layout(timeline) for timeline in timelines], path, sounds=sounds)
    if len(rehearsal.turns) > 1 or len(rehearsal.replies) > 1:
        _put_above(path, draw_conversation(conversation_of(rehearsal)))


def conversation_of(rehearsal: Rehearsal) -> Conversation:
    """The rehearsal as the strip shows it: ms since the first frame."""
    left, right = rehearsal.recording.stereo()
    rate_hz = rehearsal.recording.rate_hz
    since = _Since(rehearsal.first_frame_ns or 0)
    return Conversation(
        length_ms=max(len(left) * 1000 / rate_hz, 1.0),
        turns=[_turn(turn, rehearsal.replies, since) for turn in rehearsal.turns],
        replies=[_reply(reply, since) for reply in rehearsal.replies],
        tools=[
            ToolUse(start_ms=since.ms(tool.started_ns), end_ms=since.ms(tool.at_ns), name=tool.name, failed=tool.failed)
            for tool in rehearsal.tools
        ],
        caller=_filled(_envelope(left, rate_hz, 0.0)),
        ours=_filled(_envelope(right, rate_hz, 0.0)),
    )


@dataclass(frozen=True, slots=True)
class _Since:
    """Moments of the clock to ms since the conversation began."""

    origin_ns: int

    def ms(self, at_ns: int) -> float:
        return (at_ns - self.origin_ns) / MILLISECOND_NS

    def spans_ms(self, spans: Sequence[tuple[int, int | None]], end_ns: int) -> tuple[tuple[float, float], ...]:
        return tuple((self.ms(start), self.ms(end_ns if end is None else end)) for start, end in spans)


def _turn(turn: TurnResult, replies: Sequence[ReplyResult], since: _Since) -> CallerTurn:
    sounds_ns = next(
        (reply.began_ns for reply in replies if reply.turn == turn.turn and reply.began_ns >= turn.confirmed_ns), None
    )
    return CallerTurn(
        start_ms=since.ms(turn.began_ns),
        end_ms=since.ms(turn.ended_ns),
        text=turn.text,
        decided_ms=since.ms(turn.confirmed_ns),
        sound_ms=None if sounds_ns is None else since.ms(sounds_ns),
    )


def _reply(reply: ReplyResult, since: _Since) -> OurReply:
    end_ns = reply.silent_since_ns
    return OurReply(
        start_ms=since.ms(reply.began_ns),
        end_ms=since.ms(end_ns),
        heard=reply.heard,
        unheard="..." if reply.interrupted else "",  # what it would have gone on with is told to nobody
        is_cut=reply.interrupted,
        soft=since.spans_ms(reply.soft_ns, end_ns),
        silent=since.spans_ms(reply.held_ns, end_ns),
    )


def _put_above(path: Path, strip: Image.Image) -> None:
    """The strip on top of the picture that lies there already."""
    with Image.open(path) as below:
        page = Image.new("RGB", (max(strip.width, below.width), strip.height + below.height), PAPER)
        page.paste(strip, (0, 0))
        page.paste(below, (0, strip.height))
    page.save(path, "PNG")


def _origin_ms(timeline: TurnTimeline, first_frame_ns: int) -> float:
    """Where on the recording the turn's last speech sample lies."""
    return (origin_of(timeline) - first_frame_ns) / MILLISECOND_NS


def _envelope(track: npt.NDArray[np.int16], rate_hz: int, origin_ms: float) -> Sequence[tuple[float, float]]:
    """(ms from the turn's last speech sample, level 0 to 1) every STEP_MS."""
    step = rate_hz * STEP_MS // 1000
    whole = track[: len(track) // step * step].reshape(-1, step)
    peaks = np.abs(whole.astype(np.int32)).max(axis=1) / 32768
    return [(place * STEP_MS - origin_ms, float(peak)) for place, peak in enumerate(peaks)]


def _filled(levels: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """The levels, scaled so that the loudest fills its lane."""
    loudest = max([QUIETEST_PEAK, *(level for _, level in levels)])
    return [(at_ms, level / loudest) for at_ms, level in levels]
