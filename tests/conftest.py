"""Where tests find models and recorded speech, and the marker that every test module must carry."""

from __future__ import annotations

from pathlib import Path

import pytest

MARKERS = {"unit", "model", "corpus", "e2e"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test without a category would run nowhere on purpose: refuse it."""
    for item in items:
        if not MARKERS & {mark.name for mark in item.iter_markers()}:
            raise pytest.UsageError(f"{item.nodeid} has none of the markers {sorted(MARKERS)}")


@pytest.fixture(scope="session")
def silero_file() -> Path:
    return Path("/tmp/models/silero_vad.onnx")


@pytest.fixture(scope="session")
def smart_turn_file() -> Path:
    return Path("/tmp/models/smart-turn-v3.2-cpu.onnx")


@pytest.fixture(scope="session")
def whisper_folder() -> Path:
    return Path("/tmp/models/whisper")


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    return Path("/tmp/models/SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def corpus_folder() -> Path:
    folder = Path(__file__).parents[2] / "shared" / "corpus" / "barista"
    if not (folder / "manifest.jsonl").exists():
        pytest.skip("the corpus of recorded speech is not beside the checkout (../shared/corpus/barista)")
    return folder
