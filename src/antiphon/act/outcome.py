"""What a function returned or raised in, the text that a model reads of it out. Threads: pure."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from enum import Enum

LONGEST_CHARS = 8_000  # of a result; about 2000 tokens, all of the default context
LONGEST_REASON_CHARS = 500  # of an exception's message
DONE = "done"  # a function without a result
ERROR = "error: "  # begins the text of what failed, since the text is all that a model sees


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call, as the model reads it."""

    text: str
    failed: bool = False


def outcome_of(result: object) -> Outcome:
    """Text as it is, None as "done", all else as JSON, or as `str` gives it where JSON has no form for it."""
    if result is None:
        return Outcome(DONE)
    if isinstance(result, str):
        return Outcome(_bounded(result, LONGEST_CHARS))
    try:
        text = json.dumps(result, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a circle
        text = str(result)
    return Outcome(_bounded(text, LONGEST_CHARS))


def failure_of(error: BaseException) -> Outcome:
    """The exception's type and message: whoever writes a tool decides by these what the model is told."""
    name = type(error).__name__
    try:
        reason = str(error)
    except Exception:  # noqa: BLE001 - a __str__ of somebody else's
        reason = ""
    return failure(_bounded(f"{name}: {reason}" if reason else name, LONGEST_REASON_CHARS))


def failure(reason: str) -> Outcome:
    """A call that came to nothing."""
    return Outcome(f"{ERROR}{reason}", failed=True)


def _plain(value: object) -> object:
    """Called by json for what it does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)


def _bounded(text: str, most: int) -> str:
    """`text` as valid Unicode, and cut with a note if it is too long to be read."""
    text = text.encode("utf-8", "replace").decode()
    return (
        text if len(text) <= most else f"{text[:most]}\n(cut here: {len(text)} characters, of which {most} are shown)"
    )
