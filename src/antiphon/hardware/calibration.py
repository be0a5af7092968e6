"""What stages cost here, as measured before -> kept in a file, and found again for the same machine and models.

    ROOT/costs/KEY.json   KEY follows from the processor, its usable cores, quota, instructions and memory, and from the
                          models' names and checksums: on another machine, or with other models, nothing is found

ROOT is the models' cache folder (ANTIPHON_CACHE moves it). A file that cannot be read counts as none.
Threads: blocks on disk for a moment. What it does not know: how costs are measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError
from antiphon.hardware.stage_costs import (
    QUICK_FIELDS,
    REFERENCE,
    TIMES,
    Choice,
    Cost,
    StageCosts,
    is_served,
    reference_costs,
)
from antiphon.models.catalogue import CATALOGUE
from antiphon.models.store import default_root

if TYPE_CHECKING:
    from antiphon.hardware.facts import MachineFacts
    from antiphon.models.catalogue import Model

SCHEMA = "antiphon.costs/1"
FOLDER = "costs"
MEMORY_STEP_BYTES = 256 * 2**20  # the same machine tells a few pages more or less after another boot
MOST_BYTES = 1 << 16  # of a file; ours have 2 kB
ROLES = ("voice_detector", "prosody", "recognizer", "language_model", "voice")
QUICK_ROLE = "quick_recognizer"  # counts only where there is one: who has none keeps what was measured before


def known_costs(facts: MachineFacts, choice: Choice, *, root: Path | None = None) -> StageCosts:
    """What was measured on this machine with these models, or else the reference brought to it."""
    return read_costs(facts, choice, root=root) or reference_costs(facts, choice, model_sizes(choice))


def read_costs(facts: MachineFacts, choice: Choice, *, root: Path | None = None) -> StageCosts | None:
    """What was measured on this machine with these models; None if nothing was."""
    try:
        with costs_file(facts, choice, root=root).open("rb") as file:
            data = json.loads(file.read(MOST_BYTES))
        return _costs(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # not there, or written by hand or another version: to measure again mends it


def write_costs(facts: MachineFacts, choice: Choice, costs: StageCosts, *, root: Path | None = None) -> Path:
    """Keep what was measured; return the file.

    Raises:
        MachineError: the file cannot be written.
    """
    file = costs_file(facts, choice, root=root)
    data = {"schema": SCHEMA, "machine": _machine(facts), "models": _models(choice), "costs": asdict(costs)}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, suffix=".part", delete=False, encoding="utf-8") as part:
            json.dump(data, part, indent=1)
        Path(part.name).replace(file)
    except OSError as error:
        raise MachineError(
            f"{file} cannot be written: {error.strerror}",
            hint="make the cache folder writable, or move it with ANTIPHON_CACHE=/another/folder",
        ) from error
    return file


def costs_file(facts: MachineFacts, choice: Choice, *, root: Path | None = None) -> Path:
    """Where the costs of this machine with these models are kept, or would be."""
    key = json.dumps([_machine(facts), _models(choice)], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return (default_root() if root is None else root) / FOLDER / f"{digest}.json"


def model_sizes(choice: Choice) -> dict[str, int]:
    """How many bytes each chosen model has, where that can be found out."""
    sizes = {}
    for role in _roles(choice):
        name = getattr(choice, role)
        model = _of_catalogue(name)
        size = model.size_bytes if model else sum(entry[1] for entry in _own_files(name))
        if size:
            sizes[name] = size
    return sizes


def _machine(facts: MachineFacts) -> dict[str, object]:
    cpu = facts.cpu
    return {
        "model": cpu.model,
        "architecture": cpu.architecture,
        "logical_cores": cpu.logical_cores,
        "usable_cores": sum(core.is_usable for core in facts.cores) or cpu.usable_cores,
        "quota_cores": facts.quota_cores,
        "flags": None if cpu.flags is None else sorted(cpu.flags),
        "memory_steps": None if cpu.memory_bytes is None else round(cpu.memory_bytes / MEMORY_STEP_BYTES),
    }


def _models(choice: Choice) -> dict[str, object]:
    """Each role's model with what tells its content: checksums of the catalogue's, size and time of anybody's own."""
    marks: dict[str, object] = {}
    for role in _roles(choice):
        name = getattr(choice, role)
        model = _of_catalogue(name)
        marks[role] = [name, [file.sha256 for file in model.files] if model else _own_files(name)]
    return marks


def _roles(choice: Choice) -> tuple[str, ...]:
    return (*ROLES, QUICK_ROLE) if choice.quick_name else ROLES


def _of_catalogue(name: str) -> Model | None:
    return CATALOGUE.get(name) or CATALOGUE.get(f"hibari-{name}")


def _own_files(name: str) -> list[tuple[str, int, int]]:
    """(name, bytes, whole seconds of change) of each file that a path stands for; none where it is no path."""
    if not name or is_served(name):
        return []
    path = Path(name.removeprefix("piper:")).expanduser()
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        states = [(file.name, os.stat(file)) for file in files]  # noqa: PTH116 - follows links, as a load does
    except OSError:
        return []
    return [(name, state.st_size, int(state.st_mtime)) for name, state in states]


def _costs(data: object) -> StageCosts:
    if not isinstance(data, dict) or data["schema"] != SCHEMA:
        raise ValueError(data)
    quick = asdict(REFERENCE)
    found = {name: quick[name] for name in QUICK_FIELDS} | data["costs"]  # older files lack these
    if set(found) != {item.name for item in fields(StageCosts)} or found["origin"] != "measured":
        raise ValueError(found)
    for name in TIMES:
        found[name] = Cost(**found[name])
        if not all(isinstance(ns, int) and ns > 0 for ns in (found[name].median_ns, found[name].p95_ns)):
            raise ValueError(found[name])
    if not isinstance(found["waited"], float) or not 0 <= found["waited"] <= 1:
        raise ValueError(found)
    threads = ("recognizer_threads", "quick_recognizer_threads", "language_model_threads")
    whole = (*threads, "base_bytes", "caller_bytes", "context_bytes_a_token")
    if not all(isinstance(found[name], int) and found[name] >= 0 for name in whole) or type(found["taken"]) is not str:
        raise ValueError(found)
    if any(found[name] < 1 for name in threads):
        raise ValueError(found)
    return StageCosts(**found)
