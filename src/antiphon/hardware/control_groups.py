"""The control groups that hold this process -> the most it gets of the machine: cores, memory, real-time share.

A group gets no more than the groups that hold it, so the tightest counts. Both versions are read, and both may be
there at once. Reads files, starts nothing, never fails. Units: cores (1.5 of them is a quota), bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from antiphon.hardware.kernel_files import number_of, read_number, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """What the groups leave to this process; None where they set no limit."""

    quota_cores: float | None
    memory_bytes: int | None
    realtime: Literal["shared", "withheld", "inner"] = "shared"
    """Whether real-time threads may be refused because of the group: `withheld` by version 1, which gives each group a
    share of its own, at first none; `inner`: below the root of version 2, where kernels that are built with such shares
    give none at all, and others do not ask."""


def read_group_limits(root: Path = Path("/")) -> GroupLimits:
    """The limits over our group and all that hold it; `root` is where /proc and /sys are found."""
    mount = root / "sys" / "fs" / "cgroup"
    quotas: list[float] = []
    limits: list[int] = []
    shares: list[int] = []
    is_inner = False
    for line in read_text(root / "proc" / "self" / "cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            is_inner = any(_is_inner(group) for group in _upwards(mount, path))
            for group in _upwards(mount, path):
                quotas += _quota(*read_text(group / "cpu.max").split()[:2])
                limits += _limit(read_text(group / "memory.max"))
        for controller in {"cpu", "memory"} & set(controllers.split(",")):
            for group in _upwards(_v1_mount(mount, controllers, controller), path):
                if controller == "cpu":
                    quotas += _quota(read_text(group / "cpu.cfs_quota_us"), read_text(group / "cpu.cfs_period_us"))
                    share = read_number(group / "cpu.rt_runtime_us")  # our own group's is the first
                    shares += [share] if share is not None else []
                else:
                    limits += _limit(read_text(group / "memory.limit_in_bytes"))
    return GroupLimits(
        quota_cores=min(quotas, default=None),
        memory_bytes=min(limits, default=None),
        realtime="withheld" if 0 in shares[:1] else "inner" if is_inner else "shared",
    )


def _is_inner(group: Path) -> bool:
    """Whether a group shares out cores below the root, which alone has no type; a container may call any its root."""
    return "cpu" in read_text(group / "cgroup.controllers").split() and (group / "cgroup.type").exists()


def _v1_mount(mount: Path, controllers: str, controller: str) -> Path:
    joint = mount / controllers
    return joint if joint.is_dir() else mount / controller


def _upwards(mount: Path, path: str) -> list[Path]:
    """The group, then each that holds it; in a container the path may lead nowhere, and the mount is our group."""
    parts = [part for part in path.strip("/").split("/") if part and part != ".."]
    return [mount.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]


def _quota(quota: str = "", period: str = "") -> list[float]:
    share, whole = number_of(quota), number_of(period)  # "max", or a file that is not there, is None
    return [share / whole] if share and whole and share > 0 and whole > 0 else []  # version 1 writes -1 for no quota


def _limit(text: str) -> list[int]:
    limit = number_of(text)
    return [limit] if limit is not None and 0 <= limit < 1 << 60 else []  # version 1 writes about 2**63 for none
