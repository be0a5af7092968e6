"""What pip or uv is configured for is what we use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antiphon.core.errors import CallerError
from antiphon.models.index_settings import PYPI_URL, default_pip_files, default_uv_files, read_index_settings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def test_nothing_configured_is_pypi() -> None:
    """Without any setting, the index is PyPI."""
    settings = read_index_settings({}, pip_files=[], uv_files=[])

    assert settings.indexes == (PYPI_URL,)
    assert settings.find_links == ()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"PIP_INDEX_URL": "https://a/simple"}, ("https://a/simple",)),
        ({"PIP_INDEX_URL": ""}, (PYPI_URL,)),
        ({"PIP_EXTRA_INDEX_URL": "https://a/s https://b/s"}, (PYPI_URL, "https://a/s", "https://b/s")),
        ({"PIP_EXTRA_INDEX_URL": "file:///a"}, ("file:///a", PYPI_URL)),
        ({"PIP_NO_INDEX": "1", "PIP_INDEX_URL": "https://a/s"}, ()),
        ({"UV_INDEX_URL": "https://u/s"}, ("https://u/s",)),
        ({"UV_DEFAULT_INDEX": "own=https://u/s"}, ("https://u/s",)),
        ({"UV_INDEX": "https://u/s?a=b", "UV_EXTRA_INDEX_URL": "https://v/s"}, (PYPI_URL, "https://u/s?a=b", "https://v/s")),
        ({"PIP_INDEX_URL": "https://a/s", "UV_INDEX_URL": "https://a/s"}, ("https://a/s",)),
        (
            {"UV_INDEX": "my-own=https://u/s", "UV_INDEX_MY_OWN_USERNAME": "me", "UV_INDEX_MY_OWN_PASSWORD": "p@ss"},
            (PYPI_URL, "https://me:p%40ss@u/s"),
        ),
    ],
)  # fmt: skip
def test_environment(environ: dict[str, str], expected: tuple[str, ...]) -> None:
    """Each variable of pip and uv has its effect; what lies on this machine comes first."""
    assert expected == read_index_settings(environ, pip_files=[], uv_files=[]).indexes


def test_pip_files(tmp_path: Path) -> None:
    """Later files win over earlier ones, [install] over [global], the environment over all."""
    shared, own = tmp_path / "shared.conf", tmp_path / "own.conf"
    shared.write_text(
        "[global]\nindex-url = https://shared/s\nextra_index_url =\n  https://a/s\n  https://b/s\ncert = /c.pem\n"
        "[install]\ntrusted-host = a\n"
    )
    own.write_text("[global]\nindex-url = https://own/s\ntimeout = 60\n[download]\nfind-links = /wheels\n")

    settings = read_index_settings({"PIP_TRUSTED_HOST": "b c:8080"}, pip_files=[shared, own], uv_files=[])

    assert settings.indexes == ("https://own/s", "https://a/s", "https://b/s")
    assert settings.find_links == ("/wheels",)
    assert settings.certificate == "/c.pem"
    assert frozenset({"b", "c:8080"}) == settings.trusted_hosts
    assert settings.timeout_s == 60


def test_uv_files(tmp_path: Path) -> None:
    """uv.toml's indexes are used, but for those that are kept for packages named elsewhere."""
    file = tmp_path / "uv.toml"
    file.write_text(
        'find-links = ["/w"]\n'
        '[[index]]\nname = "kept"\nurl = "https://kept/s"\nexplicit = true\n'
        '[[index]]\nname = "main"\nurl = "https://main/s"\ndefault = true\n'
        '[[index]]\nurl = "https://more/s"\n'
    )

    settings = read_index_settings({}, pip_files=[], uv_files=[file])

    assert settings.indexes == ("https://main/s", "https://more/s")
    assert settings.find_links == ("/w",)


def test_a_local_folder_is_an_index(tmp_path: Path) -> None:
    """An index may be given as a plain path."""
    settings = read_index_settings({"UV_INDEX_URL": str(tmp_path)}, pip_files=[], uv_files=[])

    assert (tmp_path.as_uri(),) == settings.indexes


@pytest.mark.parametrize("content", [b"no section = 1\n", b"\xff\xfe"])
def test_a_broken_file_is_named_and_its_content_is_not(tmp_path: Path, content: bytes) -> None:
    """The error names the file; the parser's own message could quote a password."""
    file = tmp_path / "pip.conf"
    file.write_bytes(content)

    with pytest.raises(CallerError, match=r"pip\.conf cannot be parsed") as caught:
        read_index_settings({}, pip_files=[file], uv_files=[])

    assert "no section" not in str(caught.value)


def test_a_broken_uv_file_is_named(tmp_path: Path) -> None:
    """The same for uv.toml."""
    file = tmp_path / "uv.toml"
    file.write_text("index-url = \n")

    with pytest.raises(CallerError, match=r"uv\.toml cannot be parsed"):
        read_index_settings({}, pip_files=[], uv_files=[file])


@pytest.mark.skipif("sys.platform == 'win32'", reason="other folders there")
def test_the_files_that_the_tools_read(tmp_path: Path) -> None:
    """The user's, the legacy and the environment's own file are looked for, the named one last."""
    environ = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/named.conf", "XDG_CONFIG_HOME": str(tmp_path / "x")}

    files = [str(file) for file in default_pip_files(environ)]

    assert "/etc/pip.conf" in files
    assert f"{tmp_path}/.pip/pip.conf" in files
    assert f"{tmp_path}/x/pip/pip.conf" in files
    assert files[-1] == "/named.conf"
    assert default_pip_files({"PIP_CONFIG_FILE": "/dev/null"}) == ()
    assert f"{tmp_path}/x/uv/uv.toml" == str(default_uv_files(environ)[-1])
    assert default_uv_files({"UV_NO_CONFIG": "1"}) == ()
