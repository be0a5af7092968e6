"""Rows in, the next token of each out: one step of a Llama-family model over pages of keys and values.

A row is a token at a position of a sequence. Rows of different sequences decode together; consecutive rows of one
sequence read its prompt; both may stand in one step, since every row's keys are placed before any row attends. What a
step reads and writes lies in fixed buffers, one for the host and one for the device, and the copies between them
belong to the step: `body` gives a callable that can be captured into a CUDA graph for its bucket.

Units: tokens. Threads: one at a time; on CUDA a body only enqueues. It does not know conversations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from antiphon.core.errors import EngineError, MachineError
from antiphon.gpu.llama.pages import PAGE_TOKENS, SCRATCH_PAGE
from antiphon.gpu.llama.parts import fitting_parts
from antiphon.gpu.llama.shape import least_bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from antiphon.gpu.llama.parts import Parts
    from antiphon.gpu.llama.weights import LlamaWeights

ROW_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MOST_ROWS = ROW_BUCKETS[-1]
LAST_TOKENS = 64  # whose repetition a row can be made to avoid

_TOKEN, _POSITION, _SEED = 0, 1, 2  # columns of the whole numbers of a row; then its last tokens, then its pages
_FIXED = 3
_TEMPERATURE, _PENALTY = 0, 1


class StepBucket(NamedTuple):
    """What a body is made for."""

    rows: int
    context_tokens: int  # a multiple of PAGE_TOKENS
    draws: bool = False  # whether any row draws its token rather than taking the likeliest


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One token of one sequence, and how the token after it is chosen."""

    token: int
    position: int
    pages: Sequence[int]
    last_tokens: Sequence[int] = ()  # at most LAST_TOKENS
    penalty: float = 1.0  # of these
    temperature: float = 0.0
    seed: int = 0


class LlamaStep:
    """The model and its memory on one device."""

    def __init__(self, weights: LlamaWeights, *, pages: int, context_tokens: int, parts: Parts | None = None) -> None:
        """`pages` of memory, the scratch one included; rows have up to `context_tokens` behind them.

        Raises:
            MachineError: the device has no room for the memory.
        """
        shape, device = weights.shape, weights.device
        self.weights = weights
        self.parts = parts or fitting_parts(device)
        self.context_tokens = -(-context_tokens // PAGE_TOKENS) * PAGE_TOKENS
        self._table_width = self.context_tokens // PAGE_TOKENS
        size = (shape.layers, 2, pages, shape.kv_heads, PAGE_TOKENS, shape.head_size)
        try:
            # layers, keys and values, pages, heads of keys, tokens of a page, elements of a head
            self.memory = torch.zeros(size, device=device, dtype=weights.dtype)
        except torch.OutOfMemoryError as error:
            raise MachineError(
                f"there is no room for {pages} pages of the language model's memory", hint="lower gpu.context_mib"
            ) from error
        self._turns = _turns(weights, self.context_tokens)
        width = _FIXED + LAST_TOKENS + self._table_width
        pinned = device.type == "cuda"
        self._host_numbers = torch.zeros(MOST_ROWS, width, dtype=torch.int32, pin_memory=pinned)
        self._host_reals = torch.zeros(MOST_ROWS, 2, dtype=torch.float32, pin_memory=pinned)
        self._host_chosen = torch.zeros(MOST_ROWS, dtype=torch.int32, pin_memory=pinned)
        self._numbers = torch.zeros(MOST_ROWS, width, dtype=torch.int32, device=device)
        self._reals = torch.zeros(MOST_ROWS, 2, dtype=torch.float32, device=device)
        self._chosen = torch.zeros(MOST_ROWS, dtype=torch.int32, device=device)
        self._logits = torch.zeros(MOST_ROWS, shape.vocabulary, dtype=weights.dtype, device=device)

    @property
    def memory_bytes(self) -> int:
        size: int = self.memory.numel() * self.memory.element_size()
        return size

    def bucket(self, rows: Sequence[Row]) -> StepBucket:
        """The smallest bucket that holds the rows; contexts grow by doubling, so that graphs stay few."""
        longest = max(row.position for row in rows) + 1
        context = PAGE_TOKENS
        while context < longest:
            context *= 2
        draws = any(row.temperature > 0 for row in rows)
        return StepBucket(least_bucket(ROW_BUCKETS, len(rows)), min(context, self.context_tokens), draws)

    def fill(self, rows: Sequence[Row]) -> None:
        """Put the rows where the next body of their bucket reads them; places beyond are made harmless.

        Raises:
            EngineError: there are more rows than any bucket holds, or one lies beyond the context.
        """
        if not 1 <= len(rows) <= MOST_ROWS:
            raise EngineError(f"a step was asked for {len(rows)} rows", hint=f"give it 1 to {MOST_ROWS}")
        numbers, reals = self._host_numbers.numpy(), self._host_reals.numpy()
        held = least_bucket(ROW_BUCKETS, len(rows))
        numbers[:held] = SCRATCH_PAGE
        reals[:held] = (0.0, 1.0)
        for place, row in enumerate(rows):
            if row.position >= self.context_tokens or len(row.pages) * PAGE_TOKENS <= row.position:
                raise EngineError(f"position {row.position} lies beyond the language model's context")
            last = row.last_tokens[-LAST_TOKENS:]
            line = numbers[place]
            line[_TOKEN], line[_POSITION], line[_SEED] = row.token, row.position, row.seed & 0x7FFFFFFF
            # What is missing is filled with a token that is among them, or with one whose penalty is none.
            line[_FIXED : _FIXED + LAST_TOKENS] = last[0] if last else row.token
            line[_FIXED : _FIXED + len(last)] = last
            line[_FIXED + LAST_TOKENS : _FIXED + LAST_TOKENS + len(row.pages)] = row.pages[: self._table_width]
            reals[place] = (row.temperature, row.penalty if last else 1.0)

    def body(self, bucket: StepBucket) -> Callable[[], None]:
        """One step over the rows that `fill` left: copy in, compute, choose, copy out."""

        @torch.inference_mode()  # of the thread that runs it, which is the lane's
        def run() -> None:
            count = bucket.rows
            numbers, reals = self._numbers[:count], self._reals[:count]
            numbers.copy_(self._host_numbers[:count], non_blocking=True)
            reals.copy_(self._host_reals[:count], non_blocking=True)
            first = _FIXED + LAST_TOKENS
            table = numbers[:, first : first + bucket.context_tokens // PAGE_TOKENS]
            positions = numbers[:, _POSITION].contiguous()
            logits = self._forward(numbers[:, _TOKEN], positions, table)
            self._logits[:count] = logits
            last = numbers[:, _FIXED:first]
            self._chosen[:count] = self._choose(logits, last, reals, numbers, draws=bucket.draws)
            self._host_chosen[:count].copy_(self._chosen[:count], non_blocking=True)

        body: Callable[[], None] = run
        return body

    def chosen(self, rows: int) -> list[int]:
        """The tokens that the last step chose; call it when the step is known to be over."""
        return [int(token) for token in self._host_chosen[:rows]]

    def logits(self, rows: int) -> Tensor:
        """(rows, vocabulary) of the last step, before any penalty; a view that the next step overwrites."""
        return self._logits[:rows]

    def likeliest(self, row: int, count: int) -> list[tuple[int, float]]:
        """The likeliest tokens behind a row of the last step, with their log-probabilities; waits for the device."""
        odds = torch.log_softmax(self._logits[row].float(), dim=-1)
        best = odds.topk(min(count, odds.shape[0]))
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    def _forward(self, tokens: Tensor, positions: Tensor, table: Tensor) -> Tensor:
        """(R,), (R,), (R, P) to logits (R, vocabulary)."""
        weights, parts, epsilon = self.weights, self.parts, self.weights.shape.norm_epsilon
        heads = weights.shape.heads
        stream = weights.embeddings[tokens]  # (R, hidden), the stream that every layer adds to
        delta: Tensor | None = None
        for layer, cache in zip(weights.layers, self.memory, strict=True):
            seen = parts.add_norm(stream, delta, layer.attention_norm, epsilon)
            qkv = parts.product(seen, layer.qkv, layer.qkv_bias)
            mixed = parts.attend(qkv, heads, self._turns, (cache[0], cache[1]), positions, table)
            delta = parts.product(mixed, layer.output)
            seen = parts.add_norm(stream, delta, layer.feed_norm, epsilon)
            delta = parts.product(parts.gate(parts.product(seen, layer.gate_up)), layer.down)
        return parts.product(parts.add_norm(stream, delta, weights.norm, epsilon), weights.head)

    def _choose(self, logits: Tensor, last: Tensor, reals: Tensor, numbers: Tensor, *, draws: bool) -> Tensor:
        """The likeliest token of each row, those said lately made less likely; or with luck of the row's own."""
        wide = logits.float()
        said = last.long()
        found = wide.gather(1, said)
        penalty = reals[:, _PENALTY, None]
        wide.scatter_(1, said, torch.where(found > 0, found / penalty, found * penalty))
        if draws:
            heat = reals[:, _TEMPERATURE, None]
            luck = _luck(numbers[:, _SEED], numbers[:, _POSITION], wide.shape[1])
            wide = torch.where(heat > 0, wide / heat.clamp(min=1e-4) + luck, wide)
        return wide.argmax(dim=-1).to(torch.int32)


def _turns(weights: LlamaWeights, context_tokens: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of every position, (context, D / 2) f32."""
    shape = weights.shape
    frequencies = torch.tensor(shape.inverse_frequencies(), dtype=torch.float64)
    angles = torch.arange(context_tokens, dtype=torch.float64)[:, None] * frequencies[None]
    return angles.cos().float().to(weights.device), angles.sin().float().to(weights.device)


def _luck(seeds: Tensor, positions: Tensor, width: int) -> Tensor:
    """Gumbel noise (R, width) that depends on a row's seed and position alone, not on who else is in the batch."""
    place = torch.arange(width, device=seeds.device, dtype=torch.int32)
    mixed = (seeds * 0x27D4EB2D + positions * 0x165667B1)[:, None] ^ (place * 0x1E3779B1)[None]
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39), (15, 0x1B873593)):
        mixed = (mixed ^ (mixed >> shift)) * factor
    share = ((mixed ^ (mixed >> 16)) & 0xFFFFFF).float().add_(0.5).div_(0x1000000)
    return -torch.log(-torch.log(share))
