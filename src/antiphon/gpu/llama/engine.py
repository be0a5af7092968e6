"""Prompts in, tokens out, for all conversations at once: who reads and who writes in each step.

A step takes one row for every sequence that writes, and of those that read as many prompt tokens as it has room for.
At each border between two steps sequences come and go. What a sequence has read stays in its pages: a later prompt
that begins alike reads only what is new, and one that differs rewinds to where it does. Who is stopped gives back
what was written at once.

A step is one slice of the GPU's lane, with the class and deadline of the most urgent sequence in it; it is a slice of
writing as soon as one in it writes a reply or reads for one. A step that waits is taken back when somebody more urgent
comes, who is then in it. How many write in a step follows from what steps take
(`Sizing`); the rest take turns. Steps are not foreseen to the lane: they follow each other at once, and whoever had to
end before the next one would never begin.

Threads: `submit` and `close` from anywhere. Everything else happens on the engine's own thread, `take` included,
which must not block. Bounds: as many sequences as there are owners; a sequence waits for a place among the rows.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import AntiphonError, EngineError
from antiphon.core.stamps import Stage
from antiphon.gpu.batch_size import Demand
from antiphon.gpu.engine_lane import MOST_CALLERS, Want
from antiphon.gpu.llama.pages import PageBook
from antiphon.gpu.llama.sizes import at_start, sizing_of
from antiphon.gpu.llama.step import LAST_TOKENS, ROW_BUCKETS, Row, StepBucket
from antiphon.gpu.slices import Fate
from antiphon.hardware.gpu_plan import STEP_LIMIT_S
from antiphon.scheduling.job import Errand, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from torch import Tensor

    from antiphon.gpu.engine_lane import EngineLane
    from antiphon.gpu.lane import Handle
    from antiphon.gpu.llama.step import LlamaStep
    from antiphon.gpu.slices import SliceReport
    from antiphon.scheduling.job import Urgency

CLOSED = "the language model is closed"


class Choice(Protocol):
    """Who narrows down what a sequence may write next."""

    def choose(self, logits: Tensor) -> int | None:
        """The likeliest allowed token of (vocabulary,); None when all was written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One step of a sequence, as `take` is told."""

    token: int | None  # None: the prompt has been read a little further
    candidates: tuple[tuple[int, float], ...] = ()  # tokens and log-probabilities, if asked for
    reached_limit: bool = False
    prompt_tokens: int = 0
    cached_tokens: int = 0
    read_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt, and how what follows it is chosen."""

    owner: int  # whose memory it is read into; one sequence of an owner at a time
    prompt: list[int]
    take: Callable[[Told], bool]  # told of every step; True ends the sequence
    most_tokens: int
    candidates: int = 0
    penalty: float = 1.0
    penalty_tokens: int = LAST_TOKENS
    temperature: float = 0.0
    seed: int = 0
    choice: Choice | None = None
    errand: Errand = field(default_factory=lambda: Errand(job=Job(stage=Stage.THINK)))


@dataclass(slots=True, eq=False)
class Work:
    """A sequence at work."""

    asked: Asked
    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    read: int = 0  # of the prompt
    cached: int = 0
    written: list[int] = field(default_factory=list)

    @property
    def is_reading(self) -> bool:
        return self.read < len(self.asked.prompt)

    def wait(self) -> None:
        """Come back when it is over.

        Raises:
            EngineError: it failed, or the engine was closed.
            and what its `take` raised.
        """
        self.done.wait()
        if self.error is not None:
            raise self.error


class LlamaEngine:
    """One model's sequences."""

    def __init__(
        self, step: LlamaStep, lane: EngineLane, *, pages: int, ends: Collection[int], read_tokens: int = 128
    ) -> None:
        """`read_tokens` of prompts go into one step: more make a step longer, which all who write wait for."""
        gpu = lane.gpu
        self.step = step
        self.book = PageBook(pages)
        self._lane = lane
        self._body = lane.add("decode", step.body, is_reply=True, at_start=at_start(step, gpu.reply_batch, read_tokens))
        self.sizing = sizing_of(step, gpu.reply_batch, adapts=gpu.settings.adaptive_batch)
        self._most_writing = gpu.reply_batch
        self._within_ns = round(STEP_LIMIT_S * SECOND_NS) if gpu.name.startswith("cuda") else None
        self._seen: set[StepBucket] = set()  # buckets that ran; the first time libraries load and kernels are compiled
        self._ends = frozenset(ends)
        self._read_tokens = read_tokens
        self._lock = threading.Condition()  # over the four below
        self._step: tuple[Handle, Urgency] | None = None  # under way
        self._coming: deque[Work] = deque()
        self._forgotten: deque[int] = deque()
        self._closed = False
        self._works: list[Work] = []
        self._thread: threading.Thread | None = None

    @property
    def is_closed(self) -> bool:
        return self._closed

    def start(self) -> None:
        """Let the engine's own thread drive; without, whoever holds the engine calls `turn`."""
        self._thread = threading.Thread(target=self._drive, name="antiphon-llama", daemon=True)
        self._thread.start()

    def submit(self, asked: Asked) -> Work:
        """Begin a sequence at the next border.

        Raises:
            EngineError: the engine is closed, or the prompt is empty or longer than the context.
        """
        if not asked.prompt:
            raise EngineError("a prompt without a token cannot be answered")
        if len(asked.prompt) >= self.step.context_tokens:
            raise EngineError(
                f"a prompt of {len(asked.prompt)} tokens does not fit into a context of {self.step.context_tokens}",
                hint="raise the language model's context or shorten the instructions",
            )
        work = Work(asked)
        with self._lock:
            if self._closed:
                raise EngineError(CLOSED)
            self._coming.append(work)
            self._lock.notify()
            waiting = self._step
        if waiting is not None and asked.errand.claim.urgency < waiting[1]:
            waiting[0].take_back()
        return work

    def forget(self, owner: int) -> None:
        """Free what the owner's sequences have read, at the next border."""
        with self._lock:
            self._forgotten.append(owner)
            self._lock.notify()

    def close(self) -> None:
        """Accept no more; whatever is at work fails at the next border, and the thread ends."""
        with self._lock:
            self._closed = True
            self._lock.notify()
        if self._thread is None:
            self._fail_all()

    def turn(self) -> bool:
        """One border and one step; False if there was nothing to do."""
        self._border()
        chosen = self._rows()
        if not chosen:
            return False
        rows = [row for _, own in chosen for row in own]
        bucket = self.step.bucket(rows)
        self.step.fill(rows)
        report = self._ran(bucket, self._want([work for work, _ in chosen], bucket))
        if report.fate is Fate.CANCELLED:  # nothing was computed, and it is all asked for anew
            return True
        if not any(work.is_reading for work, _ in chosen):
            self._learn(bucket, report)
        tokens = self.step.chosen(len(rows))
        last = -1
        for work, own in chosen:
            last += len(own)
            self._after(work, own, last, tokens[last])
        self._works = [work for work in self._works if not work.done.is_set()]
        return True

    def _drive(self) -> None:
        while True:
            with self._lock:
                while not (self._coming or self._forgotten or self._works or self._closed):
                    self._lock.wait()
                if self._closed:
                    break
            try:
                self.turn()
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever was at work
                failure = EngineError("the language model failed on the GPU", retryable=True)
                failure.__cause__ = error
                self._fail_all(failure)
        self._fail_all()

    def _border(self) -> None:
        with self._lock:
            coming, self._coming = list(self._coming), deque()
            forgotten, self._forgotten = list(self._forgotten), deque()
        at_work = {work.asked.owner for work in self._works}
        for owner in forgotten:
            if owner not in at_work:
                self.book.forget(owner)
        for work in coming:
            asked = work.asked
            memory = self.book.begin(asked.owner)
            # the last token is read again, for what follows it
            work.read = work.cached = min(memory.common(asked.prompt), len(asked.prompt) - 1)
            self.book.rewind(asked.owner, work.read)
            self._works.append(work)
            self._tell(work, self._told(work))
        self._works = [work for work in self._works if not work.done.is_set()]

    def _want(self, works: Sequence[Work], bucket: StepBucket) -> Want:
        """What the lane is to know of a step of these."""
        errands = [work.asked.errand for work in works]
        first = min(errands, key=lambda errand: errand.claim.urgency)
        writes = any(errand.job.stage is Stage.THINK for errand in errands)
        return Want(
            stage=Stage.THINK if writes else first.job.stage,
            claim=first.claim,
            deadline_ns=min((each.deadline_ns for each in errands if each.deadline_ns is not None), default=None),
            size=bucket.rows * bucket.context_tokens,
        )

    def _ran(self, bucket: StepBucket, want: Want) -> SliceReport:
        """Have the step run, unless somebody more urgent comes before it begins."""
        handle, urgency = self._lane.submit(self._body, bucket, want), want.claim.urgency
        with self._lock:
            self._step = handle, urgency
            is_overtaken = any(work.asked.errand.claim.urgency < urgency for work in self._coming)
        if is_overtaken:
            handle.take_back()
        try:
            return handle.result()
        finally:
            with self._lock:
                self._step = None

    def _learn(self, bucket: StepBucket, report: SliceReport) -> None:
        """What a step takes as they all will: not its first, nor one that is to be replayed from now on."""
        is_usual = report.is_graph or (bucket in self._seen and not self._lane.gpu.lane.device.registry.captures)
        self._seen.add(bucket)
        if is_usual and report.took_ns is not None:
            self.sizing.learn(min(bucket.rows, MOST_CALLERS), report.took_ns)

    def _rows(self) -> list[tuple[Work, list[Row]]]:
        """Who is in the next step and with what, as far as there is memory."""
        writing = [work for work in self._works if not work.is_reading]
        if writing:
            demand = Demand(callers=len(writing), within_ns=self._within_ns, most=self._most_writing)
            writing = writing[: self.sizing.choose(demand)]
        chosen = [(work, rows) for work in writing if (rows := self._placed(work, 1))]
        room = min(ROW_BUCKETS[-1] - len(chosen), self._read_tokens)
        for work in [work for work in self._works if work.is_reading]:
            count = min(room, len(work.asked.prompt) - work.read)
            if count < 1:
                break
            rows = self._placed(work, count)
            if rows:
                chosen.append((work, rows))
                room -= count
        # those that wrote go to the end of the line, so that none waits for ever where there are more than rows
        ahead = {id(work) for work in writing}
        self._works.sort(key=lambda work: id(work) in ahead)
        return chosen

    def _placed(self, work: Work, count: int) -> list[Row]:
        """The sequence's next rows; none, and the sequence is over, where there is no memory for them."""
        asked = work.asked
        memory = self.book.of(asked.owner)
        start = len(memory.tokens)
        if start + count > self.step.context_tokens:
            self._finish(work)
            return []
        try:
            self.book.grow(asked.owner, start + count)
        except AntiphonError as error:
            self._finish(work, EngineError(error.message, hint=error.hint, retryable=True))
            return []
        tokens = asked.prompt[work.read : work.read + count] if work.is_reading else work.written[-1:]
        said = (asked.prompt + work.written)[-min(asked.penalty_tokens, LAST_TOKENS) :] if asked.penalty > 1 else []
        return [
            Row(
                token=token,
                position=start + place,
                pages=memory.pages,
                last_tokens=said,
                penalty=asked.penalty,
                temperature=asked.temperature,
                seed=asked.seed,
            )
            for place, token in enumerate(tokens)
        ]

    def _after(self, work: Work, rows: Sequence[Row], last: int, token: int) -> None:
        """The sequence's part of a step is done; `last` is its last row."""
        self.book.of(work.asked.owner).tokens.extend(row.token for row in rows)
        if work.is_reading:
            work.read += len(rows)
            if self._tell(work, self._told(work)) or work.is_reading:
                return
        self._write(work, last, token)

    def _write(self, work: Work, row: int, token: int) -> None:
        asked = work.asked
        if asked.choice is not None:
            allowed = asked.choice.choose(self.step.logits(row + 1)[row])
            if allowed is None:
                self._finish(work)
                return
            token = allowed
        candidates = tuple(self.step.likeliest(row, asked.candidates)) if asked.candidates else ()
        work.written.append(token)
        is_end = token in self._ends
        reached = not is_end and len(work.written) >= asked.most_tokens
        told = self._told(work, token, candidates, reached_limit=reached)
        if not self._tell(work, told) and (is_end or reached):
            self._finish(work)

    def _tell(self, work: Work, told: Told) -> bool:
        """Tell who asked; whether the sequence is over by that."""
        try:
            stops = work.asked.take(told)
        except BaseException as error:  # noqa: BLE001 - raised where the sequence is waited for
            self._finish(work, error)
            return True
        if stops:
            self._finish(work)
            # nobody goes on with what was stopped, or if so, it is read again
            self.book.rewind(work.asked.owner, min(len(self.book.of(work.asked.owner).tokens), len(work.asked.prompt)))
        return stops

    @staticmethod
    def _told(
        work: Work,
        token: int | None = None,
        candidates: tuple[tuple[int, float], ...] = (),
        *,
        reached_limit: bool = False,
    ) -> Told:
        return Told(
            token=token,
            candidates=candidates,
            reached_limit=reached_limit,
            prompt_tokens=len(work.asked.prompt),
            cached_tokens=work.cached,
            read_tokens=work.read,
        )

    def _finish(self, work: Work, error: BaseException | None = None) -> None:
        if not work.done.is_set():
            work.error = error
            self.book.end(work.asked.owner)
            work.done.set()

    def _fail_all(self, error: EngineError | None = None) -> None:
        with self._lock:
            coming, self._coming = list(self._coming), deque()
        for work in [*self._works, *coming]:
            self._finish(work, error or EngineError(CLOSED))
        self._works = []
