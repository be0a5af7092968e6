"""What a machine offers -> a file that keeps it, and back: `antiphon probe --json` writes one, tests and plans read it.

The file is JSON: {"schema": "antiphon-machine", "version": 1, then the fields of `MachineFacts` by name}. Sets are
sorted lists. Reading is strict, so that a slip in a file written by hand is found; a field that has a default may be
left out. The version rises when a field changes its meaning or goes away; a new field is no new version.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Union, get_args, get_origin, get_type_hints

from antiphon.core.errors import CallerError, check_range
from antiphon.hardware.facts import MachineFacts
from antiphon.hardware.probe_cpu import CpuFacts

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "antiphon-machine"
VERSION = 1
MOST_NUMBER = 1e300
MOST_BYTES = 16 << 20  # the largest machines need some hundred kB
HINT = "antiphon probe --json > machine.json writes such a file"


def facts_to_dict(facts: MachineFacts) -> dict[str, object]:
    """The facts as JSON knows them."""
    plain = _plain(asdict(facts))
    assert isinstance(plain, dict)
    return {"schema": SCHEMA, "version": VERSION, **plain}


def facts_from_dict(data: object) -> MachineFacts:
    """The facts back.

    Raises:
        CallerError: another schema or version, or a field that is unknown, missing or of another type.
    """
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise CallerError(f"this is no recorded machine: its schema is not {SCHEMA!r}", hint=HINT)
    if data.get("version") != VERSION or isinstance(data["version"], bool):
        said = repr(data.get("version"))[:40]
        raise CallerError(f"a recorded machine of version {said} cannot be read, only {VERSION}", hint=HINT)
    rest = {key: value for key, value in data.items() if key not in {"schema", "version"}}
    facts = _value(MachineFacts, rest, "machine")
    assert isinstance(facts, MachineFacts)
    _check(facts)
    return facts


def machine_text(facts: MachineFacts) -> str:
    """The file's whole text, in ASCII; each core, cache and GPU has its line, so that people can compare it."""
    parts: list[str] = []
    for key, value in facts_to_dict(facts).items():
        written = json.dumps(value)
        if isinstance(value, list) and value:
            lines = ",\n".join(f"    {json.dumps(item)}" for item in value)
            written = f"[\n{lines}\n  ]"
        parts.append(f"  {json.dumps(key)}: {written}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read_machine(file: Path) -> MachineFacts:
    """The machine recorded in a file.

    Raises:
        CallerError: the file cannot be read, or holds no recorded machine.
    """
    try:
        with file.open("rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise CallerError(f"{file} cannot be read: {error.strerror}", hint=HINT) from error
    if len(raw) > MOST_BYTES:
        raise CallerError(f"{file} is larger than {MOST_BYTES >> 20} MiB, so it is no recorded machine", hint=HINT)
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CallerError(f"{file} is no JSON: {error}", hint=HINT) from error
    try:
        return facts_from_dict(data)
    except CallerError as error:
        raise CallerError(f"{file}: {error.message}", hint=error.hint) from error


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _value(kind: object, value: object, where: str) -> object:
    """The value as the type says; `where` names it in errors."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        if value is None and NoneType in inner:
            return None
        (kind,) = (member for member in inner if member is not NoneType)
        return _value(kind, value, where)
    if origin in {tuple, frozenset}:
        if not isinstance(value, list):
            raise _refused(where, value, "a list")
        items = [_value(inner[0], item, f"{where}[{index}]") for index, item in enumerate(value)]
        return tuple(items) if origin is tuple else frozenset(items)
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind, value, where)
    return _scalar(kind, value, where)


def _record(kind: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise _refused(where, value, "an object")
    assert is_dataclass(kind)
    # MachineFacts names CpuFacts for type checkers alone
    hints = get_type_hints(kind, localns={"CpuFacts": CpuFacts})
    for key in value:
        if key not in hints:
            near = get_close_matches(str(key), hints, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "a newer antiphon may have written it"
            raise CallerError(f"{where} has no field {str(key)[:40]!r}", hint=hint)
    for field in fields(kind):
        if field.name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise CallerError(f"{where} lacks its field {field.name!r}", hint=HINT)
    return kind(**{key: _value(hints[key], item, f"{where}.{key}") for key, item in value.items()})


def _scalar(kind: object, value: object, where: str) -> object:
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not -MOST_NUMBER < value < MOST_NUMBER:  # false for NaN, too
            raise _refused(where, value, "a finite number")
        return float(value)
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if (kind is str and isinstance(value, str)) or (kind is bool and isinstance(value, bool)):
        return value
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    raise _refused(where, value, names[kind] if isinstance(kind, type) else str(kind))


def _check(facts: MachineFacts) -> None:
    """What the plan divides by or counts with has to make sense."""
    cpu = facts.cpu
    check_range("machine.cpu.logical_cores", cpu.logical_cores, 1, 1 << 16)
    check_range("machine.cpu.usable_cores", cpu.usable_cores, 1, 1 << 16)  # some containers show fewer than may be used
    if facts.quota_cores is not None:
        check_range("machine.quota_cores", facts.quota_cores, 1e-6, 1 << 16)
    numbers = [core.number for core in facts.cores]
    if len(set(numbers)) != len(numbers) or any(number < 0 for number in numbers):
        raise CallerError("machine.cores has a number twice or below 0", hint="each logical core has one entry")
    sizes = [cache.size_bytes for cache in facts.caches] + [gpu.memory_bytes for gpu in facts.gpus]
    for size_bytes in (*sizes, *(node.size_bytes for node in facts.nodes), cpu.memory_bytes or 0):
        check_range("a size in the machine's file", size_bytes, 0, 1 << 62)


def _refused(where: str, value: object, expected: str) -> CallerError:
    return CallerError(f"{where} is {repr(value)[:40]}", hint=f"it has to be {expected}")
