"""Slices in, their reports out, in the scheduler's order: the lane of one GPU.

    lane = GpuLane(device)
    handle = lane.submit(Slice(stage=Stage.THINK, body="decode", bucket=8, deadline_ns=..., claim=claim))
    report = await handle            # or handle.result() on a thread

One thread of its own hands slices to the device, so neither the event loop nor a model's thread waits for a launch. It
sleeps until a slice is submitted or one has ended, and polls nothing. At most one reply step is handed over while
another runs; nothing else is ever queued on the device, so that whoever comes next waits for one slice at most.
Bounds: `gpu.most_waiting` slices wait (board.py says who makes room); the last KEPT reports are kept.
Threads: `submit`, `cancel` and `result` from any; `await` on the loop that submitted.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import EngineError
from antiphon.gpu.bell import Ends, make_bell
from antiphon.gpu.board import Board, BoardSettings
from antiphon.gpu.device import Spot
from antiphon.gpu.places import pressure_of
from antiphon.gpu.slices import Fate, SliceReport
from antiphon.hardware.gpu_parts import Pressure
from antiphon.scheduling.lanes import CLOSED
from antiphon.scheduling.settings import SchedulingSettings
from antiphon.scheduling.shares import hear_share

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from antiphon.gpu.board import Work
    from antiphon.gpu.device import Device, Flight
    from antiphon.gpu.slices import Slice
    from antiphon.hardware.plan_settings import GpuSettings
    from antiphon.scheduling.shares import Signs

KEPT = 4096  # reports


class Handle:
    """One submitted slice."""

    def __init__(self, lane: GpuLane, number: int, future: Future[SliceReport]) -> None:
        self.number = number
        self._lane = lane
        self._future = future

    def result(self, timeout_s: float | None = None) -> SliceReport:
        """Wait on this thread for the report.

        Raises:
            TimeoutError: it has not ended by then; it is still under way.
            EngineError: it failed, or the lane was closed.
        """
        return _sound(self._future.result(timeout_s))

    def cancel(self) -> bool:
        """Nobody wants it any more. True: it will never run; False: it runs, or has ended."""
        return self._lane.cancel(self.number)

    def take_back(self) -> bool:
        """It is to be asked for anew, with others; True unless it runs, or has ended, and then nothing is changed."""
        return self._lane.take_back(self.number)

    def done(self) -> bool:
        return self._future.done()

    def report(self) -> SliceReport:
        """Wait for what became of it, whatever that was."""
        return self._future.result()

    def __await__(self) -> Generator[None, None, SliceReport]:
        return self._awaited().__await__()

    async def _awaited(self) -> SliceReport:
        try:
            return _sound(await asyncio.wrap_future(self._future))
        except asyncio.CancelledError:
            self.cancel()
            raise


class GpuLane:
    """See the module. `watchers` are told each report, on the lane's thread: they must be quick."""

    def __init__(
        self, device: Device, *, rules: SchedulingSettings | None = None, gpu: GpuSettings | None = None
    ) -> None:
        self.device = device
        self._lock = threading.Lock()  # over the board and the futures
        self._board = Board(rules or SchedulingSettings(), _board_settings(device, gpu))
        self._futures: dict[int, Future[SliceReport]] = {}
        self._flights: dict[int, tuple[Work, Flight, int]] = {}  # and the launch's ns
        self._calls: deque[tuple[Callable[[], object], Future[object]]] = deque()
        self._closed = False
        self._pressure = Pressure.USUAL
        self._ends: Ends | None = None
        self._bell = make_bell()
        self.reports: deque[SliceReport] = deque(maxlen=KEPT)
        self.watchers: list[Callable[[SliceReport], None]] = []
        device.set_bell(self._bell)
        self._thread = threading.Thread(target=self._work, name="antiphon-gpu", daemon=True)
        self._thread.start()

    def submit(self, asked: Slice) -> Handle:
        """Have it run when its turn comes.

        Raises:
            BusyError: the queue is full of what is at least as urgent.
            EngineError: the lane is closed.
        """
        future: Future[SliceReport] = Future()
        with self._lock:
            if self._closed:
                raise EngineError(CLOSED)
            work = self._board.ask(asked, time.monotonic_ns())
            self._futures[work.number] = future
            displaced = self._board.displaced
            self._board.displaced = []
        for each in displaced:
            self._settle(each, Fate.DISPLACED)
        self._bell.ring()
        return Handle(self, work.number, future)

    def cancel(self, number: int) -> bool:
        """Take back a slice by its number; see Handle.cancel."""
        with self._lock:
            work = self._board.give_up(number)
        return self._cancelled(work)

    def take_back(self, number: int) -> bool:
        """See Handle.take_back."""
        with self._lock:
            work = self._board.take_back(number)
        return self._cancelled(work)

    def call(self, what: Callable[[], object]) -> Future[object]:
        """Run something on the lane's thread, between slices: loading, capturing, measuring.

        Raises:
            EngineError: the lane is closed.
        """
        future: Future[object] = Future()
        with self._lock:
            if self._closed:
                raise EngineError(CLOSED)
            self._calls.append((what, future))
        self._bell.ring()
        return future

    def adjust(self, rules: SchedulingSettings) -> None:
        """Decide by these from here on."""
        with self._lock:
            self._board.rules = rules

    def sense(self, signs: Signs) -> None:
        """What is known of the moment: with what is late here it decides hearing's share and the cut.

        Nothing, once the lane is closed.
        """
        with self._lock:
            if self._closed:
                return
            rules = self._board.rules
            lag_ms = self._board.lag_ns(time.monotonic_ns()) / MILLISECOND_NS
            signs = replace(signs, decode_lag_ms=max(signs.decode_lag_ms, lag_ms))
            self._board.share(hear_share(signs, rules))
            pressure = pressure_of(signs, rules)
            if pressure is self._pressure:
                return
            self._pressure = pressure
            self._calls.append((lambda: self.device.press(pressure), Future()))
        self._bell.ring()

    def hold_background(self, hold: bool) -> None:
        """Whether what nobody waits for stays back, for the memory is in pieces."""
        with self._lock:
            self._board.holds_background = hold
        self._bell.ring()

    def ends(self) -> Ends:
        """A file descriptor that counts the slices that end from here on.

        Raises:
            OSError: the system has none.
        """
        if self._ends is None:
            self._ends = Ends()
        return self._ends

    def counts(self) -> tuple[int, int]:
        """Slices that wait, and that run."""
        with self._lock:
            return len(self._board.waiting), len(self._board.running)

    def close(self) -> None:
        """Take no more; what waits is told so, what runs is waited for."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            left = self._board.close()
        for work in left:
            self._settle(work, Fate.CLOSED)
        self._bell.ring()
        self._thread.join()

    # On the lane's thread.

    def _work(self) -> None:
        while True:
            self._collect()
            self._run_calls()
            self._begin()
            with self._lock:
                is_idle = not self._flights and not self._board.waiting and not self._calls
                if self._closed and not self._flights:
                    break
                wake_ns = self._board.wake_ns
            if is_idle and self.device.tidy():
                continue
            self._bell.wait(None if wake_ns is None else wake_ns - time.monotonic_ns())
        self._refuse_calls()
        self.device.close()
        if self._ends is not None:
            self._ends.close()

    def _begin(self) -> None:
        """Hand over whatever may begin."""
        while True:
            with self._lock:
                work = next(self._board.begin(time.monotonic_ns()), None)
            if work is None:
                return
            spot = Spot(place=work.place, level=work.level)
            asked, began_ns = work.asked, time.perf_counter_ns()
            try:
                if asked.call is not None:
                    flight = self.device.launch_call(asked.call, spot)
                else:
                    flight = self.device.launch(asked.body, asked.bucket, spot)
            except Exception as error:  # noqa: BLE001 - it is told to whoever submitted it
                self._end(work, None, 0, error)
                continue
            self._flights[work.number] = (work, flight, time.perf_counter_ns() - began_ns)

    def _collect(self) -> None:
        """Report what has ended."""
        ended = 0
        for work, flight, launch_ns in list(self._flights.values()):
            error: Exception | None = None
            try:
                if not flight.has_ended():
                    continue
            except Exception as failure:  # noqa: BLE001 - as above
                error = failure
            del self._flights[work.number]
            self._end(work, flight, launch_ns, error)
            ended += 1
        if self._ends is not None:
            self._ends.add(ended)

    def _end(self, work: Work, flight: Flight | None, launch_ns: int, error: Exception | None) -> None:
        took_ns = None if flight is None or error is not None else flight.took_ns()
        with self._lock:
            self._board.ended(work.number, time.monotonic_ns(), took_ns)
        fate = Fate.DONE if error is None else Fate.FAILED
        self._settle(work, fate, error, took_ns=took_ns, launch_ns=launch_ns, is_graph=bool(flight and flight.is_graph))

    def _settle(
        self,
        work: Work,
        fate: Fate,
        error: Exception | None = None,
        *,
        took_ns: int | None = None,
        launch_ns: int = 0,
        is_graph: bool = False,
    ) -> None:
        ticket = work.ticket
        report = SliceReport(
            number=work.number,
            stage=ticket.job.stage,
            body=work.asked.body,
            bucket=work.asked.bucket,
            fate=fate,
            asked_ns=ticket.since_ns,
            began_ns=ticket.started_ns,
            ended_ns=time.monotonic_ns(),
            took_ns=took_ns,
            launch_ns=launch_ns,
            estimate_ns=ticket.estimate_ns,
            deadline_ns=ticket.deadline_ns,
            place=work.place,
            level=work.level,
            is_graph=is_graph,
            ahead=work.is_ahead,
            reason=work.reason,
            error="" if error is None else f"{type(error).__name__}: {error}",
            was_cancelled=work.was_cancelled,
        )
        with self._lock:
            future = self._futures.pop(work.number)
        self.reports.append(report)
        for watch in self.watchers:
            watch(report)
        future.set_result(report)

    def _cancelled(self, work: Work | None) -> bool:
        if work is None:
            return False
        self._settle(work, Fate.CANCELLED)
        return True

    def _run_calls(self) -> None:
        while self._calls:
            what, future = self._calls.popleft()
            try:
                future.set_result(what())
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                future.set_exception(error)

    def _refuse_calls(self) -> None:
        while self._calls:
            self._calls.popleft()[1].set_exception(EngineError(CLOSED))


def _board_settings(device: Device, gpu: GpuSettings | None) -> BoardSettings:
    if gpu is None:
        return BoardSettings(is_cut=device.is_cut)
    return BoardSettings(
        is_cut=device.is_cut and gpu.partitions,
        orders=gpu.slicing,
        ahead=gpu.slicing,
        levels=gpu.priorities,
        most_waiting=gpu.most_waiting,
    )


def _sound(report: SliceReport) -> SliceReport:
    """The report, unless the slice was to run and did not.

    Raises:
        EngineError: it failed, or was never run because of others.
    """
    match report.fate:
        case Fate.FAILED:
            raise EngineError(f"a slice of {report.body or report.stage} failed: {report.error}")
        case Fate.CLOSED:
            raise EngineError(CLOSED)
        case Fate.DISPLACED:
            raise EngineError("the queue was full, and somebody more urgent came", retryable=True)
        case Fate.DONE | Fate.CANCELLED:
            return report
