"""A small catalogue, wheels that hold its files, and a package index on this machine's loopback interface."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from antiphon.models.catalogue import Model, ModelFile
from antiphon.models.index_settings import IndexSettings
from antiphon.models.package_index import PackageIndex
from antiphon.models.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EAR = b"ear" * 50_000
TURN = b"turn" * 40_000
WORDS = b"words" * 30_000


@dataclass
class Page:
    """What the server answers for one path."""

    body: bytes
    content_type: str = "application/octet-stream"
    resumable: bool = True
    cut_after: int | None = None  # bytes sent before the connection drops, once
    requires: str = ""  # an Authorization header
    status: int = 200
    location: str = ""


@dataclass
class Site:
    """A web server's content, and what was asked of it."""

    url: str = ""
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)  # path, Range header
    authorizations: list[str | None] = field(default_factory=list)

    def put(self, path: str, body: bytes, **options: object) -> None:
        self.pages[path] = Page(body, **options)  # type: ignore[arg-type]

    def count(self, path: str) -> int:
        return sum(asked == path for asked, _ in self.requests)


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a proxy, nor a hub, nor anybody's ~/.netrc reaches into these tests."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("NETRC", raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    shown = Site()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            range_header = self.headers.get("Range", "")
            shown.requests.append((self.path, range_header))
            shown.authorizations.append(self.headers.get("Authorization"))
            page = shown.pages.get(self.path)
            if page is None:
                self.send_error(404)
                return
            if page.requires and self.headers.get("Authorization") != page.requires:
                self.send_error(401)
                return
            start = int(range_header[len("bytes=") : -1]) if range_header and page.resumable else 0
            self.send_response(206 if start else page.status)
            if page.location:
                self.send_header("Location", page.location)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(page.body) - start))
            self.end_headers()
            if page.cut_after is not None:
                self.wfile.write(page.body[start : start + page.cut_after])
                page.cut_after = None
                return
            self.wfile.write(page.body[start:])

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    shown.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield shown
    server.shutdown()
    thread.join()
    server.server_close()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _model(name: str, files: dict[str, tuple[bytes, tuple[str, ...]]]) -> Model:
    return Model(
        name=name,
        role="voice",
        licence="MIT",
        licence_text="silero-vad.txt",
        notice="Made up.\n",
        homepage="https://example.org",
        files=tuple(
            ModelFile(name=file, size_bytes=len(content), sha256=_digest(content), sources=sources)
            for file, (content, sources) in files.items()
        ),
    )


@pytest.fixture
def catalogue() -> dict[str, Model]:
    """Two models that share a wheel, and one with a wheel of its own and a second source."""
    models = [
        _model("ear", {"ear.onnx": (EAR, ("pypi:both==1.0/both/ear.onnx",))}),
        _model("turn", {"turn.onnx": (TURN, ("pypi:both==1.0/both/data/turn.onnx",))}),
        _model(
            "words",
            {
                "a.bin": (WORDS, ("pypi:words==2.0/words/a.bin", "hf:own/words@main/a.bin")),
                "b.bin": (WORDS[:1000], ("pypi:words==2.0/words/b.bin", "hf:own/words@main/b.bin")),
            },
        ),
    ]
    return {model.name: model for model in models}


@pytest.fixture
def make_wheel(tmp_path: Path) -> Callable[[str, dict[str, bytes]], Path]:
    def make(name: str, members: dict[str, bytes]) -> Path:
        path = tmp_path / "wheels" / name
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return path

    return make


@pytest.fixture
def both_wheel(make_wheel: Callable[[str, dict[str, bytes]], Path]) -> Path:
    return make_wheel("both-1.0-py3-none-any.whl", {"both/ear.onnx": EAR, "both/data/turn.onnx": TURN})


@pytest.fixture
def words_wheel(make_wheel: Callable[[str, dict[str, bytes]], Path]) -> Path:
    return make_wheel("words-2.0-py3-none-any.whl", {"words/a.bin": WORDS, "words/b.bin": WORDS[:1000]})


@pytest.fixture
def offer(site: Site) -> Callable[..., None]:
    """Put wheels on the site's index, as JSON."""

    def put(distribution: str, *wheels: Path, sha256: str | None = None) -> None:
        files = []
        for wheel in wheels:
            content = wheel.read_bytes()
            site.pages[f"/files/{wheel.name}"] = Page(content)
            hashes = {"sha256": _digest(content) if sha256 is None else sha256}
            files.append({
                "filename": wheel.name, "url": f"../../files/{wheel.name}", "hashes": hashes, "size": len(content)
            })  # fmt: skip
        body = json.dumps({"files": files}).encode()
        site.pages[f"/simple/{distribution}/"] = Page(body, "application/vnd.pypi.simple.v1+json")

    return put


@pytest.fixture
def make_store(tmp_path: Path, site: Site, catalogue: dict[str, Model]) -> Callable[..., Store]:
    """A store over the small catalogue and the site's index; pauses between tries take no time."""

    def make(**changes: object) -> Store:
        settings = IndexSettings(indexes=(f"{site.url}/simple",), timeout_s=5)
        options = {"catalogue": catalogue, "index": PackageIndex(settings), "pause": lambda _: None, **changes}
        return Store(tmp_path / "cache", **options)  # type: ignore[arg-type]

    return make


@dataclass
class Told:
    """A progress that remembers what it was told."""

    transfers: list[Told.Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @dataclass
    class Run:
        name: str
        total_bytes: int | None
        done_bytes: int = 0
        ended: bool = False

        def advance(self, count_bytes: int) -> None:
            self.done_bytes += count_bytes

        def end(self) -> None:
            self.ended = True

    def begin(self, name: str, total_bytes: int | None) -> Told.Run:
        self.transfers.append(Told.Run(name, total_bytes))
        return self.transfers[-1]

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def told() -> Told:
    return Told()
