"""A JSON object of a client's in, its fields out, each of the type that it must have.

Fields that nobody asks for are ignored. A field that is asked for and has another type or a value out of its range
is refused, and the refusal names it by its path, `session.audio.input.format.rate`. Absent and null are told apart,
for in an update the one means "as before" and the other "off".
Pure. What it does not know: what the fields mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from antiphon.serve.realtime.errors import MISSING, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_TEXT_CHARS = 200_000  # of one string: instructions, a tool's schema as text, a message
MOST_ID_CHARS = 128
MOST_SHOWN_CHARS = 40


class Fields:
    """An object's fields, and where it stands in the event."""

    def __init__(self, values: Mapping[str, object], path: str = "") -> None:
        self.values = values
        self.path = path

    def at(self, name: str) -> str:
        """A field's path."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the field is there, null or not."""
        return name in self.values

    def is_null(self, name: str) -> bool:
        """Whether the field is there and null."""
        return name in self.values and self.values[name] is None

    def require(self, name: str) -> None:
        """Raises RefusedError unless the field is there and not null."""
        if self.values.get(name) is None:
            raise RefusedError(f"{self.at(name)} is missing", code=MISSING, param=self.at(name))

    def text(self, name: str, *, most_chars: int = MOST_TEXT_CHARS) -> str | None:
        """A string; None if it is absent or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        if len(value) > most_chars:
            raise RefusedError(
                f"{self.at(name)} has {len(value)} characters, {most_chars} are possible", param=self.at(name)
            )
        return value

    def name(self, name: str) -> str | None:
        """A short string that is not empty: an id or a name."""
        value = self.text(name, most_chars=MOST_ID_CHARS)
        if value == "":
            raise RefusedError(f"{self.at(name)} is empty", param=self.at(name))
        return value

    def choice(self, name: str, *allowed: str) -> str | None:
        """One of a few strings."""
        value = self.text(name)
        if value is not None and value not in allowed:
            shown = value[:MOST_SHOWN_CHARS]
            raise RefusedError(
                f"{self.at(name)} is {shown!r}", param=self.at(name), hint=f"use one of {', '.join(map(repr, allowed))}"
            )
        return value

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def whole(self, name: str, lowest: int, highest: int) -> int | None:
        """A whole number; 500.0 is one."""
        value = self.number(name, lowest, highest)
        if value is None:
            return None
        if value != int(value):
            raise self._wrong(name, "a whole number")
        return int(value)

    def number(self, name: str, lowest: float, highest: float) -> float | None:
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(name, "a number")
        if not lowest <= value <= highest or math.isnan(value):
            shown = f"{value}"[:MOST_SHOWN_CHARS]
            raise RefusedError(
                f"{self.at(name)} is {shown}", param=self.at(name), hint=f"use a number from {lowest} to {highest}"
            )
        return value

    def nested(self, name: str) -> Fields | None:
        """An object; None if it is absent or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Fields(value, self.at(name))

    def listed(self, name: str, *, most: int) -> list[object] | None:
        """An array; None if it is absent or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._wrong(name, "an array")
        if len(value) > most:
            raise RefusedError(f"{self.at(name)} has {len(value)} entries, {most} are possible", param=self.at(name))
        return value

    def objects(self, name: str, *, most: int) -> list[Fields] | None:
        """An array of objects."""
        values = self.listed(name, most=most)
        return None if values is None else list(self._objects(name, values))

    def texts(self, name: str, *, most: int) -> list[str] | None:
        """An array of strings."""
        values = self.listed(name, most=most)
        if values is None:
            return None
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) < len(values):
            raise self._wrong(name, "an array of strings")
        return texts

    def _objects(self, name: str, values: list[object]) -> Iterator[Fields]:
        for index, value in enumerate(values):
            path = f"{self.at(name)}[{index}]"
            if not isinstance(value, dict):
                raise RefusedError(f"{path} must be an object", code="invalid_type", param=path)
            yield Fields(value, path)

    def _wrong(self, name: str, wanted: str) -> RefusedError:
        found = type(self.values[name]).__name__
        kinds = {"str": "a string", "bool": "true or false", "dict": "an object", "list": "an array"}
        return RefusedError(
            f"{self.at(name)} must be {wanted}, not {kinds.get(found, 'a number')}",
            code="invalid_type",
            param=self.at(name),
        )
