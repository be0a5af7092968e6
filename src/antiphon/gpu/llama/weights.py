"""Tensors by Hugging Face's names in, a model's weights as a step wants them out: fused, on the device, in one dtype.

Queries, keys and values are one matrix, and so are gate and up: a product less each, which at small batches is time.
Threads: loading blocks. It does not know where the tensors come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from antiphon.gpu.llama.shape import LlamaShape

_SPREAD = 0.02  # of random weights: the usual one of trained models' first day, which keeps 32 layers finite


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """Of one layer; matrices are (out, in)."""

    attention_norm: Tensor  # (hidden,)
    qkv: Tensor  # ((H + 2 K) D, hidden)
    qkv_bias: Tensor | None  # ((H + 2 K) D,)
    output: Tensor  # (hidden, H D)
    feed_norm: Tensor  # (hidden,)
    gate_up: Tensor  # (2 feed_forward, hidden), the gate first
    down: Tensor  # (hidden, feed_forward)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaWeights:
    """Of a whole model."""

    shape: LlamaShape
    embeddings: Tensor  # (vocabulary, hidden)
    layers: tuple[LayerWeights, ...]
    norm: Tensor  # (hidden,)
    head: Tensor  # (vocabulary, hidden); the embeddings themselves where the model ties them

    @property
    def device(self) -> torch.device:
        return self.embeddings.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embeddings.dtype


def gather_weights(
    shape: LlamaShape, tensor: Callable[[str], Tensor], *, device: torch.device, dtype: torch.dtype
) -> LlamaWeights:
    """Put together what `tensor` gives by name, one after the other, so that no more than a layer is there twice.

    Raises:
        CallerError: a tensor has another shape than the model's numbers say.
        and what `tensor` raises where one is missing.
    """

    def taken(name: str, *size: int) -> Tensor:
        found = tensor(name)
        if tuple(found.shape) != size:
            raise CallerError(
                f"{name} has the shape {tuple(found.shape)} where the model's numbers say {size}",
                hint="fetch the model again; it does not fit its own configuration",
            )
        return found.to(device=device, dtype=dtype)

    def layer(number: int) -> LayerWeights:
        at = f"model.layers.{number}"
        query, kept = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
        sides = (("q", query), ("k", kept), ("v", kept))
        hidden, feed = shape.hidden, shape.feed_forward
        bias = [taken(f"{at}.self_attn.{side}_proj.bias", size) for side, size in sides] if shape.has_qkv_bias else None
        return LayerWeights(
            attention_norm=taken(f"{at}.input_layernorm.weight", hidden),
            qkv=torch.cat([taken(f"{at}.self_attn.{side}_proj.weight", size, hidden) for side, size in sides]),
            qkv_bias=torch.cat(bias) if bias else None,
            output=taken(f"{at}.self_attn.o_proj.weight", hidden, query).contiguous(),
            feed_norm=taken(f"{at}.post_attention_layernorm.weight", hidden),
            gate_up=torch.cat([taken(f"{at}.mlp.{side}_proj.weight", feed, hidden) for side in ("gate", "up")]),
            down=taken(f"{at}.mlp.down_proj.weight", hidden, feed).contiguous(),
        )

    embeddings = taken("model.embed_tokens.weight", shape.vocabulary, shape.hidden).contiguous()
    return LlamaWeights(
        shape=shape,
        embeddings=embeddings,
        layers=tuple(layer(number) for number in range(shape.layers)),
        norm=taken("model.norm.weight", shape.hidden),
        head=embeddings if shape.is_tied else taken("lm_head.weight", shape.vocabulary, shape.hidden).contiguous(),
    )


def random_weights(shape: LlamaShape, *, device: torch.device, dtype: torch.dtype, seed: int = 0) -> LlamaWeights:
    """Weights for timing and for tests; the same ones for the same seed and device."""
    source = torch.Generator(device=device).manual_seed(seed)

    def drawn(*size: int) -> Tensor:
        return torch.empty(size, device=device, dtype=dtype).normal_(0.0, _SPREAD, generator=source)

    def ones() -> Tensor:
        return torch.ones(shape.hidden, device=device, dtype=dtype)

    layers = tuple(
        LayerWeights(
            attention_norm=ones(),
            qkv=drawn(shape.qkv_width, shape.hidden),
            qkv_bias=drawn(shape.qkv_width) if shape.has_qkv_bias else None,
            output=drawn(shape.hidden, shape.heads * shape.head_size),
            feed_norm=ones(),
            gate_up=drawn(2 * shape.feed_forward, shape.hidden),
            down=drawn(shape.hidden, shape.feed_forward),
        )
        for _ in range(shape.layers)
    )
    embeddings = drawn(shape.vocabulary, shape.hidden)
    head = embeddings if shape.is_tied else drawn(shape.vocabulary, shape.hidden)
    return LlamaWeights(shape=shape, embeddings=embeddings, layers=layers, norm=ones(), head=head)
