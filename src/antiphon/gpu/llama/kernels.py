"""The parts of a step that are not matrix products, as Triton kernels for CUDA: a launch each instead of many.

Shapes: rows R, heads H, heads of keys and values K, elements of a head D, pages P of PAGE tokens. All tensors are
contiguous. Threads: each function only enqueues on the current stream and allocates nothing, so that it can be
captured. It does not know models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

_ROWS_OF_A_DOT = 16  # the least that a matrix unit multiplies; the heads that share keys are padded up to it
_MOST_ELEMENTS = 1024  # of an elementwise program


@triton.jit
def _add_norm_kernel(stream, delta, weight, out, epsilon, size, HAS_DELTA: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    inside = place < size
    at = row * size + place
    value = tl.load(stream + at, mask=inside, other=0.0)
    kind = value.dtype
    if HAS_DELTA:
        value = (value.to(tl.float32) + tl.load(delta + at, mask=inside, other=0.0).to(tl.float32)).to(kind)
        tl.store(stream + at, value, mask=inside)
    wide = value.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, axis=0) / size + epsilon)
    gain = tl.load(weight + place, mask=inside, other=0.0)
    tl.store(out + at, (wide * scale).to(kind) * gain, mask=inside)


@triton.jit
def _place_kernel(  # type: ignore[no-untyped-def]
    qkv,
    positions,
    table,
    cosines,
    sines,
    queries,
    keys,
    values,
    table_width,
    HEADS: tl.constexpr,  # noqa: N803
    KV_HEADS: tl.constexpr,  # noqa: N803
    HALF: tl.constexpr,  # noqa: N803
    PAGE: tl.constexpr,  # noqa: N803
):
    row, head = tl.program_id(0), tl.program_id(1)
    place = tl.arange(0, HALF)
    size: tl.constexpr = 2 * HALF
    source = qkv + row * (HEADS + 2 * KV_HEADS) * size + head * size + place
    low, high = tl.load(source), tl.load(source + HALF)
    kind = low.dtype
    position = tl.load(positions + row)
    if head < HEADS + KV_HEADS:
        cosine = tl.load(cosines + position * HALF + place)
        sine = tl.load(sines + position * HALF + place)
        first, second = low.to(tl.float32), high.to(tl.float32)
        low = (first * cosine - second * sine).to(kind)
        high = (second * cosine + first * sine).to(kind)
    if head < HEADS:
        target = queries + (row * HEADS + head) * size + place
        tl.store(target, low)
        tl.store(target + HALF, high)
    else:
        page = tl.load(table + row * table_width + position // PAGE).to(tl.int64)
        of_keys = head < HEADS + KV_HEADS
        own = head - HEADS if of_keys else head - HEADS - KV_HEADS
        at = ((page * KV_HEADS + own) * PAGE + position % PAGE) * size + place
        if of_keys:
            tl.store(keys + at, low)
            tl.store(keys + at + HALF, high)
        else:
            tl.store(values + at, low)
            tl.store(values + at + HALF, high)


@triton.jit
def _attend_kernel(  # type: ignore[no-untyped-def]
    queries,
    keys,
    values,
    positions,
    table,
    sums,
    tops,
    totals,
    scale,
    table_width,
    splits,
    KV_HEADS: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
    GROUP_ROWS: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
    PAGE: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
    CHUNK: tl.constexpr,  # noqa: N803
):
    """One part of the context of one row, for the query heads that share a head of keys."""
    row, own, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(positions + row) + 1
    start = split * CHUNK
    if start < length:
        end = tl.minimum(start + CHUNK, length)
        group = tl.arange(0, GROUP_ROWS)
        place = tl.arange(0, SIZE)
        token = tl.arange(0, BLOCK)
        real = group < GROUP
        head = own * GROUP + group
        query_at = (row * KV_HEADS * GROUP + head[:, None]) * SIZE + place[None, :]
        query = tl.load(queries + query_at, mask=real[:, None], other=0.0)
        top = tl.full((GROUP_ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((GROUP_ROWS,), tl.float32)
        mixed = tl.zeros((GROUP_ROWS, SIZE), tl.float32)
        for behind in range(0, CHUNK, BLOCK):  # a bound known beforehand; what lies beyond the row's end is not read
            first = start + behind
            page = tl.load(table + row * table_width + first // PAGE).to(tl.int64)
            base = ((page * KV_HEADS + own) * PAGE + first % PAGE) * SIZE
            known = first + token < end
            at = base + token[:, None] * SIZE + place[None, :]
            key = tl.load(keys + at, mask=known[:, None], other=0.0)
            score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
            score = tl.where(known[None, :], score, float("-inf"))
            higher = tl.maximum(top, tl.max(score, axis=1))
            fade = tl.exp2(top - higher)
            weight = tl.exp2(score - higher[:, None])
            value = tl.load(values + at, mask=known[:, None], other=0.0)
            mixed = mixed * fade[:, None] + tl.dot(weight.to(value.dtype), value, input_precision="ieee")
            total = total * fade + tl.sum(weight, axis=1)
            top = higher
        part = (row * KV_HEADS * GROUP + head) * splits + split
        tl.store(sums + part[:, None] * SIZE + place[None, :], mixed, mask=real[:, None])
        tl.store(tops + part, top, mask=real)
        tl.store(totals + part, total, mask=real)


@triton.jit
def _join_kernel(  # type: ignore[no-untyped-def]
    sums,
    tops,
    totals,
    positions,
    out,
    heads,
    splits,
    SPLITS: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
    CHUNK: tl.constexpr,  # noqa: N803
):
    """The parts of a row's context put together."""
    row, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(positions + row) + 1
    split = tl.arange(0, SPLITS)
    place = tl.arange(0, SIZE)
    there = (split < splits) & (split * CHUNK < length)
    part = (row * heads + head) * splits + split
    top = tl.load(tops + part, mask=there, other=float("-inf"))
    share = tl.exp2(top - tl.max(top, axis=0))
    total = tl.sum(tl.load(totals + part, mask=there, other=0.0) * share, axis=0)
    mixed = tl.load(sums + part[:, None] * SIZE + place[None, :], mask=there[:, None], other=0.0)
    joined = tl.sum(mixed * share[:, None], axis=0) / total
    tl.store(out + (row * heads + head) * SIZE + place, joined.to(out.dtype.element_ty))


@triton.jit
def _gate_kernel(both, out, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    gate = tl.load(both + row * 2 * size + place, mask=inside, other=0.0)
    wide = gate.to(tl.float32)
    up = tl.load(both + (row * 2 + 1) * size + place, mask=inside, other=0.0)
    tl.store(out + row * size + place, (wide * tl.sigmoid(wide)).to(gate.dtype) * up, mask=inside)


@triton.jit
def _row_product_kernel(row, weight, out, width, SIZE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """One row times a matrix: each program reads ROWS rows of the weight from end to end."""
    own = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = tl.arange(0, BLOCK)
    inside = own < width
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(0, SIZE, BLOCK):
        known = first + place < SIZE
        value = tl.load(row + first + place, mask=known, other=0.0).to(tl.float32)
        at = own[:, None].to(tl.int64) * SIZE + first + place[None, :]
        part = tl.load(weight + at, mask=inside[:, None] & known[None, :], other=0.0, eviction_policy="evict_first")
        total += part.to(tl.float32) * value[None, :]
    tl.store(out + own, tl.sum(total, axis=1).to(out.dtype.element_ty), mask=inside)


def add_norm(stream: Tensor, delta: Tensor | None, weight: Tensor, out: Tensor, epsilon: float) -> None:
    """stream += delta, then `out` = the stream normalised and weighted; all (R, hidden) but `weight` (hidden,)."""
    rows, size = stream.shape
    block = triton.next_power_of_2(size)
    _add_norm_kernel[(rows,)](
        stream,
        stream if delta is None else delta,
        weight,
        out,
        epsilon,
        size,
        HAS_DELTA=delta is not None,
        BLOCK=block,
        num_warps=8 if block >= 2048 else 4,
    )


def place(
    qkv: Tensor,  # (R, (H + 2 K) D)
    positions: Tensor,  # (R,) i32
    table: Tensor,  # (R, P) i32
    turns: tuple[Tensor, Tensor],  # cosines and sines, (context, D / 2) f32
    queries: Tensor,  # (R, H, D), written
    cache: tuple[Tensor, Tensor],  # keys and values, (pages, K, PAGE, D), written at the rows' positions
) -> None:
    """Rotate queries and keys to their positions, and put keys and values where their pages are."""
    keys, values = cache
    rows, heads, size = queries.shape
    kv_heads, page = keys.shape[1], keys.shape[2]
    _place_kernel[(rows, heads + 2 * kv_heads)](
        qkv,
        positions,
        table,
        *turns,
        queries,
        keys,
        values,
        table.stride(0),
        HEADS=heads,
        KV_HEADS=kv_heads,
        HALF=size // 2,
        PAGE=page,
        num_warps=1,
    )


def attend(
    queries: Tensor,  # (R, H, D)
    cache: tuple[Tensor, Tensor],  # (pages, K, PAGE, D)
    positions: Tensor,  # (R,) i32: each row sees its own position and those before it
    table: Tensor,  # (R, P) i32
    parts: tuple[Tensor, Tensor, Tensor],  # (R, H, splits, D), (R, H, splits), (R, H, splits), f32, for us to write
    out: Tensor,  # (R, H D), written
    *,
    chunk: int,  # tokens of a part; a multiple of the page
) -> None:
    """Attention of every row over its own pages; parts of a long context are computed side by side."""
    keys, values = cache
    rows, heads, size = queries.shape
    kv_heads, page = keys.shape[1], keys.shape[2]
    sums, tops, totals = parts
    splits = sums.shape[2]
    group = heads // kv_heads
    scale = size**-0.5 * 1.4426950408889634  # of exp2
    _attend_kernel[(rows, kv_heads, splits)](
        queries,
        keys,
        values,
        positions,
        table,
        sums,
        tops,
        totals,
        scale,
        table.stride(0),
        splits,
        KV_HEADS=kv_heads,
        GROUP=group,
        GROUP_ROWS=max(_ROWS_OF_A_DOT, triton.next_power_of_2(group)),
        SIZE=size,
        PAGE=page,
        BLOCK=min(64, page),
        CHUNK=chunk,
        num_warps=4,
        num_stages=3,
    )
    _join_kernel[(rows, heads)](
        sums,
        tops,
        totals,
        positions,
        out,
        heads,
        splits,
        SPLITS=triton.next_power_of_2(splits),
        SIZE=size,
        CHUNK=chunk,
        num_warps=2,
    )


def gate(both: Tensor, out: Tensor) -> None:
    """`out` (R, F) = silu of the first half of `both` (R, 2 F), times the second."""
    rows, size = out.shape
    _gate_kernel[(rows, triton.cdiv(size, _MOST_ELEMENTS))](both, out, size, BLOCK=_MOST_ELEMENTS, num_warps=4)


def row_product(row: Tensor, weight: Tensor, out: Tensor) -> None:
    """`out` (1, width) = `row` (1, size) times `weight` (width, size) transposed, for a single row."""
    width, size = weight.shape
    rows = 4 if width >= 8192 else 2
    _row_product_kernel[(triton.cdiv(width, rows),)](
        row, weight, out, width, SIZE=size, ROWS=rows, BLOCK=1024, num_warps=4
    )
