"""A turn by hand, as it was measured and as it was recorded.

The caller says "I want", is silent from 1000 to 1800 ms, says "a latte." and ends at 2500. The words of a pause are
known 250-300 ms after it, the end mass 50 ms later, the first sound of a reply 250-300 ms after its words, the tone of
voice 50 ms after that. Recorded with waits from 600 to 1000 ms, so that all evidence is there: confirmed at 3100,
heard 20 ms after it began to sound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.dialogue.conversation import SETTINGS, Conversation
from tests.dialogue.test_replay import START, log_of

from antiphon.dialogue.log import StimulusLog
from antiphon.dialogue.stimuli import Timer
from antiphon.lab.result import Outcome, Turn

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.dialogue.log import Log

PATIENT = replace(SETTINGS, shortest_wait_ms=600)
LAG_MS = 20.0
SESSION = "sess_1"


def log(*, twice: bool = False) -> Log:
    """With `twice` the words are those of a quick ear, and a careful one agrees 300 ms later."""
    talk = Conversation(PATIENT)
    talk.speaks(0)
    talk.pauses(1100, 1000)
    talk.transcribed(1300, "I want", provisional=twice)
    talk.mass(1350, 0.02)
    talk.voiced(1600)
    talk.prosody(1650, 0.2)
    if twice:
        talk.corrected(1620, "I want")
    talk.speaks(1800)
    talk.pauses(2600, 2500)
    talk.transcribed(2750, "I want a latte.", provisional=twice)
    talk.mass(2800, 0.9999)
    talk.voiced(3000)
    talk.prosody(3050, 0.95)
    talk.fires(3100, Timer.CONFIRM, talk.state.drafts)
    talk.begins(3100)
    if twice:
        talk.corrected(3120, "I want a latte.", draft=2)
    talk.reply_ends(4100, "Coming up.")
    return log_of(talk.log, replace(START, settings=PATIENT))


def turn(**changes: Any) -> Turn:
    plain: dict[str, Any] = {
        "clip": "a.flac",
        "kind": "hesitation",
        "outcome": Outcome.ANSWERED,
        "started_s": 10.0,
        "v2v_ms": 600 + LAG_MS,
        "session": SESSION,
        "stream_start_s": 0.0,
        "stream_end_s": 2.5,
    }
    return Turn(**{**plain, **changes})


def write_log(folder: Path, session: str = SESSION) -> None:
    """As a server does that records."""
    folder.mkdir(exist_ok=True)
    recorded = log()
    with StimulusLog(folder / f"20260101T000000Z-{session}.jsonl", warn=print) as file:
        file.begin(recorded.start, version="0")
        for step in recorded.steps:
            file.watch(step.stimulus, step.commands)
