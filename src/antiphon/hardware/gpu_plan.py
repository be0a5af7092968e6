"""A GPU as it was found -> how its multiprocessors, stream levels and memory are to be shared, and why.

A proposal from figures alone, so that it fits GPUs that nobody has tried: what runs on the GPU reads it.
Units: multiprocessors, bytes; levels as CUDA counts them, the lowest comes first. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.hardware.reasons import Reason, decide

if TYPE_CHECKING:
    from antiphon.hardware.facts import GpuFacts
    from antiphon.hardware.plan_settings import GpuSettings

MIB = 2**20
OTHERS_SHARE = 0.25  # writing waits for memory, not for multiprocessors: an 8B step took 8.8 ms on 100 of 132, 6 on all
FEWEST_TO_SPLIT = 32  # of fewer, a quarter holds no kernel's worth of blocks
LEVELS = (  # a stage, and the level its stream and its graphs are captured at; torch knows four
    ("writing replies", -3),
    ("recognising a pause", -2),
    ("reading prompts and looking ahead", -1),
    ("copies and loading", 0),
)
OWN_SHARE = 0.1  # of the memory: the driver's, graphs' and working space
WEIGHTS_SHARE = 0.5  # of the rest, where the models' size is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan:
    """How one GPU is shared."""

    device: str  # cuda:0
    name: str
    reply_multiprocessors: int | None  # kept for writing replies; None: no split, levels alone
    other_multiprocessors: int | None
    levels: tuple[tuple[str, int], ...]
    context_bytes: int  # for conversations
    reasons: tuple[Reason, ...]


def plan_gpu(gpu: GpuFacts, settings: GpuSettings) -> GpuPlan:
    """How to share `gpu`.

    Raises:
        CallerError: a setting asks for more than it has.
    """
    replies, splitting = _split(gpu, settings)
    planned = int((1 - OWN_SHARE) * (1 - WEIGHTS_SHARE) * gpu.memory_bytes)
    asked = settings.context_mib * MIB
    if asked > gpu.memory_bytes:
        raise CallerError(
            f"gpu.context_mib is {settings.context_mib}, but cuda:{gpu.index} has {gpu.memory_bytes / MIB:.0f} MiB",
            hint="leave it at 0, or use less than the whole",
        )
    context_bytes, remembering = decide(
        "memory for contexts",
        planned,
        f"Of {gpu.memory_bytes / 1e9:.0f} GB a tenth is for the driver and working space, half of the rest for "
        f"weights; the rest holds as many tokens of an 8B model as {planned / 131_072 / 1e3:.0f} thousand.",
        setting="gpu.context_mib",
        given=asked or None,
        show=lambda count: f"{count / 1e9:.1f} GB",
    )
    levels = Reason(
        choice="stream levels",
        value=", ".join(f"{level} {stage}" for stage, level in LEVELS),
        text="A level is fixed when a graph is captured, not when it is replayed: an 8B step beside a vocoder took "
        "136 ms captured at level 0, 22 ms at a high one.",
    )
    total = gpu.multiprocessors
    return GpuPlan(
        device=f"cuda:{gpu.index}",
        name=gpu.name,
        reply_multiprocessors=replies,
        other_multiprocessors=None if replies is None or total is None else total - replies,
        levels=LEVELS,
        context_bytes=context_bytes,
        reasons=(splitting, levels, remembering),
    )


def step_of(compute: str) -> tuple[int, int]:
    """(least, multiple) of multiprocessors that a part of such a GPU may have; the coarsest where it is not known."""
    major = compute.partition(".")[0]
    steps = {"6": (1, 1), "7": (2, 2), "8": (4, 2)}
    return steps.get(major, (8, 8))


def _split(gpu: GpuFacts, settings: GpuSettings) -> tuple[int | None, Reason]:
    total, asked = gpu.multiprocessors, settings.reply_multiprocessors
    least, multiple = step_of(gpu.compute)
    planned: int | None = None
    if total is None:
        why = "How many multiprocessors it has could not be found out: levels alone order the work."
    elif total < FEWEST_TO_SPLIT:
        why = f"{total} multiprocessors are too few to part: levels alone order the work."
    else:
        others = max(least, int(OTHERS_SHARE * total) // multiple * multiple)
        planned = total - others
        why = (
            f"{others} of {total} are for hearing and the rest of the work, in steps of {multiple}: on 132 this held a "
            f"step to 1.14 times its time alone, where levels gave 2.5 times and nothing 16 times."
        )
    if asked and (total is None or not least <= asked <= total - least):
        most = "an unknown number" if total is None else str(total)
        raise CallerError(
            f"gpu.reply_multiprocessors is {asked}, but cuda:{gpu.index} has {most} to part",
            hint="leave it at 0" if total is None or total < 2 * least else f"use {least} to {total - least}, or 0",
        )
    return decide(
        "multiprocessors for replies",
        planned,
        why,
        setting="gpu.reply_multiprocessors",
        given=asked or None,
        show=lambda count: "not parted" if count is None else f"{count} of {total}",
    )
