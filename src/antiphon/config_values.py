"""A setting's value as text or TOML in -> a value of the type that its field asks for out, and back to TOML.

A field's type is int, float, bool, str, Path, tuple[str, ...], an Enum or a Literal. Whatever does not fit raises
ValueError; who called knows which setting it was and where it came from. Threads: pure.
"""

from __future__ import annotations

import json
import tomllib
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value: TypeAlias = int | float | bool | str | Path | tuple[str, ...] | Enum

SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
LONGEST_SEEN = 60  # characters of a wrong value that a message shows


def choices(wanted: object) -> Mapping[str, Value]:
    """What an Enum or a Literal allows, by how it is written; empty for all other types."""
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return {str(member.value): member for member in wanted}
    return {str(value): value for value in get_args(wanted)} if get_origin(wanted) is Literal else {}


def type_name(wanted: object) -> str:
    """The type as a sentence needs it."""
    if allowed := choices(wanted):
        return f"one of {', '.join(allowed)}"
    names: dict[object, str] = {
        int: "a whole number",
        float: "a finite number",
        bool: "true or false",
        str: "text",
        Path: "a path",
        tuple[str, ...]: "a list of texts",
    }
    return names[wanted]


def value_of_text(wanted: object, text: str) -> Value:
    """Read a variable's or a flag's text.

    Raises:
        ValueError: it is not of the type `wanted`.
    """
    if "\0" in text or not _is_unicode(text):
        raise ValueError(text)
    if allowed := choices(wanted):
        return _chosen(allowed, text.strip())
    readers: dict[object, Callable[[str], Value]] = {
        bool: lambda text: _chosen(SWITCHES, text.strip().lower()),
        int: int,
        float: lambda text: _finite(float(text)),
        tuple[str, ...]: _items,
    }
    return readers[wanted](text) if wanted in readers else value_of_toml(wanted, text)


def value_of_toml(wanted: object, raw: object) -> Value:
    """Take over what a TOML file says.

    Raises:
        ValueError: it is not of the type `wanted`.
    """
    if allowed := choices(wanted):
        value = _chosen(allowed, str(raw))
        plain = value.value if isinstance(value, Enum) else value
        if type(plain) is type(raw):
            return value
    elif wanted is float and type(raw) in (int, float):
        return _finite(float(str(raw)))
    elif wanted in (int, bool, str) and isinstance(raw, int | str) and type(raw) is wanted:  # True is an int, but none
        return raw
    elif wanted is Path and isinstance(raw, str):
        return Path(raw).expanduser()
    elif wanted == tuple[str, ...] and isinstance(raw, list) and all(isinstance(item, str) for item in raw):
        return tuple(raw)
    raise ValueError(raw)


def to_toml(value: Value) -> str:
    """The value as TOML text that reads back as the same value."""
    if isinstance(value, Enum):
        return to_toml(value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows it raw, TOML not
    if isinstance(value, tuple):
        return f"[{', '.join(to_toml(item) for item in value)}]"
    return repr(value)


def to_json(value: Value) -> int | float | bool | str | list[str]:
    """The value as `json.dumps` takes it."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, int | float) else str(value.value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def seen(raw: object) -> str:
    """A wrong value as a message shows it."""
    if isinstance(raw, dict):
        return "a section"
    text = to_toml(raw) if isinstance(raw, str | bool) else str(raw)
    return text if len(text) <= LONGEST_SEEN else f"{text[:LONGEST_SEEN]}..."


def _chosen(allowed: Mapping[str, Value], text: str) -> Value:
    if text not in allowed:
        raise ValueError(text)
    return allowed[text]


def _items(text: str) -> tuple[str, ...]:
    """Commas separate, unless the text is a TOML array, whose items may hold commas."""
    if not text.lstrip().startswith("["):
        return tuple(item.strip() for item in text.split(",") if item.strip())
    items = tomllib.loads(f"items = {text}")["items"]
    if not all(isinstance(item, str) for item in items):
        raise ValueError(text)
    return tuple(items)


def _finite(number: float) -> float:
    if not isfinite(number):
        raise ValueError(number)
    return number


def _is_unicode(text: str) -> bool:
    """False where the environment held bytes that are no text."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
