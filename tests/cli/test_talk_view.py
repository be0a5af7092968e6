"""What a person sees of a conversation by sound card, and the figures that are kept of it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from antiphon.audio.card.notes import Note, read_note
from antiphon.cli.talk import percentiles_ms
from antiphon.cli.talk_view import TalkView
from antiphon.core.errors import PeerError
from antiphon.core.flow import AudioFrame
from antiphon.dialogue.turn_end import Evidence
from antiphon.session.events import ReplyFinished, ReplyStarted, TurnConfirmed, TurnStarted

pytestmark = pytest.mark.unit

MS = 1_000_000


@pytest.fixture
def view():
    return TalkView(Console(file=io.StringIO(), width=200))


def printed(view):
    return view._console.file.getvalue()


def answered(view, *, turn=1, silence_ms=300, at_ms=1000, started_ms=1100):
    view.tell(TurnStarted(turn=turn, at_ns=0, start_samples=0))
    view.tell(
        TurnConfirmed(
            turn=turn, at_ns=at_ms * MS, text="One latte.", posterior=0.9, evidence=Evidence(text="One latte."),
            silence_ns=silence_ms * MS, end_samples=1, forced=False,
        )
    )  # fmt: skip
    sounding = {"due_ns": started_ms * MS, "heard_ns": (started_ms + 25) * MS, "position": 0}
    view.note(Note(what="sounding", side="out", numbers=sounding))
    view.tell(ReplyStarted(turn=turn, reply=1, at_ns=started_ms * MS))


def test_a_turn_s_latency_counts_from_the_last_word_to_what_is_heard(view):
    """400 ms until the reply was due, 25 more until the loudspeaker said it."""
    answered(view)

    (turn,) = view.turns
    assert (400 * MS, 25 * MS) == (turn.session_ns, turn.loudspeaker_ns)
    assert "last answer 425 ms after your last word" in view.picture().plain


def test_what_was_heard_of_a_reply_is_kept(view):
    answered(view)
    view.tell(ReplyFinished(turn=1, reply=1, at_ns=2000 * MS, heard="Coming up.", interrupted=False))

    assert ("One latte.", "Coming up.") == (view.turns[0].text, view.turns[0].reply)


def test_a_greeting_is_no_answer(view):
    view.tell(ReplyStarted(turn=0, reply=1, at_ns=5))
    assert [] == view.turns


def test_levels_rise_at_once_and_fall_slowly(view):
    """Half of full scale is -6 dBFS: nine tenths of the bar."""
    view.hears(AudioFrame(np.full(320, 0.5, np.float32), 16_000, 0, 0))
    loud = view.picture().plain.count("█")
    view.hears(AudioFrame(np.zeros(320, np.float32), 16_000, 320, 20 * MS))

    assert loud == 22
    assert 18 <= view.picture().plain.count("█") < loud


def test_devices_policy_and_trouble_are_said_once_each(view):
    form = {"rate_hz": 16_000, "channels": 1, "period": 85, "buffer": 340}
    view.note(Note(what="ready", text="the audio thread runs under SCHED_FIFO, memory locked"))
    view.note(Note(what="opened", side="in", text="alsa: default", numbers=form))
    view.note(Note(what="gone", side="out"))
    view.note(Note(what="lost", side="in", numbers={"count": 3}))

    assert "microphone: alsa: default, 16 kHz, 1 ch, periods of 5.3 ms" in printed(view)
    assert "loudspeaker: gone" in printed(view)
    assert "SCHED_FIFO" in view.policy
    assert "xruns 3 in, 0 out" in view.picture().plain


def test_percentiles():
    assert {"count": 0} == percentiles_ms([])
    assert {"p50": 2.0, "p99": 3.0, "worst": 3.0, "count": 3} == percentiles_ms([3 * MS, 1 * MS, 2 * MS])


def test_a_note_goes_through_the_ring_and_rubbish_does_not():
    note = Note(what="tuned", side="in", numbers={"period": 512})
    assert note == read_note(note.packed())
    with pytest.raises(PeerError):
        read_note(b"{]")
