"""Where tests find models and recorded speech, and the marker that every test module must carry."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.models.store import Store

MARKERS = {"unit", "model", "corpus", "e2e", "gpu"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test without a category would run nowhere on purpose: refuse it."""
    for item in items:
        if not MARKERS & {mark.name for mark in item.iter_markers()}:
            raise pytest.UsageError(f"{item.nodeid} has none of the markers {sorted(MARKERS)}")


@pytest.fixture(scope="session")
def store() -> Store:
    """The models of this machine; scripts/test fetches them before the tests begin."""
    return Store()


@pytest.fixture(scope="session")
def silero_file(store: Store) -> Path:
    return store.file("silero-v6")


@pytest.fixture(scope="session")
def smart_turn_file(store: Store) -> Path:
    return store.file("smart-turn-v3.2")


@pytest.fixture(scope="session")
def whisper_folder(store: Store) -> Path:
    return store.locate("whisper-tiny.en")


@pytest.fixture(scope="session")
def smollm2_file(store: Store) -> Path:
    return store.file("smollm2-135m-instruct-q4_1")


@pytest.fixture(scope="session")
def corpus_folder() -> Path:
    folder = Path(__file__).parents[2] / "shared" / "corpus" / "barista"
    if not (folder / "manifest.jsonl").exists():
        pytest.skip("the corpus of recorded speech is not beside the checkout (../shared/corpus/barista)")
    return folder
