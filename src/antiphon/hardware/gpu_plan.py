"""A GPU as it was found -> how its multiprocessors, stream levels, batches and memory are to be shared, and why.

A proposal from figures alone, so that it fits GPUs that nobody has tried: what runs on the GPU reads it. What a step
takes is reckoned for a model of 8 billion parameters, the size that such GPUs are bought for.
Units: multiprocessors, bytes; levels as CUDA counts them, the lowest comes first. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.hardware.gpu_parts import Cut, Pressure, cut, cuts, planned_replies, step_of
from antiphon.hardware.reasons import Reason, decide

if TYPE_CHECKING:
    from antiphon.hardware.facts import GpuFacts
    from antiphon.hardware.gpu_parts import Shares
    from antiphon.hardware.plan_settings import GpuSettings

MIB = 2**20
LEVELS = (  # a stage, and the level its stream and its graphs are captured at; torch knows four
    ("writing replies", -3),
    ("recognising a pause", -2),
    ("reading prompts and looking ahead", -1),
    ("copies and loading", 0),
)
OWN_SHARE = 0.1  # of the memory: the driver's, graphs' and working space
WEIGHTS_SHARE = 0.5  # of the rest, where the models' size is not known
TOKEN_BYTES = 131_072  # of context, for an 8B model with 8 key-value heads, in 16 bits
WEIGHT_BYTES, QUANTISED_BYTES = 16_000_000_000, 4_700_000_000  # of an 8B model in 16 bits, and in 4 to 5
ABOVE_FLOOR = 1.5  # a step takes so much longer than its bytes at the peak: 8.7 ms for 5.7 on an H200
STEP_LIMIT_S = 0.025  # forty tokens a second, three times as many as are spoken
BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan:
    """How one GPU is shared."""

    device: str  # cuda:0
    name: str
    reply_multiprocessors: int | None  # kept for writing replies; None: no split, levels alone
    other_multiprocessors: int | None
    cuts: tuple[tuple[str, int, int], ...]  # when, for replies, for the rest
    levels: tuple[tuple[str, int], ...]
    reply_batch: int  # most callers in one step
    context_bytes: int  # for conversations
    reasons: tuple[Reason, ...]


def plan_gpu(gpu: GpuFacts, settings: GpuSettings, shares: Shares, *, context_tokens: int = 2048) -> GpuPlan:
    """How to share `gpu`.

    Raises:
        CallerError: a setting asks for more than it has.
    """
    parts, splitting = _split(gpu, settings, shares)
    context_bytes, remembering = _memory(gpu, settings)
    batch, batching = _batch(gpu, settings, context_bytes, context_tokens)
    levels = Reason(
        choice="stream levels",
        value=", ".join(f"{level} {stage}" for stage, level in LEVELS) if settings.priorities else "all alike",
        text="A level is fixed when a graph is captured, not when it is replayed: an 8B step beside a vocoder took "
        "136 ms captured at level 0, 22 ms at a high one.",
    )
    usual = parts.get(Pressure.USUAL)
    reasons = [splitting, *_pressed(parts), levels, batching, remembering]
    return GpuPlan(
        device=f"cuda:{gpu.index}",
        name=gpu.name,
        reply_multiprocessors=usual.replies if usual else None,
        other_multiprocessors=usual.others if usual else None,
        cuts=tuple((str(pressure), each.replies, each.others) for pressure, each in parts.items()),
        levels=LEVELS if settings.priorities else tuple((stage, 0) for stage, _ in LEVELS),
        reply_batch=batch,
        context_bytes=context_bytes,
        reasons=tuple(reasons),
    )


def _split(gpu: GpuFacts, settings: GpuSettings, shares: Shares) -> tuple[dict[Pressure, Cut], Reason]:
    total, asked = gpu.multiprocessors, settings.reply_multiprocessors
    step = least, multiple = step_of(gpu.compute)
    if asked > 0 and (total is None or not least <= asked <= total - least):
        most = "an unknown number" if total is None else str(total)
        raise CallerError(
            f"gpu.reply_multiprocessors is {asked}, but cuda:{gpu.index} has {most} to part",
            hint="leave it at 0" if total is None or total < 2 * least else f"use {least} to {total - least}, or 0",
        )
    planned = None if total is None else planned_replies(total, step)
    by_shares = None if total is None else cut(total, shares.hear_share, step)
    if total is None:
        why = "How many multiprocessors it has could not be found out: levels alone order the work."
    elif planned is None:
        why = f"{total} multiprocessors are too few to part: levels alone order the work."
    else:
        why = (
            f"{total - planned} of {total} are for hearing and the rest of the work, in steps of {multiple}: on 132 "
            f"this held a step to 1.14 times its time alone, where levels gave 2.5 times and nothing 16 times."
        )
    given = asked or None
    if asked < 0:
        given = by_shares.replies if by_shares else None
    chosen, reason = decide(
        "multiprocessors for replies",
        planned,
        why,
        setting="gpu.reply_multiprocessors",
        given=given,
        show=lambda count: "not parted" if count is None else f"{count} of {total}",
    )
    if chosen is None or total is None:
        return {}, reason
    if not settings.partitions:
        off = Reason(
            choice=reason.choice,
            value="not parted",
            text="Parts are turned off: levels alone order the work.",
            setting="gpu.partitions",
            is_overridden=True,
        )
        return {}, off
    found = cuts(total, shares, step, replies=0 if asked < 0 else chosen)
    if found and asked >= 0:  # as many as were chosen, not the nearest share
        found[Pressure.USUAL] = Cut(replies=chosen, others=total - chosen)
    return found, reason


def _pressed(parts: dict[Pressure, Cut]) -> list[Reason]:
    return [
        Reason(
            choice=f"the same when {pressure}",
            value=f"{each.replies} of {each.replies + each.others}",
            text="The scheduler's shares in steps that the chip can be parted in; nobody's part lies idle, for whoever "
            "is alone has the whole.",
            setting="scheduling.most_speak_share" if pressure is Pressure.REPLIES_LATE else "scheduling.hear_share",
        )
        for pressure, each in parts.items()
        if pressure is not Pressure.USUAL
    ]


def _memory(gpu: GpuFacts, settings: GpuSettings) -> tuple[int, Reason]:
    planned = int((1 - OWN_SHARE) * (1 - WEIGHTS_SHARE) * gpu.memory_bytes)
    asked = settings.context_mib * MIB
    if asked > gpu.memory_bytes:
        raise CallerError(
            f"gpu.context_mib is {settings.context_mib}, but cuda:{gpu.index} has {gpu.memory_bytes / MIB:.0f} MiB",
            hint="leave it at 0, or use less than the whole",
        )
    return decide(
        "memory for contexts",
        planned,
        f"Of {gpu.memory_bytes / 1e9:.0f} GB a tenth is for the driver and working space, half of the rest for "
        f"weights; the rest holds as many tokens of an 8B model as {planned / TOKEN_BYTES / 1e3:.0f} thousand.",
        setting="gpu.context_mib",
        given=asked or None,
        show=lambda count: f"{count / 1e9:.1f} GB",
    )


def _batch(gpu: GpuFacts, settings: GpuSettings, context_bytes: int, context_tokens: int) -> tuple[int, Reason]:
    """The most callers in one step: what memory holds, and what the memory's bandwidth lets a step read in its time."""
    caller_bytes = context_tokens * TOKEN_BYTES
    held = max(1, context_bytes // caller_bytes)
    weight_bytes = WEIGHT_BYTES if gpu.memory_bytes >= 3 * WEIGHT_BYTES else QUANTISED_BYTES
    by_memory = max((size for size in BATCHES if size <= held), default=1)
    if gpu.bandwidth_bytes_s is None:
        planned = by_memory
        why = (
            f"Memory holds {held} callers of {context_tokens} tokens of an 8B model; how fast it is could not be found "
            f"out, so that what a step takes is not reckoned."
        )
    else:
        steps_s = {
            size: ABOVE_FLOOR * (weight_bytes + size * caller_bytes) / gpu.bandwidth_bytes_s
            for size in BATCHES
            if size <= by_memory
        }
        planned = max((size for size, seconds in steps_s.items() if seconds <= STEP_LIMIT_S), default=1)
        why = (
            f"A step of an 8B model of {weight_bytes / 1e9:.1f} GB then takes about {steps_s[planned] * 1e3:.0f} ms: "
            f"the bytes it reads at {gpu.bandwidth_bytes_s / 1e12:.1f} TB/s and half as much again, with "
            f"{context_tokens} tokens of each caller. {STEP_LIMIT_S * 1e3:.0f} ms are the limit; memory holds {held}."
        )
    return decide("callers in one step", planned, why, setting="gpu.reply_batch", given=settings.reply_batch or None)
