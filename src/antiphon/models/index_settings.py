"""What pip and uv are configured for -> where to look for wheels, and how to connect.

Whoever has set either of them up behind a mirror, a proxy or a private certificate need not do it twice. Environment
variables win over files, a virtual environment's file over a user's, a user's over the system's. Where neither tool
names an index, it is PyPI.
"""

from __future__ import annotations

import configparser
import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PYPI_URL = "https://pypi.org/simple"
TIMEOUT_S = 15.0  # pip's own default
TRUE_WORDS = {"1", "true", "yes", "on", "t", "y"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Where wheels are looked for, in this order: find_links, then indexes."""

    indexes: tuple[str, ...] = (PYPI_URL,)
    find_links: tuple[str, ...] = ()  # folders, single wheels, or pages that link to wheels
    certificate: str = ""  # a file or folder of authorities to trust instead of the system's
    client_certificate: str = ""
    trusted_hosts: frozenset[str] = frozenset()  # host or host:port whose certificate is not checked
    proxy: str = ""  # instead of the one that the environment names
    timeout_s: float = TIMEOUT_S


def read_index_settings(
    environ: Mapping[str, str] | None = None,
    *,
    pip_files: Sequence[Path] | None = None,
    uv_files: Sequence[Path] | None = None,
) -> IndexSettings:
    """Read both tools' settings; the files are by default those that the tools themselves would read.

    Raises:
        CallerError: a configuration file cannot be parsed.
    """
    environ = os.environ if environ is None else environ
    pip = _pip_options(environ, default_pip_files(environ) if pip_files is None else pip_files)
    uv = _uv_options(environ, default_uv_files(environ) if uv_files is None else uv_files)
    defaults = [*_words(pip, "index-url"), *_strings(uv, "default-index")] or [PYPI_URL]
    indexes = [*defaults, *_words(pip, "extra-index-url"), *_strings(uv, "extra-index-url")]
    if _is_true(pip.get("no-index")) or _is_true(uv.get("no-index")):
        indexes = []
    # what lies on this machine answers at once, and a checksum makes every source equally good
    indexes = sorted((_as_url(index) for index in indexes), key=lambda url: not url.startswith("file:"))
    return IndexSettings(
        indexes=tuple(dict.fromkeys(indexes)),
        find_links=tuple(dict.fromkeys([*_words(pip, "find-links"), *_strings(uv, "find-links")])),
        certificate=pip.get("cert") or environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE") or "",
        client_certificate=pip.get("client-cert", "") or environ.get("SSL_CLIENT_CERT", ""),
        trusted_hosts=frozenset([*_words(pip, "trusted-host"), *_strings(uv, "allow-insecure-host")]),
        proxy=pip.get("proxy", ""),
        timeout_s=_seconds(pip.get("timeout") or pip.get("default-timeout") or environ.get("UV_HTTP_TIMEOUT")),
    )


def default_pip_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """pip's configuration files, those that win last."""
    override = environ.get("PIP_CONFIG_FILE", "")
    if override == os.devnull:
        return ()
    home = Path(environ.get("HOME") or Path("~").expanduser())
    if sys.platform == "win32":
        shared = [Path(environ.get("PROGRAMDATA", "C:/ProgramData")) / "pip" / "pip.ini"]
        roaming = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        own = [home / "pip" / "pip.ini", roaming / "pip" / "pip.ini"]
        site = Path(sys.prefix) / "pip.ini"
    else:
        folders = (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
        shared = [Path(folder) / "pip" / "pip.conf" for folder in reversed(folders) if folder]
        shared.append(Path("/etc/pip.conf"))
        own = [home / ".pip" / "pip.conf", _config_home(environ, home) / "pip" / "pip.conf"]
        if sys.platform == "darwin":
            shared.insert(0, Path("/Library/Application Support/pip/pip.conf"))
            own.append(home / "Library" / "Application Support" / "pip" / "pip.conf")
        site = Path(sys.prefix) / "pip.conf"
    return (*shared, *own, site, *([Path(override)] if override else []))


def default_uv_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """uv's configuration files outside of projects, those that win last."""
    if _is_true(environ.get("UV_NO_CONFIG")):
        return ()
    if environ.get("UV_CONFIG_FILE"):
        return (Path(environ["UV_CONFIG_FILE"]),)
    home = Path(environ.get("HOME") or Path("~").expanduser())
    if sys.platform == "win32":
        shared = Path(environ.get("PROGRAMDATA", "C:/ProgramData")) / "uv" / "uv.toml"
        return (shared, Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "uv" / "uv.toml")
    return (Path("/etc/uv/uv.toml"), _config_home(environ, home) / "uv" / "uv.toml")


def _config_home(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _pip_options(environ: Mapping[str, str], files: Sequence[Path]) -> dict[str, str]:
    """pip's options by their long names, as `pip install` and `pip download` would see them."""
    sections: dict[str, dict[str, str]] = {"global": {}, "download": {}, "install": {}}
    for file in files:
        text = _read(file)
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(text)
        except configparser.Error as error:
            raise _unreadable(file) from error
        for section, options in sections.items():
            if parser.has_section(section):
                options.update({key.replace("_", "-"): value for key, value in parser.items(section)})
    options = {**sections["global"], **sections["download"], **sections["install"]}
    for name, value in environ.items():
        if name.startswith("PIP_") and value:  # an empty variable is no setting, says pip
            options[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    return options


def _uv_options(environ: Mapping[str, str], files: Sequence[Path]) -> dict[str, Any]:
    """uv's options by their names in uv.toml, `default-index` and `extra-index-url` holding all kinds of indexes."""
    merged: dict[str, Any] = {}
    for file in files:
        try:
            document = tomllib.loads(_read(file))
        except tomllib.TOMLDecodeError as error:
            raise _unreadable(file) from error
        section = document.pop("pip", None)
        merged.update(section if isinstance(section, dict) else {})
        merged.update(document)
    extras = _strings(merged, "extra-index-url")
    defaults = _strings(merged, "index-url")
    for entry in merged.get("index", []):
        if isinstance(entry, dict) and isinstance(entry.get("url"), str) and not entry.get("explicit"):
            url = _with_credentials(str(entry.get("name", "")), entry["url"], environ)
            (defaults if entry.get("default") else extras).append(url)
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    named = [*environ.get("UV_INDEX", "").split(), *environ.get("UV_EXTRA_INDEX_URL", "").split()]
    merged["default-index"] = [_named_index(default, environ)] if default else defaults
    merged["extra-index-url"] = [_named_index(word, environ) for word in named] or extras
    for option, variable in (("find-links", "UV_FIND_LINKS"), ("allow-insecure-host", "UV_INSECURE_HOST")):
        if environ.get(variable):
            merged[option] = environ[variable].replace(",", " ").split()
    if environ.get("UV_NO_INDEX"):
        merged["no-index"] = environ["UV_NO_INDEX"]
    return merged


def _named_index(text: str, environ: Mapping[str, str]) -> str:
    """The URL of `NAME=URL` or of a bare URL, which may well hold a '=' of its own."""
    name, equals, url = text.partition("=")
    if not equals or "/" in name or ":" in name:
        return text
    return _with_credentials(name, url, environ)


def _with_credentials(name: str, url: str, environ: Mapping[str, str]) -> str:
    """`url` with the user and password that uv's variables for the index `name` give, unless it has its own."""
    key = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
    user = environ.get(f"UV_INDEX_{key}_USERNAME", "") if key else ""
    password = environ.get(f"UV_INDEX_{key}_PASSWORD", "") if key else ""
    parts = urlsplit(url)
    if not (user or password) or "@" in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}"))


def _as_url(index: str) -> str:
    return index if "://" in index or index.startswith("file:") else Path(index).expanduser().absolute().as_uri()


def _words(options: Mapping[str, str], name: str) -> list[str]:
    return options.get(name, "").split()


def _strings(options: Mapping[str, Any], name: str) -> list[str]:
    value = options.get(name, [])
    return [value] if isinstance(value, str) else [str(entry) for entry in value]


def _is_true(value: object) -> bool:
    return str(value).strip().lower() in TRUE_WORDS


def _seconds(text: str | None) -> float:
    try:
        return max(1.0, float(text)) if text else TIMEOUT_S
    except ValueError:
        return TIMEOUT_S


def _read(file: Path) -> str:
    """The file's text; a file that is not there or not ours to read says nothing, as with the tools themselves."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError:
        return ""
    except UnicodeDecodeError as error:
        raise _unreadable(file) from error


def _unreadable(file: Path) -> CallerError:
    # the parsers' own messages quote the line, and the line may hold a password
    return CallerError(f"{file} cannot be parsed", hint="correct the file, or move it away")
