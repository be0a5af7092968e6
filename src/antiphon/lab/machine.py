"""What a figure was measured on: the machine, its versions, the commit; and what else it had to do meanwhile.

Units: shares of all processor time, cores. Threads: any; reading takes well under a millisecond but for the commit,
which asks git. Where the machine does not tell, a value is None.
"""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.lab.validity import MOST_BUSY_CORES, MOST_STEAL

if TYPE_CHECKING:
    from collections.abc import Iterable

LIBRARIES = ("antiphon", "numpy", "websockets", "soxr", "onnxruntime", "ctranslate2", "xllamacpp", "hibari-tts")
TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_IDLE, _WAITING, _STEAL = 3, 4, 7  # columns of /proc/stat


def fingerprint() -> dict[str, object]:
    """Everything but the load, which `Load` measures over a run."""
    return {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: found for name in LIBRARIES if (found := _version(name))},
        "commit": _commit(),
    }


class Load:
    """What the machine did during a run; `pids` are servers that belong to it.

    So do processes that were started here, once they have been waited for.
    """

    def __init__(self, *pids: int | None) -> None:
        self._pids = tuple(pid for pid in pids if pid is not None)
        self._before = _ticks()
        self._own_before = _own_ticks(self._pids)

    def report(self) -> dict[str, float | bool | None]:
        """Since the start; a server that was not started here must still be there."""
        after = _ticks()
        if self._before is None or after is None:
            return {"steal": None, "busy_by_others": None, "is_valid": None}
        passed = [now - then for now, then in zip(after, self._before, strict=True)]
        total = max(1, sum(passed))
        busy = total - passed[_IDLE] - passed[_WAITING] - passed[_STEAL]
        own = _own_ticks(self._pids) - self._own_before
        cores = os.cpu_count() or 1
        steal, others = passed[_STEAL] / total, max(0.0, (busy - own) / total) * cores
        is_valid = steal <= MOST_STEAL and others <= MOST_BUSY_CORES
        return {"steal": round(steal, 4), "busy_by_others": round(others, 4), "is_valid": is_valid}


def server_usage(pid: int) -> dict[str, float]:
    """Processor seconds so far and resident MiB of a process; empty where the machine does not tell."""
    try:
        resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        ticks = _process_ticks(pid)
    except (OSError, ValueError, IndexError):
        return {}
    mebibytes = resident_pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return {"cpu_s": ticks / TICKS_PER_S, "rss_mib": round(mebibytes, 1)}


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """The commit, with a plus sign if files differ from it; empty outside a checkout."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return ""

    def run(*words: str) -> str:
        return subprocess.run(["git", *words], check=False, cwd=root, capture_output=True, text=True).stdout  # noqa: S603, S607

    try:
        dirty = "+" if run("status", "--porcelain", "--untracked-files=no").strip() else ""
        return run("rev-parse", "--short=12", "HEAD").strip() + dirty
    except OSError:
        return ""


def _ticks() -> list[int] | None:
    """The machine's counters: user, nice, system, idle, iowait, irq, softirq, steal."""
    try:
        line = Path("/proc/stat").read_text().split("\n", 1)[0]
        return [int(value) for value in line.split()[1:9]]
    except (OSError, ValueError):
        return None


def _own_ticks(pids: Iterable[int]) -> float:
    """Of this process, of those that it has waited for, and of these that run."""
    used = os.times()
    own = (used.user + used.system + used.children_user + used.children_system) * TICKS_PER_S
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            own += _process_ticks(pid)
    return own


def _process_ticks(pid: int) -> int:
    behind_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(behind_name[11]) + int(behind_name[12])  # user and system time
