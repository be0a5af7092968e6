"""Whatever an index says in either of its languages, the right wheel is found, and no secret is told."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from antiphon.core.errors import PeerError
from antiphon.models.index_settings import IndexSettings
from antiphon.models.package_index import PackageIndex, Wheel, normalise, parse_page
from antiphon.models.transport import redact, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.unit

NAME = "both-1.0-py3-none-any.whl"
DIGEST = "ab" * 32


def index_of(*indexes: str, find_links: tuple[str, ...] = ()) -> PackageIndex:
    return PackageIndex(IndexSettings(indexes=indexes, find_links=find_links, timeout_s=5))


def test_json_page() -> None:
    """PEP 691: names, relative URLs, hashes and sizes; what is no wheel is left out."""
    body = (
        b'{"files": [{"filename": "both-1.0.tar.gz", "url": "x", "hashes": {}},'
        b'{"filename": "both-1.0-py3-none-any.whl", "url": "../../f/both-1.0-py3-none-any.whl",'
        b' "hashes": {"sha256": "' + DIGEST.encode() + b'"}, "size": 5}]}'
    )

    wheels = parse_page(body, "application/vnd.pypi.simple.v1+json", base_url="https://i/simple/both/")

    assert [Wheel(file_name=NAME, url=f"https://i/f/{NAME}", sha256=DIGEST, size_bytes=5)] == wheels


def test_html_page() -> None:
    """PEP 503: links relative to a base, the hash in the fragment, names quoted."""
    body = (
        f'<!DOCTYPE html><html><head><base href="/f/"></head><body><a href="both-1.0.zip">x</a>'
        f'<a href="{NAME}#sha256={DIGEST.upper()}">x</a><a href="both-1.0%2Bcpu-py3-none-any.whl">y</a>'
    ).encode()

    wheels = parse_page(body, "text/html", base_url="https://i/simple/both/")

    assert Wheel(file_name=NAME, url=f"https://i/f/{NAME}", sha256=DIGEST) == wheels[0]
    assert wheels[1].file_name == "both-1.0+cpu-py3-none-any.whl"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"{}", "application/json"), (b"[1]", "application/json"), (b"{", "application/json"), (b"hello", "text/plain"),
     (b'{"files": [{"filename": "x.whl"}]}', "application/json"), (b'{"files": ["x"]}', "application/json")],
)  # fmt: skip
def test_what_is_no_index_page_is_said_to_be_none(body: bytes, content_type: str) -> None:
    """A captive portal's or a broken proxy's answer is an error, not an empty index."""
    with pytest.raises(PeerError):
        parse_page(body, content_type, base_url="https://i/")


def test_names_are_normalised() -> None:
    """Indexes know one spelling of a name."""
    assert normalise("Pipecat__AI.x") == "pipecat-ai-x"


def test_the_first_index_without_it_does_not_end_the_search(site, offer: Callable[..., None], both_wheel: Path) -> None:
    """Missing there, broken there, unreachable there: the last one has it."""
    offer("both", both_wheel)
    site.put("/broken/both/", b"no", content_type="text/plain")
    index = index_of("http://127.0.0.1:9/simple", f"{site.url}/none", f"{site.url}/broken", f"{site.url}/simple")

    assert [both_wheel.name] == [wheel.file_name for wheel in index.wheels("Both", "1.0")]


def test_an_index_without_that_version_says_which_it_has(site, offer: Callable[..., None], both_wheel: Path) -> None:
    """The error names the versions that are there."""
    offer("both", both_wheel)

    with pytest.raises(PeerError, match=r"no package index has both 3\.1: .*has only 1\.0") as caught:
        index_of(f"{site.url}/simple").wheels("both", "3.1")

    assert "PIP_INDEX_URL" in caught.value.hint


def test_a_longer_name_with_the_same_beginning_is_another_distribution(
    make_wheel: Callable[[str, dict[str, bytes]], Path],
) -> None:
    """both-more's wheel is not both's."""
    folder = make_wheel("both_more-1.0-py3-none-any.whl", {}).parent

    with pytest.raises(PeerError, match="does not have it"):
        index_of(find_links=(str(folder),)).wheels("both", "1.0")


def test_no_index_configured_is_said() -> None:
    """PIP_NO_INDEX without links leaves nowhere to look."""
    with pytest.raises(PeerError, match="no index is configured"):
        index_of().wheels("both", "1.0")


@pytest.mark.parametrize("form", ["folder", "file URL", "wheel"])
def test_find_links(both_wheel: Path, form: str) -> None:
    """A folder as a path or a URL, or one wheel: each is found without a network."""
    link = {"folder": str(both_wheel.parent), "file URL": both_wheel.parent.as_uri(), "wheel": str(both_wheel)}[form]

    (wheel,) = index_of(find_links=(link,)).wheels("both", "1.0")

    assert both_wheel == wheel.local_path


def test_a_file_index_is_read_from_its_pages(tmp_path: Path, both_wheel: Path) -> None:
    """file:// indexes are folders with an index.html, their links relative."""
    page = tmp_path / "simple" / "both" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../wheels/{both_wheel.name}#sha256={DIGEST}">x</a>')

    (wheel,) = index_of((tmp_path / "simple").as_uri()).wheels("both", "1.0")

    assert (both_wheel, DIGEST) == (wheel.local_path, wheel.sha256)


def test_credentials_of_the_index_are_sent_to_it_and_to_its_files(
    site, offer: Callable[..., None], both_wheel: Path
) -> None:
    """User and password in the URL become a header, for pages and files of the same server."""
    offer("both", both_wheel)
    header = "Basic " + base64.b64encode(b"me:p@ss").decode()
    for page in site.pages.values():
        page.requires = header
    index = index_of(f"{site.url.replace('//', '//me:p%40ss@')}/simple")

    (wheel,) = index.wheels("both", "1.0")
    with index.transport.open(wheel.url) as response:
        assert both_wheel.read_bytes() == response.read()


def test_credentials_do_not_follow_a_redirect_to_another_server(site) -> None:
    """A redirect to another host gets no Authorization header."""
    other = site.url.replace("127.0.0.1", "localhost")
    site.put("/a", b"", status=302, location=f"{other}/b")
    site.put("/b", b"there")
    index = index_of(f"{site.url.replace('//', '//me:secret@')}/simple")

    with index.transport.open(f"{site.url}/a") as response:
        assert response.read() == b"there"

    assert site.authorizations[0] is not None
    assert site.authorizations[1] is None


def test_netrc_is_read(site, tmp_path: Path) -> None:
    """Credentials from ~/.netrc are sent to the machine that it names."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password pw\n")
    netrc.chmod(0o600)
    site.put("/a", b"there", requires="Basic " + base64.b64encode(b"me:pw").decode())

    with index_of().transport.open(f"{site.url}/a") as response:
        assert response.read() == b"there"


@pytest.mark.parametrize("path", ["/missing", "/forbidden"])
def test_credentials_never_show_in_an_error(site, path: str) -> None:
    """Neither a refusal nor a connection that fails tells user, password or query."""
    site.put("/forbidden", b"", requires="other")
    for url in (site.url, "http://127.0.0.1:9"):
        with pytest.raises(PeerError) as caught:
            index_of().transport.open(f"{url.replace('//', '//me:secret@')}{path}?token=secret")

        assert "secret" not in str(caught.value)
        assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("url", ["https://me:secret@[bad/simple", "ftp://me:secret@host/x", "https://me:se cret@h:x/"])
def test_malformed_urls_are_errors_without_secrets(url: str) -> None:
    """A URL that cannot be used is refused, and not repeated in full."""
    with pytest.raises(PeerError) as caught:
        index_of().transport.open(url)

    assert "cret" not in str(caught.value)


def test_redact() -> None:
    """Only scheme, host, port and path are shown."""
    assert redact("https://me:pw@host:8080/a?token=x#y") == "https://host:8080/a"
    assert "no answer in time" in unreachable("https://h/", TimeoutError()).message
