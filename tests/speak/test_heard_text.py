"""Which words count as heard is right to a tenth of a second; bench/heard_text.py measures the same over 30 replies."""

from __future__ import annotations

import asyncio
import importlib.util
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antiphon.hear.whisper import WhisperRecognizer
from antiphon.scheduling.lanes import ThreadLane
from antiphon.speak.hibari import HibariVoice

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = [pytest.mark.model, pytest.mark.slow]

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))  # it imports its neighbour
    spec = importlib.util.spec_from_file_location("antiphon_heard_text", BENCH / "heard_text.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_words_count_as_heard_when_they_end(bench: ModuleType, whisper_folder: Path) -> None:
    """Over five replies, half of all words count within 100 ms of where Whisper hears them end."""

    async def differences_ms() -> list[float]:
        lane = ThreadLane("test")
        voice = HibariVoice.load(None, lane=lane)
        recognizer = WhisperRecognizer.load(whisper_folder, lane=lane, threads=2)
        found = []
        for reply in bench.REPLIES[:5]:
            words, _ = await bench.measure(voice, recognizer, reply)
            assert len(words) == len(reply.split())
            found += [abs(word.ours_s - word.whisper_s) * 1000 for word in words]
        recognizer.close()
        lane.close()
        return found

    assert statistics.median(asyncio.run(differences_ms())) <= 100
