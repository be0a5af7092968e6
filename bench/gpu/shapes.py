"""Real shapes with random weights, as bodies that own their buffers: what the GPU lane is measured with.

`Decoder` is one step of an 8B Llama (grouped-query attention over a padded cache, a length for each caller, the token
chosen on the GPU), `Encoder` the transformer of Whisper large-v3 on a window of 10 s, `Vocoder` a HiFi-GAN V1
generator, `Hog` nothing but reads and writes of memory. `tiny=True` gives the same code small enough for a processor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable


def _random(device: torch.device, dtype: torch.dtype, *shape: int, scale: float | None = None) -> torch.Tensor:
    out = torch.empty(*shape, device=device, dtype=dtype)
    return out.normal_(0.0, scale if scale is not None else 1.0 / math.sqrt(shape[-1]))


class Decoder:
    """One token for each of `bucket` callers; every caller has `context` tokens of cache, some of them used."""

    def __init__(self, device: torch.device, *, tiny: bool, most: int = 64, context: int = 1024) -> None:
        self.layers, self.width, self.inner = (2, 64, 128) if tiny else (32, 4096, 14336)
        self.heads, self.groups, self.head = (4, 2, 16) if tiny else (32, 8, 128)
        self.words = 256 if tiny else 128_256
        self.context = 32 if tiny else context
        dtype = self.dtype = torch.float32 if tiny else torch.bfloat16
        fused = (self.heads + 2 * self.groups) * self.head

        def weight(*shape: int) -> torch.Tensor:
            return _random(device, dtype, *shape)

        self.weights = [
            (
                weight(fused, self.width),
                weight(self.width, self.heads * self.head),
                weight(2 * self.inner, self.width),
                weight(self.width, self.inner),
            )
            for _ in range(self.layers)
        ]
        self.embedding, self.unembedding = weight(self.words, self.width), weight(self.words, self.width)
        self.scale = torch.ones(self.width, device=device, dtype=dtype)
        cache = (self.layers, most, self.groups, self.context, self.head)
        self.keys = _random(device, dtype, *cache, scale=1.0)
        self.values = _random(device, dtype, *cache, scale=1.0)
        self.tokens = torch.randint(0, self.words, (most,), device=device)
        lengths = torch.linspace(self.context // 4, self.context - 1, most, device=device).long()
        self.positions = lengths.flip(0).contiguous()  # the longest first: small batches are long ones
        self.rows = torch.arange(most, device=device)
        self.places = torch.arange(self.context, device=device)
        angle = torch.outer(
            torch.arange(self.context, device=device, dtype=torch.float32),
            500_000.0 ** (-torch.arange(0, self.head, 2, device=device, dtype=torch.float32) / self.head),
        )
        self.cosine, self.sine = angle.cos().to(dtype), angle.sin().to(dtype)
        self.logits = torch.empty(most, self.words, device=device, dtype=dtype)

    @property
    def weight_bytes(self) -> int:
        """That one step reads."""
        tensors = [tensor for layer in self.weights for tensor in layer] + [self.unembedding]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def caller_bytes(self) -> int:
        """Of cache that one step reads for each caller: attention goes over the padded whole."""
        return 2 * self.layers * self.groups * self.context * self.head * self.keys.element_size()

    def body(self, bucket: int) -> Callable[[], None]:
        """One step of `bucket` callers."""

        def step() -> None:
            positions, rows = self.positions[:bucket], self.rows[:bucket]
            cosine, sine = self.cosine[positions, None], self.sine[positions, None]  # (B, 1, D / 2)
            mask = (self.places[None] <= positions[:, None])[:, None, None]  # (B, 1, 1, S)
            hidden = self.embedding[self.tokens[:bucket]]  # (B, C)
            for layer, (qkv, out, up, down) in enumerate(self.weights):
                normed = functional.rms_norm(hidden, (self.width,), self.scale)
                parts = functional.linear(normed, qkv).view(bucket, self.heads + 2 * self.groups, self.head)
                turned = self._turn(parts[:, : self.heads + self.groups], cosine, sine)
                keys, values = self.keys[layer], self.values[layer]
                keys[rows, :, positions] = turned[:, self.heads :]
                values[rows, :, positions] = parts[:, self.heads + self.groups :]
                heard = functional.scaled_dot_product_attention(
                    turned[:, : self.heads, None], keys[:bucket], values[:bucket], attn_mask=mask, enable_gqa=True
                )
                hidden = hidden + functional.linear(heard.reshape(bucket, -1), out)
                gate, value = functional.linear(functional.rms_norm(hidden, (self.width,), self.scale), up).chunk(
                    2, dim=-1
                )
                hidden = hidden + functional.linear(functional.silu(gate) * value, down)
            normed = functional.rms_norm(hidden, (self.width,), self.scale)
            logits = functional.linear(normed, self.unembedding)
            self.logits[:bucket].copy_(logits)
            self.tokens[:bucket].copy_(logits.argmax(-1))
            self.positions[:bucket].copy_((positions + 1).clamp_(max=self.context - 1))

        return step

    @staticmethod
    def _turn(heads: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        first, second = heads.chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Encoder:
    """A window of 10 s for each of `bucket` callers."""

    def __init__(self, device: torch.device, *, tiny: bool, most: int = 16) -> None:
        self.layers, self.width, self.heads, self.columns = (2, 32, 2, 20) if tiny else (32, 1280, 20, 500)
        dtype = torch.float32 if tiny else torch.bfloat16

        def weight(*shape: int) -> torch.Tensor:
            return _random(device, dtype, *shape)

        self.weights = [
            (
                weight(3 * self.width, self.width),
                weight(self.width, self.width),
                weight(4 * self.width, self.width),
                weight(self.width, 4 * self.width),
            )
            for _ in range(self.layers)
        ]
        self.input = _random(device, dtype, most, self.columns, self.width, scale=1.0)
        self.output = torch.empty_like(self.input)

    def body(self, bucket: int) -> Callable[[], None]:
        """All layers over `bucket` windows."""

        def encode() -> None:
            hidden = self.input[:bucket]  # (B, T, C)
            shape = (bucket, self.columns, self.heads, self.width // self.heads)
            for qkv, out, up, down in self.weights:
                normed = functional.layer_norm(hidden, (self.width,))
                parts = functional.linear(normed, qkv).chunk(3, dim=-1)
                query, key, value = (part.reshape(shape).transpose(1, 2) for part in parts)
                heard = functional.scaled_dot_product_attention(query, key, value)
                hidden = hidden + functional.linear(heard.transpose(1, 2).reshape(bucket, self.columns, -1), out)
                normed = functional.layer_norm(hidden, (self.width,))
                hidden = hidden + functional.linear(functional.gelu(functional.linear(normed, up)), down)
            self.output[:bucket].copy_(hidden)

        return encode


class Vocoder:
    """A chunk of sound (0.68 s at 24 kHz) for each of `bucket` voices."""

    def __init__(self, device: torch.device, *, tiny: bool, most: int = 64) -> None:
        width, self.frames = (16, 4) if tiny else (512, 64)
        dtype = torch.float32 if tiny else torch.bfloat16
        rates = (2, 2) if tiny else (8, 8, 2, 2)

        def weight(outer: int, inner: int, taps: int) -> torch.Tensor:
            return _random(device, dtype, outer, inner, taps, scale=1.0 / math.sqrt(inner * taps))

        self.first = weight(width, 80, 7)
        self.stages = []
        for rate in rates:
            blocks = [[(weight(width // 2, width // 2, taps), reach) for reach in (1, 3, 5)] for taps in (3, 7, 11)]
            self.stages.append((rate, weight(width, width // 2, 2 * rate), blocks))
            width //= 2
        self.last = weight(1, width, 7)
        self.input = _random(device, dtype, most, 80, self.frames, scale=1.0)
        self.output = torch.empty(most, 1, self.frames * math.prod(rates), device=device, dtype=dtype)

    def body(self, bucket: int) -> Callable[[], None]:
        """`bucket` chunks."""

        def voice() -> None:
            sound = functional.conv1d(self.input[:bucket], self.first, padding=3)
            for rate, widen, blocks in self.stages:
                sound = functional.leaky_relu(sound, 0.1)
                sound = functional.conv_transpose1d(sound, widen, stride=rate, padding=rate // 2)
                total = None
                for block in blocks:
                    part = sound
                    for taps, reach in block:
                        padding = reach * (taps.shape[-1] - 1) // 2
                        heard = functional.conv1d(
                            functional.leaky_relu(part, 0.1), taps, padding=padding, dilation=reach
                        )
                        part = part + heard
                    total = part if total is None else total + part
                sound = total / len(blocks)
            self.output[:bucket].copy_(functional.conv1d(functional.leaky_relu(sound), self.last, padding=3).tanh())

        return voice


class Hog:
    """`bucket` times over a GB, read and written."""

    def __init__(self, device: torch.device, *, tiny: bool) -> None:
        count = 1 << (10 if tiny else 28)  # floats
        self.source = torch.ones(count, device=device)
        self.target = torch.empty_like(self.source)

    @property
    def pass_bytes(self) -> int:
        return 2 * self.source.numel() * self.source.element_size()

    def body(self, bucket: int) -> Callable[[], None]:
        """`bucket` passes."""

        def pass_over() -> None:
            for _ in range(bucket):
                torch.add(self.source, 1.0, out=self.target)

        return pass_over
