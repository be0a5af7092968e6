"""A model.bin of CTranslate2's in; its tensors by name out, whatever numbers they are kept in.

The file is a header, then one variable after the other, then names that stand for another variable. Linear weights of
8 bits come with a scale for each row, by which they were multiplied. All numbers are little-endian.
Threads: blocking; the file is mapped, and a tensor is read when it is asked for. It does not know models.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

VERSIONS = range(4, 7)  # of the file's form, in which every variable says the type of its numbers
_TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
_MOST_VARIABLES = 100_000
_MOST_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class _Variable:
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int
    size: int  # bytes


class CTranslate2File:
    """One opened file."""

    def __init__(self, path: Path) -> None:
        """Read where everything lies.

        Raises:
            CallerError: the file is missing, cut short, or of a form that is not known here.
        """
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CallerError(f"{path} cannot be read", hint="name a folder that CTranslate2 can read") from error
        self._path = path
        self._at = 0
        version = self._whole("I")
        if version not in VERSIONS:
            raise CallerError(
                f"{path} has the form {version} of CTranslate2's files; known are {VERSIONS[0]} to {VERSIONS[-1]}",
                hint="convert the model again with a current release of CTranslate2",
            )
        self.kind = self._text()  # such as WhisperSpec
        self.revision = self._whole("I")
        count = self._whole("I")
        if count > _MOST_VARIABLES:
            raise self._broken()
        self._variables = dict(self._variable() for _ in range(count))
        self._aliases = {self._text(): self._text() for _ in range(self._whole("I"))}

    def __contains__(self, name: str) -> bool:
        return name in self._variables or name in self._aliases

    @property
    def names(self) -> tuple[str, ...]:
        """Of all variables, aliases left out."""
        return tuple(self._variables)

    def shape(self, name: str) -> tuple[int, ...]:
        """Raises CallerError where there is none of that name."""
        return self._found(name).shape

    def number(self, name: str, default: int | None = None) -> int:
        """A variable that is one whole number.

        Raises:
            CallerError: there is none of that name, and no default.
        """
        if name not in self and default is not None:
            return default
        return int(self.stored(name).reshape(-1)[0])

    def stored(self, name: str) -> Tensor:
        """The numbers as they lie in the file; a copy.

        Raises:
            CallerError: there is none of that name.
        """
        found = self._found(name)
        raw = bytearray(self._bytes[found.start : found.start + found.size])
        return torch.frombuffer(raw, dtype=found.dtype).reshape(found.shape)

    def tensor(self, name: str) -> Tensor:
        """The numbers as f32.

        Raises:
            CallerError: there is none of that name, or its scales are missing.
        """
        stored = self.stored(name)
        if stored.dtype not in {torch.int8, torch.int16}:
            return stored.float()
        name = self._aliases.get(name, name)
        scale = self.stored(f"{name}_scale").float()  # (), or (rows,)
        return stored.float() / (scale[:, None] if scale.ndim else scale)

    def _found(self, name: str) -> _Variable:
        found = self._variables.get(self._aliases.get(name, name))
        if found is None:
            raise CallerError(f"{self._path} has no {name}", hint="name the folder of a model of the right kind")
        return found

    def _variable(self) -> tuple[str, _Variable]:
        name, rank = self._text(), self._whole("B")
        if rank > _MOST_DIMENSIONS:
            raise self._broken()
        shape = tuple(self._whole("I") for _ in range(rank))
        kind, size = self._whole("B"), self._whole("I")
        start, elements = self._at, 1
        for dimension in shape:
            elements *= dimension
        self._at += size
        if kind >= len(_TYPES) or elements * _TYPES[kind].itemsize != size or self._at > len(self._bytes):
            raise self._broken()
        return name, _Variable(shape, _TYPES[kind], start, size)

    def _whole(self, kind: str) -> int:
        try:
            value: int = struct.unpack_from(f"<{kind}", self._bytes, self._at)[0]
        except struct.error as error:
            raise self._broken() from error
        self._at += struct.calcsize(f"<{kind}")
        return value

    def _text(self) -> str:
        length = self._whole("H")
        text = self._bytes[self._at : self._at + length]
        self._at += length
        try:
            return text.rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise self._broken() from error

    def _broken(self) -> CallerError:
        return CallerError(
            f"{self._path} is cut short or no model of CTranslate2's", hint="verify the models: antiphon models verify"
        )
