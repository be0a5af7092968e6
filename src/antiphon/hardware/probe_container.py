"""This process -> the kind of container it is in, or none.

Each kind leaves its own marks: files, variables, names of control groups, mounts. A virtual machine made from a
container's image keeps the files, so they count only where some namespace is not the system's first. Reads, starts
nothing, never fails.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.hardware.kernel_files import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_NAMESPACES = {  # the numbers that Linux gives to those of the system itself
    "pid": "pid:[4026531836]",
    "uts": "uts:[4026531838]",
    "ipc": "ipc:[4026531839]",
    "cgroup": "cgroup:[4026531835]",
}
WORDS = {  # in the names of control groups and mounts; the most telling first
    "kubepods": "kubernetes",
    "kubelet/pods": "kubernetes",
    "libpod": "podman",
    "containers/storage": "podman",
    "docker": "docker",
    "lxc": "lxc",
}


def probe_container(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> str:
    """docker, podman, kubernetes, lxc, or what the container's manager calls itself; "" if there is none."""
    if _is_outermost(root):
        return ""
    if "KUBERNETES_SERVICE_HOST" in environment or (root / "var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    told = environment.get("container", "") or read_text(root / "run/systemd/container").strip()
    if told:
        return "lxc" if told.startswith("lxc") else told[:32]
    marks = read_text(root / "proc/self/cgroup") + read_text(root / "proc/self/mountinfo")
    return next((kind for word, kind in WORDS.items() if word in marks), "")


def _is_outermost(root: Path) -> bool:
    """Whether every namespace that a container is made of is known to be the system's first."""
    for name, first in FIRST_NAMESPACES.items():
        try:
            if str((root / "proc/self/ns" / name).readlink()) != first:
                return False
        except (OSError, ValueError):
            return False
    return True
