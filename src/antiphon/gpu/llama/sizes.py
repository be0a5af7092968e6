"""An engine's step and what the plan allows -> the steps to capture at the start, and how many callers write in one.

Threads: pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.gpu.batch_size import BandwidthModel, Fixed
from antiphon.gpu.engine_lane import MOST_CALLERS
from antiphon.gpu.llama.pages import PAGE_TOKENS
from antiphon.gpu.llama.shape import least_bucket
from antiphon.gpu.llama.step import ROW_BUCKETS, StepBucket

if TYPE_CHECKING:
    from antiphon.gpu.batch_size import Sizing
    from antiphon.gpu.llama.step import LlamaStep

_UNSEEN_BYTES_S = 8e12  # of a GPU's memory, beyond all there are: until steps were timed, no size is ruled out by it


def at_start(step: LlamaStep, reply_batch: int, read_tokens: int) -> tuple[StepBucket, ...]:
    """The buckets that are captured at the start: all that write and read, at every length of context.

    Those that draw their tokens, or run at another level than a reply's, are captured when they were first asked for.
    """
    rows = {size for size in ROW_BUCKETS if size <= least_bucket(ROW_BUCKETS, min(reply_batch, MOST_CALLERS))}
    rows |= {
        least_bucket(ROW_BUCKETS, min(count, ROW_BUCKETS[-1])) for count in (read_tokens, read_tokens + reply_batch)
    }
    contexts = [PAGE_TOKENS]
    while contexts[-1] < step.context_tokens:
        contexts.append(min(2 * contexts[-1], step.context_tokens))
    return tuple(StepBucket(count, context, draws=False) for count in sorted(rows) for context in contexts)


def sizing_of(step: LlamaStep, reply_batch: int, *, adapts: bool) -> Sizing:
    """How many write in a step: at most `reply_batch`, fewer where steps would become too long if it `adapts`."""
    if not adapts:
        return Fixed(size=reply_batch)
    shape, element_bytes = step.weights.shape, step.weights.dtype.itemsize
    return BandwidthModel(
        buckets=tuple(size for size in ROW_BUCKETS if size <= MOST_CALLERS),
        weight_bytes=shape.step_weights * element_bytes,
        caller_bytes=shape.kv_bytes(step.context_tokens // 2, element_bytes),
        peak_bytes_s=_UNSEEN_BYTES_S,
    )
