"""antiphon probe: what this machine offers (cores, memory, rights, GPUs, sound), as a table or as a file to keep."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from antiphon.hardware.facts import AudioDevice, Cache, Core, GpuFacts, MachineFacts, Rights

MOST_AUDIO_ROWS = 12


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("probe", help="what this machine offers: cores, memory, rights, GPUs, sound")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table, to keep or to plan for")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look at the machine; what cannot be found out is left out."""
    from antiphon.hardware.machine_file import machine_text
    from antiphon.hardware.probe import probe

    facts = probe()
    if arguments.json:
        print(machine_text(facts), end="")
        return 0
    if not sys.stdout.isatty():
        for subject, text in rows(facts):
            print(f"{subject:<14}{text}")  # one line each, however long, for what reads lines
        return 0
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for subject, text in rows(facts):
        table.add_row(Text(subject), Text(text, style="yellow" if subject == "note" else ""))
    Console(highlight=False).print(table)
    return 0


def rows(facts: MachineFacts) -> Iterator[tuple[str, str]]:
    """The table's lines: a subject, and what there is of it."""
    cpu = facts.cpu
    yield "system", f"{facts.system or 'not known'}, {cpu.architecture}"
    yield "container", facts.container or "none seen"
    yield "cpu", cpu.model or "not known"
    yield "cores", _cores(facts)
    if facts.quota_cores is not None:
        yield "quota", f"{facts.quota_cores:g} cores by control group"
    yield "instructions", "not known" if cpu.flags is None else " ".join(sorted(cpu.flags)) or "none of interest"
    for text in _caches(facts.caches):
        yield "cache", text
    yield "memory", "not known" if cpu.memory_bytes is None else _gigabytes(cpu.memory_bytes)
    if len(facts.nodes) > 1:
        for node in facts.nodes:
            near = f"cores {_ranges(node.cores)}" if node.cores else "no cores"
            yield f"node {node.number}", f"{_gigabytes(node.size_bytes)}, near to {near}"
    yield "real time", _real_time(facts.rights)
    for gpu in facts.gpus:
        yield f"gpu {gpu.index}", _gpu(gpu)
    if not facts.gpus:
        yield "gpu", "none"
    for text in _audio(facts.audio):
        yield "sound", text
    for note in facts.notes:
        yield "note", note


def _cores(facts: MachineFacts) -> str:
    cores = facts.cores
    parts = [f"{facts.cpu.usable_cores} of {facts.cpu.logical_cores} logical cores usable"]
    physical = {core.physical for core in cores} - {None}
    sockets = {core.socket for core in cores} - {None}
    if physical and len(physical) < len(cores):
        parts.append(f"{len(physical)} physical")
    if len(sockets) > 1:
        parts.append(f"{len(sockets)} sockets")
    usable = [core.number for core in cores if core.is_usable]
    if len(usable) < len(cores):
        parts.append(f"affinity to {_ranges(usable)}")
    parts += _speeds(cores)
    return ", ".join(parts)


def _speeds(cores: Sequence[Core]) -> list[str]:
    """How fast at most; with cores of several kinds, how many of each."""
    counts = Counter(core.most_mhz for core in cores if core.most_mhz is not None)
    if len(counts) == 1:
        return [f"to {next(iter(counts)) / 1000:.1f} GHz"]
    return [f"{count} to {mhz / 1000:.1f} GHz" for mhz, count in sorted(counts.items(), reverse=True)]


def _caches(caches: Sequence[Cache]) -> Iterator[str]:
    counts = Counter((cache.level, cache.kind, cache.size_bytes, len(cache.shared_by)) for cache in caches)
    for (level, kind, size_bytes, sharers), count in sorted(counts.items()):
        size = f"{size_bytes / (1 << 20):g} MiB" if size_bytes >= 1 << 20 else f"{size_bytes >> 10} KiB"
        shared = f", each shared by {sharers}" if sharers > 1 else ""
        yield f"L{level}{'' if kind == 'unified' else f' {kind}'}: {count} of {size}{shared}"


def _real_time(rights: Rights) -> str:
    if rights.least_nice is None and not rights.fifo_priority:
        return "not known"
    locked = rights.locked_memory_bytes
    return ", ".join([
        f"SCHED_FIFO to {rights.fifo_priority}" if rights.fifo_priority else "no SCHED_FIFO",
        "SCHED_DEADLINE" if rights.deadline else "no SCHED_DEADLINE",
        f"nice to {rights.least_nice}" if rights.least_nice else "nice not below 0",
        "no limit on locked memory" if locked is None else f"{locked / 1e6:.1f} MB of locked memory",
        *(["rtkit"] if rights.rtkit else []),
    ])  # fmt: skip


def _gpu(gpu: GpuFacts) -> str:
    parts = [
        gpu.name,
        _gigabytes(gpu.memory_bytes),
        f"{gpu.multiprocessors} multiprocessors" if gpu.multiprocessors else "",
        f"compute {gpu.compute}" if gpu.compute else "",
        f"driver {gpu.driver}" if gpu.driver else "",
        f"CUDA {gpu.cuda}" if gpu.cuda else "",
        gpu.bus,
        f"node {gpu.node}" if gpu.node is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _audio(devices: Sequence[AudioDevice]) -> Iterator[str]:
    for device in devices[:MOST_AUDIO_ROWS]:
        ways = {"in": device.can_capture, "out": device.can_play}
        yield f"{device.name} ({device.system}: {' and '.join(way for way, has in ways.items() if has) or 'no way'})"
    if len(devices) > MOST_AUDIO_ROWS:
        yield f"and {len(devices) - MOST_AUDIO_ROWS} more; --json lists all"
    if not devices:
        yield "none"


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"


def _ranges(numbers: Sequence[int]) -> str:
    """0-3,8 for 0, 1, 2, 3, 8."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
