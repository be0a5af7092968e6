"""Which callers' calls of the model are made together, by a model that echoes what it was given."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.hear.byte_tokens import byte_tokens
from tests.hear.doubles import CountedModel, EchoModel

from antiphon.core.errors import EngineError
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.hear.whisper_model import CTranslate2Model
from antiphon.hear.whisper_settings import WhisperSettings
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from antiphon.hear.mel import Mel
    from antiphon.hear.whisper import Hypothesis

pytestmark = pytest.mark.unit

TOKENS = byte_tokens("en", is_multilingual=False)


@pytest.fixture
def lane() -> Iterator[ThreadLane]:
    lane = ThreadLane("recognise")
    yield lane
    lane.close()


def made(lane: ThreadLane, echo: EchoModel) -> tuple[CountedModel, WhisperRecognizer]:
    model = CountedModel(echo)
    return model, WhisperRecognizer(CTranslate2Model(model), TOKENS, lane, WhisperSettings())


def tone(number: int, *, columns: int = 1000) -> Mel:
    """Sound whose loudest bin is this one."""
    logs = np.full((columns, 80), -5.0, np.float32)
    logs[:, number] = 0.0
    return logs


async def hears(
    recognizer: WhisperRecognizer,
    number: int,
    *,
    columns: int = 1000,
    before: Sequence[int] = (),
    prefix: Sequence[int] = (),
    sound_s: float = 3.0,
) -> Hypothesis:
    encoded = await recognizer.encode(tone(number, columns=columns))
    return await recognizer.decode(encoded, before=before, prefix=prefix, sound_s=sound_s)


def texts(found: Sequence[Hypothesis]) -> list[str]:
    return [TOKENS.decode(each.tokens).strip() for each in found]


async def two(recognizer: WhisperRecognizer) -> list[str]:
    return texts(await asyncio.gather(hears(recognizer, 20), hears(recognizer, 30)))


@pytest.mark.parametrize(("most", "encoded"), [(1, [1, 1]), (16, [2])])
def test_two_who_wait_share_a_decoding(lane: ThreadLane, most: int, encoded: list[int]) -> None:
    """One call for both, and each hears its own sound; one call of the encoder as well, if the model likes company."""
    model, recognizer = made(lane, EchoModel(TOKENS))
    recognizer.encode_most = most
    assert ["w20", "w30"] == asyncio.run(two(recognizer))
    assert (encoded, [2]) == (model.encoded, model.decoded)


def test_no_more_than_four_share_a_decoding(lane: ThreadLane) -> None:
    """The fifth one goes on its own."""
    model, recognizer = made(lane, EchoModel(TOKENS))

    async def main() -> list[str]:
        return texts(await asyncio.gather(*(hears(recognizer, number) for number in range(10, 15))))

    assert ["w10", "w11", "w12", "w13", "w14"] == asyncio.run(main())
    assert [4, 1] == model.decoded


def test_what_the_decoder_cannot_take_together_stays_apart(lane: ThreadLane) -> None:
    """Other numbers of columns, of tokens read first, of tokens that are given; as many of other tokens are no harm."""
    model, recognizer = made(lane, EchoModel(TOKENS))

    async def main() -> list[str]:
        found = await asyncio.gather(
            hears(recognizer, 10),
            hears(recognizer, 11, columns=1200),
            hears(recognizer, 12, before=[1, 2]),
            hears(recognizer, 13, before=[2, 3]),
            hears(recognizer, 14, before=[1, 2, 3]),
            hears(recognizer, 15, prefix=[4]),
        )
        return texts(found)

    assert ["w10", "w11", "w12", "w13", "w14", "w15"] == asyncio.run(main())
    assert [1, 1, 2, 1, 1] == model.decoded


def test_nobody_is_given_more_tokens_than_alone(lane: ThreadLane) -> None:
    """A second of sound beside eight: what runs on is decoded again on its own, with the room it has alone."""
    echo = EchoModel(TOKENS)
    echo.endless = {20}
    model, recognizer = made(lane, echo)

    async def main() -> tuple[Hypothesis, list[Hypothesis]]:
        alone = await hears(recognizer, 20, sound_s=1.0)
        both = await asyncio.gather(hears(recognizer, 20, sound_s=1.0), hears(recognizer, 30, sound_s=8.0))
        return alone, list(both)

    alone, both = asyncio.run(main())
    assert len(alone.tokens) == 12
    assert alone == both[0]
    assert "w30" == texts(both)[1]
    assert [1, 2, 1] == model.decoded


def test_doubt_about_one_is_not_doubt_about_the_other(lane: ThreadLane) -> None:
    """Only who may be no speech is asked about again, without the hints."""
    echo = EchoModel(TOKENS)
    echo.no_speech = {20: 0.9}
    model, recognizer = made(lane, echo)

    async def main() -> list[str]:
        calls = (hears(recognizer, number, before=[1, 2]) for number in (20, 30))
        return texts(await asyncio.gather(*calls))

    assert ["", "w30"] == asyncio.run(main())
    assert [2, 1] == model.decoded


def test_a_failure_is_everybodys(lane: ThreadLane) -> None:
    """Both may try again, and the lane still works."""
    echo = EchoModel(TOKENS)
    model, recognizer = made(lane, echo)

    async def main() -> list[str]:
        echo.fails = True
        failed = await asyncio.gather(hears(recognizer, 20), hears(recognizer, 30), return_exceptions=True)
        assert [True, True] == [isinstance(each, EngineError) and each.retryable for each in failed]
        echo.fails = False
        return await two(recognizer)

    assert ["w20", "w30"] == asyncio.run(main())
    assert [2, 2] == model.decoded
