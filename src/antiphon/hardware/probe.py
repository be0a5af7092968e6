"""This machine -> all that it offers to a voice conversation, as one value.

Asks each probe in turn; one that breaks becomes a note, and the rest is told all the same. What counts is what this
process may use: a container's quota comes before its host's cores. Threads: blocks for about 0.1 s, with a GPU for
its driver's start, and never longer than the probes' time limits. Knows no settings and makes no choices.
"""

from __future__ import annotations

import platform
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from antiphon.hardware.control_groups import read_group_limits
from antiphon.hardware.facts import MachineFacts, Rights
from antiphon.hardware.kernel_files import read_text
from antiphon.hardware.probe_audio import probe_audio
from antiphon.hardware.probe_container import probe_container
from antiphon.hardware.probe_cores import probe_caches, probe_cores, probe_nodes
from antiphon.hardware.probe_cpu import CpuFacts, probe_cpu
from antiphon.hardware.probe_gpu import probe_gpus
from antiphon.hardware.probe_rights import probe_rights

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.hardware.facts import GpuFacts

Found = TypeVar("Found")

NOTHING_KNOWN = CpuFacts(
    model="", architecture=platform.machine(), logical_cores=1, usable_cores=1, flags=None, memory_bytes=None
)


def probe(root: Path = Path("/")) -> MachineFacts:
    """Look at this machine; `root` is where Linux's /proc and /sys are found. Never raises."""
    notes: list[str] = []
    ask = partial(_ask, notes)
    no_rights: tuple[Rights, tuple[str, ...]] = (Rights(), ())
    no_gpus: tuple[tuple[GpuFacts, ...], tuple[str, ...]] = ((), ())
    on_linux = sys.platform == "linux"
    rights, of_rights = ask("rights", lambda: probe_rights(root), no_rights)
    gpus, of_gpus = ask("GPUs", lambda: probe_gpus(root), no_gpus)
    return MachineFacts(
        cpu=ask("cpu", lambda: probe_cpu(root), NOTHING_KNOWN),
        quota_cores=ask("quota", lambda: read_group_limits(root).quota_cores, None) if on_linux else None,
        cores=ask("cores", lambda: probe_cores(root), ()),
        caches=ask("caches", lambda: probe_caches(root), ()),
        nodes=ask("memory nodes", lambda: probe_nodes(root), ()),
        rights=rights,
        gpus=gpus,
        audio=ask("sound devices", lambda: probe_audio(root), ()),
        system=ask("system", lambda: _system(root), ""),
        container=ask("container", lambda: probe_container(root), ""),
        notes=(*of_rights, *of_gpus, *notes),
    )


def _ask(notes: list[str], subject: str, look: Callable[[], Found], otherwise: Found) -> Found:
    try:
        return look()
    except Exception as error:  # noqa: BLE001 - on a machine that is broken in ways unforeseen, the rest is still told
        notes.append(f"{subject} could not be looked at: {type(error).__name__}: {error}")
        return otherwise


def _system(root: Path) -> str:
    release = read_text(root / "proc" / "sys" / "kernel" / "osrelease").strip()
    return f"{platform.system()} {release or platform.release()}"
