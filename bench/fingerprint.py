"""What a figure was measured on: the machine, its load and steal, the versions and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("antiphon", "numpy", "onnxruntime", "ctranslate2", "xllamacpp", "hibari-tts", "soxr")


def fingerprint() -> dict[str, object]:
    """Everything but the load, which `Load` measures over a run."""
    return {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
        "commit": commit(),
    }


def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def commit() -> str:
    """The commit, with a plus sign if files differ from it."""
    root = Path(__file__).parents[1]

    def run(*words: str) -> str:
        return subprocess.run(["git", *words], check=False, cwd=root, capture_output=True, text=True).stdout

    dirty = "+" if run("status", "--porcelain", "--untracked-files=no").strip() else ""
    return run("rev-parse", "--short=12", "HEAD").strip() + dirty


class Load:
    """Steal and foreign load over a run; `None` where the machine does not tell."""

    def __init__(self) -> None:
        self._before = _ticks()

    def report(self) -> dict[str, float | bool | None]:
        """Shares of all processor time since the start. A run with more than 2 % of steal is void."""
        after = _ticks()
        if self._before is None or after is None:
            return {"steal": None, "busy_by_others": None, "is_valid": None}
        total = sum(after[0]) - sum(self._before[0])
        steal = (after[0][7] - self._before[0][7]) / total
        busy = total - sum(after[0][place] - self._before[0][place] for place in (3, 4, 7))
        others = max(0.0, (busy - (after[1] - self._before[1])) / total)
        cores = os.cpu_count() or 1
        return {
            "steal": round(steal, 4),
            "busy_by_others": round(others * cores, 4),  # in cores
            "is_valid": steal <= 0.02 and others * cores <= 0.05,
        }


def _ticks() -> tuple[list[int], float] | None:
    """The machine's counters (user, nice, system, idle, iowait, irq, softirq, steal) and our own processor time."""
    try:
        line = Path("/proc/stat").read_text().split("\n", 1)[0]
    except OSError:
        return None
    used = os.times()
    own = (used.user + used.system + used.children_user + used.children_system) * os.sysconf("SC_CLK_TCK")
    return [int(value) for value in line.split()[1:9]], own
