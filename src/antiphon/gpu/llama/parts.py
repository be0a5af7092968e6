"""What a step does beside its matrix products, in two ways: plain torch anywhere, Triton's kernels on CUDA.

Both compute the same; the plain one is what the other is checked against. Shapes are those of `kernels`.
Threads: as torch's; nothing here waits for the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere

if TYPE_CHECKING:
    from torch import Tensor

_CHUNKS = ((4, 64), (16, 128))  # (rows up to, tokens of a part): few rows have to be cut finer to fill the device
_LARGE_CHUNK = 256


class Parts(Protocol):
    """How the parts are computed; `out` is what a function writes where it says so."""

    name: str

    def add_norm(self, stream: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float) -> Tensor:
        """Add `delta` to the stream in place; the normalised stream."""
        ...

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """`rows` times the transposed `weight`."""
        ...

    def attend(
        self,
        qkv: Tensor,
        heads: int,
        turns: tuple[Tensor, Tensor],
        cache: tuple[Tensor, Tensor],
        positions: Tensor,
        table: Tensor,
    ) -> Tensor:
        """Place keys and values, then attend; (R, H D)."""
        ...

    def gate(self, both: Tensor) -> Tensor:
        """(R, 2 F) to (R, F)."""
        ...


class PlainParts:
    """Torch's own operations."""

    name = "plain"

    def add_norm(self, stream: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float) -> Tensor:
        if delta is not None:
            stream.add_(delta)
        wide = stream.float()
        scaled = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + epsilon)
        return scaled.to(stream.dtype) * weight

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(rows, weight, bias)

    def attend(
        self,
        qkv: Tensor,
        heads: int,
        turns: tuple[Tensor, Tensor],
        cache: tuple[Tensor, Tensor],
        positions: Tensor,
        table: Tensor,
    ) -> Tensor:
        keys, values = cache
        rows, kv_heads, page, size = qkv.shape[0], keys.shape[1], keys.shape[2], keys.shape[3]
        each = qkv.view(rows, heads + 2 * kv_heads, size)
        turned = _turned(each[:, : heads + kv_heads], turns, positions)
        pages = table.gather(1, (positions // page).long()[:, None])[:, 0].long()
        offsets = (positions % page).long()
        keys[pages, :, offsets] = turned[:, heads:]
        values[pages, :, offsets] = each[:, heads + kv_heads :]
        own_keys, own_values = _in_order(keys, table), _in_order(values, table)  # (R, K, P PAGE, D)
        seen = torch.arange(own_keys.shape[2], device=qkv.device)[None] <= positions[:, None]
        mixed = F.scaled_dot_product_attention(
            turned[:, :heads, None], own_keys, own_values, attn_mask=seen[:, None, None], enable_gqa=True
        )
        return mixed.reshape(rows, heads * size)

    def gate(self, both: Tensor) -> Tensor:
        gate, up = both.chunk(2, dim=-1)
        return F.silu(gate) * up


class TritonParts:
    """The kernels, for CUDA; buffers come from torch's allocator, so within a capture from the graph's pool."""

    name = "triton"

    def __init__(self, *, row_products: bool = True) -> None:
        """`row_products`: a single row's products by our kernel too, rather than by the library."""
        from antiphon.gpu.llama import kernels  # noqa: PLC0415 - Triton is there with CUDA only

        self._kernels = kernels
        self._row_products = row_products

    def add_norm(self, stream: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float) -> Tensor:
        out = torch.empty_like(stream)
        self._kernels.add_norm(stream, delta, weight, out, epsilon)
        return out

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if not self._row_products or rows.shape[0] > 1 or bias is not None:
            return F.linear(rows, weight, bias)
        out = rows.new_empty(1, weight.shape[0])
        self._kernels.row_product(rows, weight, out)
        return out

    def attend(
        self,
        qkv: Tensor,
        heads: int,
        turns: tuple[Tensor, Tensor],
        cache: tuple[Tensor, Tensor],
        positions: Tensor,
        table: Tensor,
    ) -> Tensor:
        rows, size = qkv.shape[0], cache[0].shape[3]
        chunk = next((chunk for most, chunk in _CHUNKS if rows <= most), _LARGE_CHUNK)
        splits = -(-table.shape[1] * cache[0].shape[2] // chunk)
        queries = qkv.new_empty(rows, heads, size)
        out = qkv.new_empty(rows, heads * size)
        parts = (
            qkv.new_empty(rows, heads, splits, size, dtype=torch.float32),
            qkv.new_empty(rows, heads, splits, dtype=torch.float32),
            qkv.new_empty(rows, heads, splits, dtype=torch.float32),
        )
        self._kernels.place(qkv, positions, table, turns, queries, cache)
        self._kernels.attend(queries, cache, positions, table, parts, out, chunk=chunk)
        return out

    def gate(self, both: Tensor) -> Tensor:
        out = both.new_empty(both.shape[0], both.shape[1] // 2)
        self._kernels.gate(both, out)
        return out


def fitting_parts(device: torch.device) -> Parts:
    """Triton's where it can be had, else torch's own."""
    if device.type != "cuda":
        return PlainParts()
    try:
        return TritonParts()
    except ImportError:
        return PlainParts()


def _turned(heads: Tensor, turns: tuple[Tensor, Tensor], positions: Tensor) -> Tensor:
    """(R, heads, D) rotated to the rows' positions."""
    cosines, sines = (each[positions.long()][:, None] for each in turns)  # (R, 1, D / 2)
    low, high = heads.float().chunk(2, dim=-1)
    return torch.cat((low * cosines - high * sines, high * cosines + low * sines), dim=-1).to(heads.dtype)


def _in_order(cache: Tensor, table: Tensor) -> Tensor:
    """(pages, K, PAGE, D) to what each row's pages hold, in order: (R, K, P PAGE, D)."""
    found = cache[table.long()].transpose(1, 2)  # (R, K, P, PAGE, D)
    return found.reshape(found.shape[0], found.shape[1], -1, found.shape[4])
