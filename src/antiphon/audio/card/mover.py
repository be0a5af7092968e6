"""Who runs the loop: a process of its own, or a thread of this one.

Units: seconds. Threads: the event loop's; `ended` waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from antiphon.audio.card.choose import cards
from antiphon.audio.card.loop import Loop
from antiphon.audio.card.notes import Note
from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import MachineError
from antiphon.exchange.ring import Ring, open_reader, open_writer

if TYPE_CHECKING:
    from antiphon.audio.card.process import Order

LAST_WAIT_S = 2.0


class Process:
    """The loop in a process of its own."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, capture: Ring, playback: Ring) -> None:
        handles = [ring.handle() if self._child is None else ring.renew() for ring in (capture, playback)]
        fds = [fd for handle in handles for fd in handle.fds]
        words = [*(handle.text() for handle in handles), self._order.text()]
        # Libraries of linear algebra start threads of their own, which it has no use for.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        try:
            self._child = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-m", "antiphon.audio.card.process", *words],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,  # a Ctrl-C is for us: it ends when we let go
            )
        except OSError as error:
            raise MachineError(f"the audio process cannot be started: {error.strerror}") from error
        capture.handed_over()
        playback.handed_over()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def ask_to_end(self) -> None:
        """It notices by itself that we let go."""

    def ended(self) -> str:
        """Wait for its end; its last line, if it ended badly."""
        child = self._child
        if child is None:
            return ""
        try:
            _, written = child.communicate(timeout=LAST_WAIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            _, written = child.communicate()
        lines = written.decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if child.returncode and lines else ""


class MoverThread:
    """The loop in a thread of this process, with whatever holds Python's lock in its way: to show what that costs."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None

    def start(self, capture: Ring, playback: Ring) -> None:
        order, clock = self._order, MonotonicClock()
        writer, reader = open_writer(capture.handle()), open_reader(playback.handle())
        self._loop = Loop(cards(order.sound, clock), writer, reader, order.sound, order.voice_hz, clock)
        self._thread = threading.Thread(target=self._loop.run, name="antiphon-sound", daemon=True)
        self._loop.tell(Note(what="ready", text="sound is moved by a thread of this process, under no policy"))
        self._thread.start()

    def kill(self) -> None:
        self.ask_to_end()

    def ask_to_end(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.stop()
            self._thread.join(LAST_WAIT_S)

    def ended(self) -> str:
        if self._loop is not None and self._thread is not None and not self._thread.is_alive():
            self._loop.close()
            self._loop = None
        return ""
