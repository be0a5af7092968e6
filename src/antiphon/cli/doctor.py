"""antiphon doctor: what this machine has and lacks for a conversation, and how to mend what it lacks."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from antiphon.core.errors import AntiphonError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from antiphon.hardware.probe_cpu import CpuFacts
    from antiphon.models.store import Store

ENGINES = {  # distribution: what is imported of it
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "ctranslate2": "ctranslate2",
    "tokenizers": "tokenizers",
    "xllamacpp": "xllamacpp",
    "hibari-tts": "hibari",
    "soundfile": "soundfile",
    "soxr": "soxr",
    "pillow": "PIL",
}
OLDEST_PYTHON = (3, 11)
OLDEST_GLIBC = (2, 28)  # what the engines' wheels are built for
OLDEST_MACOS = (13, 0)
LEAST_MEMORY_BYTES = 2 * 10**9  # the default models and engines take well under 1 GB; the rest of a system, the other
INDEX_TIMEOUT_S = 3.0  # long enough for a far server, short enough to wait for when there is no network
IMPORT_TIMEOUT_S = 60.0  # onnxruntime from a cold, slow disk takes several seconds


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    subject: str
    level: Literal["ok", "warn", "fail"]
    text: str
    mend: str = ""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("doctor", help="what this machine lacks for a conversation, and how to mend it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look at everything; 1 if something fails."""
    findings: list[Finding] = []
    for check in checks():
        for finding in examine(*check):
            findings.append(finding)
            if not arguments.json:
                _show(finding)
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    failures = sum(finding.level == "fail" for finding in findings)
    if failures and not arguments.json:
        print(f"\n{failures} of {len(findings)} checks failed; each names its remedy")
    return 1 if failures else 0


def checks() -> list[tuple[str, Callable[[], Iterator[Finding]]]]:
    """All checks by subject, the quick ones first."""
    from antiphon.hardware.probe_cpu import probe_cpu
    from antiphon.models.store import Store

    cpu = probe_cpu()
    store = Store()
    return [
        ("python", _python),
        ("system", _system),
        ("cpu", partial(_cpu, cpu)),
        ("memory", partial(_memory, cpu)),
        ("cache", partial(_cache, store)),
        ("models", partial(_models, store)),
        ("engines", _engines),
        ("index", _index),
    ]


def examine(subject: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The check's findings; one that breaks becomes a finding itself."""
    try:
        yield from check()
    except AntiphonError as error:
        yield Finding(subject, "warn", error.message, error.hint)
    except Exception as error:  # noqa: BLE001 - on a machine that is broken in ways unforeseen, the rest is still told
        yield Finding(subject, "warn", f"could not be checked: {type(error).__name__}: {error}")


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    where = f"{version} ({sys.executable or 'unknown place'})"
    if sys.version_info >= OLDEST_PYTHON:
        yield Finding("python", "ok", where)
    else:
        yield Finding("python", "fail", where, "install Python 3.11 or newer")


def _system() -> Iterator[Finding]:
    name = f"{platform.system()} {platform.release()} {platform.machine()}"
    if sys.platform == "linux":
        library, version = platform.libc_ver()
        if library != "glibc":
            mend = "the engines' wheels need glibc: use a Debian, Ubuntu, Fedora or similar system or container"
            yield Finding("system", "fail", f"{name}, C library {library or 'unknown'}", mend)
        elif _numbers(version) < OLDEST_GLIBC:
            yield Finding("system", "fail", f"{name}, glibc {version}", "use a system with glibc 2.28 or newer")
        else:
            yield Finding("system", "ok", f"{name}, glibc {version}")
    elif sys.platform == "darwin" and _numbers(platform.mac_ver()[0]) < OLDEST_MACOS:
        yield Finding("system", "fail", f"macOS {platform.mac_ver()[0]}", "update to macOS 13 or newer")
    else:
        yield Finding("system", "ok", name)


def _cpu(cpu: CpuFacts) -> Iterator[Finding]:
    level: Literal["ok", "warn"] = "ok" if cpu.usable_cores >= 2 else "warn"
    mend = "" if level == "ok" else "replies will be slow on one core; allow two or more"
    cores = f"{cpu.model}: {cpu.usable_cores} of {cpu.logical_cores} logical cores usable"
    yield Finding("cores", level, cores, mend)
    if cpu.flags is None:
        yield Finding("instructions", "ok", f"not known on {platform.system()}")
        return
    flags = " ".join(sorted(cpu.flags)) or "none of interest"
    lacking = sorted({"avx2", "fma"} - cpu.flags) if cpu.is_x86 and sys.platform == "linux" else []
    if lacking:
        mend = "the built-in language model cannot run here; use an OpenAI-compatible server for it"
        yield Finding("instructions", "fail", f"{' and '.join(lacking)} missing ({flags})", mend)
    else:
        yield Finding("instructions", "ok", flags)


def _memory(cpu: CpuFacts) -> Iterator[Finding]:
    if cpu.memory_bytes is None:
        yield Finding("memory", "ok", "size not known")
        return
    text = f"{cpu.memory_bytes / 1e9:.1f} GB"
    if cpu.memory_bytes >= LEAST_MEMORY_BYTES:
        yield Finding("memory", "ok", text)
    else:
        yield Finding("memory", "warn", text, "2 GB or more are advised; allow the container more, or close programs")


def _cache(store: Store) -> Iterator[Finding]:
    from antiphon.cli.models import needed_names
    from antiphon.models.download import free_bytes_of

    states = [store.state(name) for name in needed_names(store)]
    missing_bytes = sum(state.model.size_bytes for state in states if state.condition != "present")
    folder = store.root
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free_bytes = free_bytes_of(folder)
    mend = "free some space there, or move the cache with ANTIPHON_CACHE=/another/folder"
    text = f"{store.root}, {free_bytes / 1e9:.1f} GB free"
    problem = _write_problem(folder)
    if problem:
        # a complete cache may well be read-only
        text = f"{store.root} cannot be written to: {problem}"
        mend = "make it writable, or move the cache with ANTIPHON_CACHE=/another/folder"
        yield Finding("cache", "fail" if missing_bytes else "warn", text, mend)
    elif free_bytes < 2 * missing_bytes:
        yield Finding("cache", "fail", f"{text}, {2 * missing_bytes / 1e6:.0f} MB needed", mend)
    else:
        yield Finding("cache", "ok", text)


def _write_problem(folder: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _models(store: Store) -> Iterator[Finding]:
    from antiphon.cli.models import needed_names

    for name in needed_names(store):
        state = store.state(name)
        if state.condition == "present":
            yield Finding(f"model {name}", "ok", "present")
        else:
            text = "missing" if state.condition == "missing" else f"damaged: {'; '.join(state.problems)}"
            yield Finding(f"model {name}", "fail", text, f"antiphon models fetch {name}")


def _engines() -> Iterator[Finding]:
    from antiphon.hardware.probe_engines import probe_imports

    results = probe_imports(list(ENGINES.values()), timeout_s=IMPORT_TIMEOUT_S)
    for distribution, result in zip(ENGINES, results, strict=True):
        if result.problem:
            yield Finding(distribution, "fail", result.problem, engine_remedy(distribution, result.problem))
        else:
            yield Finding(distribution, "ok", _version(distribution))


def engine_remedy(distribution: str, problem: str) -> str:
    """What to do about an engine that does not load."""
    if "libgomp" in problem:
        return "install the GNU OpenMP library: apt install libgomp1, dnf install libgomp, or your system's like"
    if "signal 4" in problem:
        return "this CPU lacks instructions that the library was built for; see instructions above"
    if "DLL load failed" in problem:
        return "install the Microsoft Visual C++ Redistributable"
    return f"{Path(sys.executable).name} -m pip install --force-reinstall {distribution}"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "version unknown"


def _index() -> Iterator[Finding]:
    from antiphon.models.catalogue import CATALOGUE, DEFAULT_NAMES
    from antiphon.models.package_index import INDEX_HINT, PackageIndex
    from antiphon.models.source import WheelSource, parse_source

    index = PackageIndex()
    sources = [parse_source(text) for name in DEFAULT_NAMES for text in CATALOGUE[name].files[0].sources]
    distribution = next(source.distribution for source in sources if isinstance(source, WheelSource))
    report = index.reachable(distribution, timeout_s=INDEX_TIMEOUT_S)
    for place, problem in report:
        if problem:
            yield Finding("index", "warn", problem, f"only needed for downloads: {INDEX_HINT}")
        else:
            yield Finding("index", "ok", f"{place} answers")
    if not report:
        yield Finding("index", "warn", "no package index is configured", f"only needed for downloads: {INDEX_HINT}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _show(finding: Finding) -> None:
    from rich.console import Console
    from rich.text import Text

    colour = {"ok": "green", "warn": "yellow", "fail": "red"}[finding.level]
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text.assemble((f"{finding.level:<4}", colour), f"  {finding.subject}: {finding.text}"))
    if finding.mend and finding.level != "ok":
        console.print(Text(f"      hint: {finding.mend}"))
