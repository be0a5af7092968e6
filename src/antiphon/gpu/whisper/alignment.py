"""How a text's tokens look at the sound in, the frame at which each token begins out.

Threads: pure. It does not know models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

_SMOOTHED_FRAMES = 7
_DIAGONAL, _TOKEN_ON, _FRAME_ON = 0, 1, 2


def attention_matrix(looks: Tensor, frames: int) -> npt.NDArray[np.float32]:
    """(heads, tokens, all frames) before the softmax to (tokens, frames): the heads' opinions put together."""
    shares = looks[:, :, :frames].float().softmax(dim=-1)
    spread = shares.std(dim=-2, keepdim=True, correction=0)
    centred = (shares - shares.mean(dim=-2, keepdim=True)) / spread
    mean = _smoothed(centred).mean(dim=0)
    found: npt.NDArray[np.float32] = mean.cpu().numpy()
    return found


def path_through(matrix: npt.NDArray[np.float32]) -> list[tuple[int, int]]:
    """The way from the first token and frame to the last that gathers most, never going back: (token, frame) pairs."""
    tokens, frames = matrix.shape
    cost = np.full((tokens + 1, frames + 1), np.inf, np.float64)
    cost[0, 0] = 0.0
    came = np.full((tokens + 1, frames + 1), -1, np.int8)
    for diagonal in range(2, tokens + frames + 1):  # cells on one depend only on the two before
        token = np.arange(max(1, diagonal - frames), min(tokens, diagonal - 1) + 1)
        frame = diagonal - token
        both, down, on = cost[token - 1, frame - 1], cost[token - 1, frame], cost[token, frame - 1]
        way = np.where(
            (both < down) & (both < on), _DIAGONAL, np.where((down < both) & (down < on), _TOKEN_ON, _FRAME_ON)
        )
        cost[token, frame] = np.choose(way, (both, down, on)) - matrix[token - 1, frame - 1]
        came[token, frame] = way
    came[0, :], came[:, 0] = _FRAME_ON, _TOKEN_ON
    path = []
    token_, frame_ = tokens, frames
    while token_ > 0 or frame_ > 0:
        path.append((token_ - 1, frame_ - 1))
        way_ = came[token_, frame_]
        token_ -= way_ != _FRAME_ON
        frame_ -= way_ != _TOKEN_ON
    return [(int(token), int(frame)) for token, frame in reversed(path)]


def _smoothed(values: Tensor) -> Tensor:
    """The median of seven frames, mirrored at the edges."""
    half = _SMOOTHED_FRAMES // 2
    if values.shape[-1] <= half:
        return values
    padded = F.pad(values, (half, half), mode="reflect")
    windows = padded.unfold(-1, _SMOOTHED_FRAMES, 1)
    median: Tensor = torch.median(windows, dim=-1).values
    return median
