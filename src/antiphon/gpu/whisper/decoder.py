"""What the encoder made in, the next token of each caller out: one step of Whisper's decoder, or its whole prompt.

Callers who decode together have prompts of one length, so that all stand at the same position. The greedy choice, the
tokens that may not be written and the log-probability of the choice are part of the step.
Units: tokens and frames. Threads: one at a time; on CUDA a body only enqueues, and can be captured for its bucket. It
does not know what is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere

from antiphon.core.errors import EngineError
from antiphon.gpu.whisper.encoder import applied, feed, in_heads, normed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from antiphon.gpu.whisper.weights import Layer, WhisperWeights, WritingRules

MOST_FORBIDDEN = 16  # tokens that one caller may not write next, beside those that nobody may


class WritingBucket(NamedTuple):
    """What a body is made for: a prompt of several tokens, or a step of one."""

    callers: int
    tokens: int
    frames: int
    is_first: bool  # whether the token that is chosen is the first of the text


class WhisperDecoder:
    """The decoder's weights, what the callers have written so far, and the fixed buffers."""

    def __init__(self, weights: WhisperWeights, rules: WritingRules, *, most_callers: int) -> None:
        shape, device, dtype = weights.shape, weights.device, weights.dtype
        size, layers = shape.width // shape.heads, shape.decoder_layers
        pinned = device.type == "cuda"
        self.weights = weights
        self.most_callers = most_callers
        own = (layers, 2, most_callers, shape.heads, shape.positions, size)
        self._written = torch.zeros(own, device=device, dtype=dtype)  # keys and values of the text
        heard = (layers, 2, most_callers, shape.heads, shape.frames, size)
        self._heard = torch.zeros(heard, device=device, dtype=dtype)  # and of the sound
        # Whole numbers of a call: a column for each position's tokens, then the forbidden ones; the position.
        width = shape.positions + MOST_FORBIDDEN
        self._host_numbers = torch.zeros(most_callers, width, dtype=torch.int64, pin_memory=pinned)
        self._host_start = torch.zeros(1, dtype=torch.int64, pin_memory=pinned)
        self._numbers = torch.zeros(most_callers, width, dtype=torch.int64, device=device)
        self._start = torch.zeros(1, dtype=torch.int64, device=device)
        self._host_chosen = torch.zeros(most_callers, dtype=torch.int64, pin_memory=pinned)
        self._host_odds = torch.zeros(most_callers, dtype=torch.float32, pin_memory=pinned)
        self._logits = torch.zeros(most_callers, shape.positions, shape.vocabulary, device=device, dtype=dtype)
        self._places = torch.arange(shape.positions, device=device)
        never = torch.zeros(shape.vocabulary, device=device)
        never[list(rules.never)] = -torch.inf
        self._never = never
        self._not_first = never.clone()
        self._not_first[list(rules.not_first)] = -torch.inf
        self._filler = rules.never[0] if rules.never else shape.vocabulary - 1  # forbidden anyway

    def hear(self, encoded: Tensor) -> None:
        """Take the sound, (callers, frames, width), that the next calls are about.

        Raises:
            EngineError: there are more callers or frames than fit.
        """
        callers, frames = encoded.shape[:2]
        if callers > self.most_callers or frames > self.weights.shape.frames:
            raise EngineError(f"{callers} windows of {frames} frames do not fit the decoder")
        heads = self.weights.shape.heads
        for layer, kept in zip(self.weights.decoder_layers, self._heard, strict=True):
            assert layer.cross is not None
            for side, heard in zip(kept, applied(layer.cross.key_value, encoded).chunk(2, dim=-1), strict=True):
                side[:callers, :, :frames] = in_heads(heard, heads)

    def fill(self, tokens: Sequence[Sequence[int]], start: int, forbidden: Sequence[Sequence[int]] = ()) -> None:
        """Put the tokens, of one length and beginning at position `start`, where the next body reads them.

        Raises:
            EngineError: they go beyond the decoder's positions.
        """
        count = len(tokens[0])
        if start + count > self.weights.shape.positions:
            raise EngineError(f"position {start + count} lies beyond the decoder's")
        numbers = self._host_numbers.numpy()
        first = self.weights.shape.positions
        numbers[: len(tokens), first:] = self._filler
        for place, each in enumerate(tokens):
            numbers[place, :count] = each
            kept = forbidden[place][:MOST_FORBIDDEN] if forbidden else ()
            numbers[place, first : first + len(kept)] = kept
        self._host_start[0] = start

    def body(self, bucket: WritingBucket) -> Callable[[], None]:
        """Read the tokens that `fill` left, and choose the one after them."""
        callers, count, frames, is_first = bucket
        barred = self._not_first if is_first else self._never

        @torch.inference_mode()  # of the thread that runs it, which is the lane's
        def run() -> None:
            numbers = self._numbers[:callers]
            numbers.copy_(self._host_numbers[:callers], non_blocking=True)
            self._start.copy_(self._host_start, non_blocking=True)
            places = self._start + self._places[:count]
            logits = self._forward(numbers[:, :count], places, frames)  # (callers, count, vocabulary)
            self._logits[:callers].index_copy_(1, places, logits)
            last = logits[:, -1].float() + barred
            last.scatter_(1, numbers[:, self.weights.shape.positions :], -torch.inf)
            chosen = last.argmax(dim=-1)
            odds = last.gather(1, chosen[:, None])[:, 0] - last.logsumexp(dim=-1)
            self._host_chosen[:callers].copy_(chosen, non_blocking=True)
            self._host_odds[:callers].copy_(odds, non_blocking=True)

        body: Callable[[], None] = run
        return body

    def chosen(self, callers: int) -> list[tuple[int, float]]:
        """The tokens that the last body chose and their log-probabilities; when it is known to be over."""
        return list(zip(self._host_chosen[:callers].tolist(), self._host_odds[:callers].tolist(), strict=True))

    def logits(self, caller: int, positions: slice) -> Tensor:
        """(positions, vocabulary) of what may follow the tokens there, before any is forbidden; a view."""
        return self._logits[caller, positions]

    def barred(self, rows: Tensor, *, first: int) -> Tensor:
        """A copy of rows of logits, f32, without what may not be written; `first` is the row of the first own token."""
        kept = rows.float() + self._never
        if first < len(kept):
            kept[first] += self._not_first
        return kept

    def looks(self, tokens: Sequence[int], frames: int, heads: Sequence[tuple[int, int]]) -> Tensor:
        """How the first caller's tokens look at the sound, before the softmax: (heads, tokens, frames) f32."""
        self.fill([tokens], 0)
        numbers = self._host_numbers[:1, : len(tokens)].to(self.weights.device)
        found: list[Tensor] = []
        self._forward(numbers, self._places[: len(tokens)], frames, looks=found)
        return torch.stack([found[layer][0, head] for layer, head in heads])

    def _forward(self, tokens: Tensor, places: Tensor, frames: int, *, looks: list[Tensor] | None = None) -> Tensor:
        """(B, T), (T,) to logits (B, T, vocabulary)."""
        weights = self.weights
        callers = tokens.shape[0]
        stream = weights.embeddings[tokens] + weights.decoder_positions[places]
        seen = self._places <= places[:, None]  # (T, positions)
        for layer, written, heard in zip(weights.decoder_layers, self._written, self._heard, strict=True):
            stream = stream + self._own(normed(stream, layer.norm), layer, written[:, :callers], places, seen)
            stream = stream + self._sound(stream, layer, heard[:, :callers, :, :frames], looks)
            stream = stream + feed(normed(stream, layer.feed_norm), layer)
        return F.linear(normed(stream, weights.decoder_norm), weights.embeddings)

    def _own(self, stream: Tensor, layer: Layer, written: Tensor, places: Tensor, seen: Tensor) -> Tensor:
        """Attention to the text so far."""
        heads = self.weights.shape.heads
        query, key, value = (in_heads(each, heads) for each in applied(layer.qkv, stream).chunk(3, dim=-1))
        written[0].index_copy_(2, places, key)
        written[1].index_copy_(2, places, value)
        mixed = F.scaled_dot_product_attention(query, written[0], written[1], attn_mask=seen)
        return applied(layer.output, mixed.transpose(1, 2).flatten(2))

    def _sound(self, stream: Tensor, layer: Layer, heard: Tensor, looks: list[Tensor] | None) -> Tensor:
        """Attention to the sound."""
        cross = layer.cross
        assert cross is not None
        query = in_heads(applied(cross.query, normed(stream, cross.norm)), self.weights.shape.heads)
        if looks is not None:
            looks.append((query.float() @ heard[0].float().transpose(-1, -2)) * query.shape[-1] ** -0.5)
        mixed = F.scaled_dot_product_attention(query, heard[0], heard[1])
        return applied(cross.output, mixed.transpose(1, 2).flatten(2))
