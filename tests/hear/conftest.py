"""The engines, each loaded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import soxr
from tests.hear.sounds import silence

from antiphon.hear.moonshine import MoonshineRecognizer
from antiphon.hear.silero import SileroDetector
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antiphon.core.flow import Pcm
    from antiphon.hear.recognizer import Recognizer
    from antiphon.models.store import Store


@pytest.fixture(scope="session")
def whisper(whisper_folder: Path) -> Iterator[WhisperRecognizer]:
    lane = ThreadLane("recognise")
    recognizer = WhisperRecognizer.load(whisper_folder, lane=lane, threads=2)
    yield recognizer
    lane.close()
    recognizer.close()


@pytest.fixture(scope="session")
def moonshine_folder(store: Store) -> Path:
    """Not among the default models: whoever wants these tests fetches it."""
    if store.state("moonshine-tiny.en").condition != "present":
        pytest.skip("moonshine-tiny.en is not here: antiphon models fetch moonshine-tiny.en")
    return store.locate("moonshine-tiny.en")


@pytest.fixture(scope="session")
def moonshine(moonshine_folder: Path) -> Iterator[MoonshineRecognizer]:
    lane = ThreadLane("recognise")
    recognizer = MoonshineRecognizer.load(moonshine_folder, lane=lane, threads=2)
    yield recognizer
    lane.close()
    recognizer.close()


@pytest.fixture(scope="session", params=["whisper", "moonshine"])
def recognizer(request: pytest.FixtureRequest) -> Recognizer:
    """Every engine there is, one after the other."""
    loaded: Recognizer = request.getfixturevalue(request.param)
    return loaded


@pytest.fixture(scope="session")
def silero(silero_file: Path) -> SileroDetector:
    return SileroDetector.load(silero_file)


@pytest.fixture(scope="session")
def say() -> Callable[[str], Pcm]:
    """A voice that says a text at 16 kHz, with 0.3 s of silence on either side."""
    from hibari import Hibari

    voice = Hibari()

    def said(text: str) -> Pcm:
        pcm = soxr.resample(np.asarray(voice(text, seed=0), np.float32).ravel(), 24_000, 16_000)
        loud = np.flatnonzero(np.abs(pcm) > 0.01)
        return np.concatenate((silence(0.3), pcm[loud[0] : loud[-1]], silence(0.3))).astype(np.float32)

    return said
