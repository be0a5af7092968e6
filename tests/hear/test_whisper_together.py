"""That callers heard at once are heard as they are alone, by the real model on recorded orders."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.hear.doubles import CountedModel
from tests.hear.slots import MENU, orders
from tests.hear.sounds import frames, white

from antiphon.hear.mel import log_mel
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.hear.whisper_model import CTranslate2Model
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from antiphon.core.flow import Pcm, Transcript
    from antiphon.hear.whisper import Hypothesis

pytestmark = [pytest.mark.corpus, pytest.mark.model, pytest.mark.timeout(300)]

CLIPS = 20


@pytest.fixture(scope="module")
def clips(corpus_folder: Path) -> list[Pcm]:
    """Two to six seconds of speech each, a quarter of them in the noise of a cafe."""
    some = [*orders(corpus_folder, "clean")[: CLIPS - 5], *orders(corpus_folder, "noisy")[:5]]
    return [order.pcm[max(0, order.start_samples - 4800) : order.end_samples + 1600] for order in some]


@pytest.fixture
def lane() -> Iterator[ThreadLane]:
    lane = ThreadLane("recognise")
    yield lane
    lane.close()


@pytest.fixture
def counted(whisper: WhisperRecognizer, lane: ThreadLane) -> tuple[CountedModel, WhisperRecognizer]:
    model = CountedModel(whisper._model.library)
    return model, WhisperRecognizer(CTranslate2Model(model), whisper.tokens, lane, whisper.settings)


async def transcript(recognizer: WhisperRecognizer, pcm: Pcm, vocabulary: Sequence[str]) -> Transcript:
    heard = recognizer.open(vocabulary)
    heard.begin(0)
    for frame in frames(pcm):
        heard.feed(frame)
    return await heard.transcribe(len(pcm), final=True)


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", [(), MENU], ids=["plain", "menu"])
def test_twenty_at_once_are_heard_as_alone(
    counted: tuple[CountedModel, WhisperRecognizer], clips: list[Pcm], vocabulary: Sequence[str]
) -> None:
    """Every transcript is equal, down to the probability that its sentence ended; decodings are shared by four."""
    model, recognizer = counted

    async def main() -> tuple[list[Transcript], list[Transcript]]:
        alone = [await transcript(recognizer, pcm, vocabulary) for pcm in clips]
        model.encoded, model.decoded = [], []
        together = await asyncio.gather(*(transcript(recognizer, pcm, vocabulary) for pcm in clips))
        return alone, list(together)

    alone, together = asyncio.run(main())
    assert alone == together
    assert all(each.text for each in alone)
    assert CLIPS == sum(model.encoded)
    assert [4] * (CLIPS // 4) == [size for size in model.decoded if size > 1]


@pytest.mark.parametrize("vocabulary", [(), MENU], ids=["plain", "menu"])
def test_speech_and_noise_at_once(
    counted: tuple[CountedModel, WhisperRecognizer], clips: list[Pcm], vocabulary: Sequence[str]
) -> None:
    """Noise beside speech is still none, whatever the decoder makes of it, and the speech is what it is alone."""
    _, recognizer = counted
    sounds = [clips[0], white(-30, 3.0), clips[1], white(-50, 2.0)]

    async def main() -> tuple[list[Transcript], list[Transcript]]:
        alone = [await transcript(recognizer, pcm, vocabulary) for pcm in sounds]
        together = await asyncio.gather(*(transcript(recognizer, pcm, vocabulary) for pcm in sounds))
        return alone, list(together)

    alone, together = asyncio.run(main())
    assert alone == together
    assert [True, False, True, False] == [bool(each.text) for each in together]


@pytest.mark.parametrize("vocabulary", [(), MENU], ids=["plain", "menu"])
def test_a_short_limit_beside_a_long_one(
    counted: tuple[CountedModel, WhisperRecognizer], clips: list[Pcm], vocabulary: Sequence[str]
) -> None:
    """Who may have three to eight tokens only is cut there, with the words and scores of being alone."""
    _, recognizer = counted
    hints = recognizer.tokens.hints(vocabulary, limit_tokens=100)

    async def main() -> list[tuple[Hypothesis, Hypothesis]]:
        first, second = [await recognizer.encode(log_mel(pcm, 1000)) for pcm in clips[:2]]
        pairs = []
        for sound_s in (0.0, 0.3, 0.5):
            alone = await recognizer.decode(first, before=hints, prefix=(), sound_s=sound_s)
            both = await asyncio.gather(
                recognizer.decode(first, before=hints, prefix=(), sound_s=sound_s),
                recognizer.decode(second, before=hints, prefix=(), sound_s=8.0),
            )
            pairs.append((alone, both[0]))
        return pairs

    for alone, together in asyncio.run(main()):
        assert alone == together


def test_long_turns_of_other_lengths(counted: tuple[CountedModel, WhisperRecognizer], clips: list[Pcm]) -> None:
    """Windows that grow, are parted and go on behind settled text, each at its own pace."""
    _, recognizer = counted
    sounds = [np.concatenate(clips[:8]), np.concatenate(clips[7:10]), np.concatenate(clips[10:13]), clips[13]]

    async def main() -> tuple[list[Transcript], list[Transcript]]:
        alone = [await transcript(recognizer, pcm, ()) for pcm in sounds]
        together = await asyncio.gather(*(transcript(recognizer, pcm, ()) for pcm in sounds))
        return alone, list(together)

    alone, together = asyncio.run(main())
    assert alone == together
    assert len(sounds[0]) > 16 * 16_000
