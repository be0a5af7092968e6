"""What is heard of recorded orders, streamed as a caller would send them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.hear.slots import MENU, heard, loops, orders
from tests.hear.sounds import frames

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.hear.slots import Order

    from antiphon.core.flow import Transcript
    from antiphon.hear.recognizer import Recognizer

pytestmark = [pytest.mark.corpus, pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(900)]

RUN_UP = 4800  # 300 ms, as voice detection pads
AFTER = 1600  # 100 ms into the silence, when a reply is first thought of


async def transcripts(recognizer: Recognizer, order: Order, step_samples: int) -> list[Transcript]:
    """Hypotheses every `step_samples` of the speech, and the final one."""
    recognition = recognizer.open(MENU)
    begin, end = max(0, order.start_samples - RUN_UP), order.end_samples + AFTER
    due = begin + step_samples
    recognition.begin(begin)
    found = []
    for frame in frames(order.pcm[:end]):
        recognition.feed(frame)
        if frame.end_samples >= due:
            found.append(await recognition.transcribe(frame.end_samples, final=False))
            due += step_samples
    return [*found, await recognition.transcribe(end, final=True)]


def all_transcripts(
    recognizer: Recognizer, some: Sequence[Order], step_samples: int
) -> list[tuple[Order, list[Transcript]]]:
    return [(order, asyncio.run(transcripts(recognizer, order, step_samples))) for order in some]


@pytest.mark.parametrize("kind", ["clean", "hesitation", "noisy"])
def test_no_hypothesis_loops_and_stable_text_stays(recognizer: Recognizer, corpus_folder: Path, kind: str) -> None:
    """At every point of every clip; of clean orders, with the menu known, at least 0.88 of the slots are heard."""
    right = total = 0
    for order, found in all_transcripts(recognizer, orders(corpus_folder, kind), 12_800):
        stable = ""
        for transcript in found:
            assert not loops(transcript.text), (order.name, transcript.text)
            # The transcript after a pause may correct what was stable.
            assert transcript.is_final or transcript.text.startswith(stable), order.name
            stable = transcript.text[: transcript.stable_chars]
        right += sum(heard(slot, found[-1].text) for slot in order.slots.values())
        total += len(order.slots)
    print(f"{kind}: {right} of {total} slots, {right / total:.3f}")
    assert right / total >= (0.88 if kind == "clean" else 0.6)


def test_ends_are_marked_more_probably_than_pauses(recognizer: Recognizer, corpus_folder: Path) -> None:
    """Of twelve orders with a hesitation, at least ten have the higher probability at their true end."""

    async def probabilities(order: Order) -> list[float]:
        found = []
        for pos in (order.pauses[0][0], order.end_samples):
            recognition = recognizer.open(MENU)
            recognition.begin(max(0, order.start_samples - RUN_UP))
            for frame in frames(order.pcm[: pos + AFTER]):
                recognition.feed(frame)
            transcript = await recognition.transcribe(pos + AFTER, final=True)
            found.append(transcript.end_probability or 0.0)
        return found

    some = [order for order in orders(corpus_folder, "hesitation") if order.pauses][:12]
    pairs = [asyncio.run(probabilities(order)) for order in some]
    assert sum(end > pause for pause, end in pairs) >= 10
