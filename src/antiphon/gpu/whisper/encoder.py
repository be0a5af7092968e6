"""Log-mel columns in, what Whisper's encoder makes of them out: windows as long as the utterance, several at once.

Units: columns of 10 ms; a frame of the result is two. Threads: one at a time; on CUDA a body only enqueues, and can be
captured for its bucket. It does not know callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere

from antiphon.core.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from antiphon.gpu.whisper.weights import Layer, Linear, Norm, WhisperWeights

COLUMN_STEP = 200  # windows grow by two seconds: eleven lengths from 10 to 30 s, and so as many graphs
BATCHES = (1, 2, 4, 8, 16)


class WindowBucket(NamedTuple):
    """What a body is made for."""

    windows: int
    columns: int


class WhisperEncoder:
    """The encoder's weights and its fixed buffers."""

    def __init__(self, weights: WhisperWeights, *, most_windows: int = BATCHES[-1]) -> None:
        shape, device = weights.shape, weights.device
        self.weights = weights
        self.most_windows = most_windows
        # flat, so that windows of any length lie close together and are copied as one
        most = most_windows * shape.bins * 2 * shape.frames
        self._host = torch.zeros(most, pin_memory=device.type == "cuda")
        self._columns = torch.zeros(most, device=device)
        self._encoded = torch.zeros(most_windows, shape.frames, shape.width, device=device, dtype=weights.dtype)

    def fill(self, windows: list[Tensor]) -> None:
        """Put the windows, (bins, columns) f32 of one length, where the next body of their bucket reads them.

        Raises:
            EngineError: there are more than fit, or one has another form.
        """
        columns = windows[0].shape[1]
        shape = self.weights.shape
        if len(windows) > self.most_windows or columns % 2 or columns > 2 * shape.frames:
            raise EngineError(f"{len(windows)} windows of {columns} columns do not fit the encoder")
        if any(window.shape != (shape.bins, columns) for window in windows):
            raise EngineError("windows that are encoded together must have one length, and as many bins as the model")
        kept = self._windows(self._host, len(windows), columns)
        for place, window in enumerate(windows):
            kept[place] = window

    def body(self, bucket: WindowBucket) -> Callable[[], None]:
        """Encode the windows that `fill` left."""
        count, columns = bucket

        @torch.inference_mode()  # of the thread that runs it, which is the lane's
        def run() -> None:
            taken = self._windows(self._columns, count, columns)
            taken.copy_(self._windows(self._host, count, columns), non_blocking=True)
            self._encoded[:count, : columns // 2] = self._forward(taken.to(self.weights.dtype))

        body: Callable[[], None] = run
        return body

    def encoded(self, windows: int, columns: int) -> Tensor:
        """(windows, columns / 2, width) of the last body; a view that the next one overwrites."""
        return self._encoded[:windows, : columns // 2]

    def _windows(self, flat: Tensor, count: int, columns: int) -> Tensor:
        bins = self.weights.shape.bins
        return flat[: count * bins * columns].view(count, bins, columns)

    def _forward(self, columns: Tensor) -> Tensor:
        weights = self.weights
        first, second = weights.convolutions
        stream = F.gelu(F.conv1d(columns, first.weight, first.bias, padding=1))
        stream = F.gelu(F.conv1d(stream, second.weight, second.bias, stride=2, padding=1))
        stream = stream.transpose(1, 2) + weights.encoder_positions[: columns.shape[2] // 2]  # (B, frames, width)
        for layer in weights.encoder_layers:
            stream = stream + attention(normed(stream, layer.norm), layer, weights.shape.heads)
            stream = stream + feed(normed(stream, layer.feed_norm), layer)
        return normed(stream, weights.encoder_norm)


def normed(stream: Tensor, norm: Norm) -> Tensor:
    return F.layer_norm(stream, norm.weight.shape, norm.weight, norm.bias)


def applied(linear: Linear, stream: Tensor) -> Tensor:
    return F.linear(stream, linear.weight, linear.bias)


def feed(stream: Tensor, layer: Layer) -> Tensor:
    return applied(layer.down, F.gelu(applied(layer.up, stream)))


def in_heads(stream: Tensor, heads: int) -> Tensor:
    """(B, T, width) to (B, H, T, D)."""
    return stream.unflatten(-1, (heads, -1)).transpose(1, 2)


def attention(stream: Tensor, layer: Layer, heads: int) -> Tensor:
    """Of every frame to every other."""
    query, key, value = (in_heads(each, heads) for each in applied(layer.qkv, stream).chunk(3, dim=-1))
    mixed = F.scaled_dot_product_attention(query, key, value)
    return applied(layer.output, mixed.transpose(1, 2).flatten(2))
