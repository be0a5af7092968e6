"""A run -> result.json -> the same run.

A latency that is None is `null`, which also stands for infinity: JSON has no infinity, and `outcome` tells the two
apart (silent and failed turns count as infinite). Fields that a later Antiphon adds are skipped, fields that an earlier
one lacked have their defaults; only another schema number is refused. It does not know what the figures mean.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import CallerError, MachineError
from antiphon.lab.result import SCHEMA, Outcome, Run, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME = "result.json"
LARGEST_BYTES = 256 * 1024 * 1024  # some 200 000 turns; a larger file is a mistake
_NUMBERS = {"float", "float | None", "int", "int | None"}


def write_run(run: Run, folder: Path) -> Path:
    """Write `result.json` into `folder`, which is made if need be; an older one there is replaced as a whole.

    Raises:
        MachineError: it cannot be written.
    """
    (path,) = write_files({FILE_NAME: to_json(run).encode()}, folder)
    return path


def write_files(contents: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write each by its name into `folder`, which is made if need be; an older one there is replaced as a whole.

    Raises:
        MachineError: one cannot be written; those before it are.
    """
    paths = [folder / name for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        half = path.with_name(f"{path.name}.part")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            half.write_bytes(content)
            half.replace(path)
        except OSError as error:
            raise MachineError(
                f"{path} cannot be written: {error.strerror}", hint="name another folder with --out"
            ) from error
    return paths


def to_json(run: Run) -> str:
    """The file's text: a line for each turn, so that two runs can be told apart by eye."""
    plain = _plain(run)
    turns = plain.pop("turns")
    head = json.dumps(plain, indent=2, allow_nan=False)
    lines = ",\n".join("    " + json.dumps(turn, ensure_ascii=False, allow_nan=False) for turn in turns)
    return f'{head[:-2]},\n  "turns": [\n{lines}\n  ]\n}}\n'


def read_run(path: Path) -> Run:
    """The run in a `result.json`, or in the folder that holds one.

    Raises:
        CallerError: there is none, or it is not of this schema; the message names the file and the field.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise CallerError(f"{file} is larger than any result", hint="name a result.json")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"{file} cannot be read", hint="name a result.json that `antiphon bench` wrote") from error
    return from_json(text, source=str(file))


def from_json(text: str, *, source: str = FILE_NAME) -> Run:
    """The run in a file's text; `source` is what errors call it.

    Raises:
        CallerError: it holds no run of this schema.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise CallerError(f"{source} is no JSON", hint="name a result.json that `antiphon bench` wrote") from error
    if not isinstance(plain, dict) or "schema" not in plain or "turns" not in plain:
        raise CallerError(f"{source} holds no run", hint="name a result.json that `antiphon bench` wrote")
    if plain["schema"] != SCHEMA:
        raise CallerError(
            f"{source} has schema {plain['schema']!r}, this Antiphon reads {SCHEMA}",
            hint="read it with the Antiphon that wrote it, or measure again",
        )
    if not isinstance(plain["turns"], list):
        raise CallerError(f"{source}: turns is no list", hint="name a result.json that `antiphon bench` wrote")
    turns = tuple(_turn(turn, f"{source}: turns[{index}]") for index, turn in enumerate(plain["turns"]))
    known = _known(Run, {**plain, "turns": turns}, source)
    return Run(**{**known, "notes": tuple(known.get("notes", ()))})


def _turn(plain: Any, source: str) -> Turn:
    if not isinstance(plain, dict):
        raise CallerError(f"{source} is no turn", hint="name a result.json that `antiphon bench` wrote")
    known = _known(Turn, plain, source)
    try:
        known["outcome"] = Outcome(known["outcome"])
    except ValueError as error:
        names = ", ".join(Outcome)
        raise CallerError(f"{source}.outcome is {known['outcome']!r}", hint=f"it is one of {names}") from error
    return Turn(**{**known, "gaps_ms": tuple(known.get("gaps_ms", ()))})


def _known(wanted: type[Run | Turn], plain: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What of `plain` is a field of `wanted`, each of the kind that the field holds."""
    known: dict[str, Any] = {}
    for item in fields(wanted):
        if item.name not in plain:
            if item.default is MISSING and item.default_factory is MISSING:
                raise CallerError(f"{source} has no {item.name}", hint="the file is cut short, or was written by hand")
            continue
        if not _fits(str(item.type), plain[item.name]):
            raise CallerError(f"{source}.{item.name} is {plain[item.name]!r:.80}", hint=f"it holds {item.type}")
        known[item.name] = plain[item.name]
    return known


def _fits(wanted: str, value: Any) -> bool:
    """Whether JSON's value can stand for a field of this type."""
    if wanted in _NUMBERS:
        return _is_number(value) or (value is None and wanted.endswith("None"))
    if wanted.startswith("Mapping"):
        of_numbers = wanted.endswith("float]")
        return isinstance(value, dict) and (not of_numbers or all(map(_is_number, value.values())))
    if wanted.startswith("tuple"):
        of_numbers = "float" in wanted
        return isinstance(value, (list, tuple)) and (not of_numbers or all(map(_is_number, value)))
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _finite(value: Any) -> Any:
    """A table or list of numbers without those that JSON lacks, which would be read back as holes."""
    if isinstance(value, tuple):
        return tuple(item for item in value if not isinstance(item, float) or math.isfinite(item))
    if hasattr(value, "items"):
        return {name: item for name, item in value.items() if not isinstance(item, float) or math.isfinite(item)}
    return value


def _plain(value: Any) -> Any:
    """As JSON takes it: numbers that JSON lacks become null."""
    if isinstance(value, (Run, Turn)):
        return {item.name: _plain(_finite(getattr(value, item.name))) for item in fields(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (StrEnum, Path)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "items"):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return value
