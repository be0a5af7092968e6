"""A STUN server on the loopback that says whatever address it is told to."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Self

from aioice import stun

if TYPE_CHECKING:
    from types import TracebackType

TICK_S = 0.05  # until it is noticed that nobody asks any more


class StunServer:
    """A context manager; it answers from a thread of its own."""

    def __init__(self, says: tuple[str, int]) -> None:
        self._says = says
        self._is_over = threading.Event()
        self.asked: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(TICK_S)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._answer, name="stun-server")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join(10)
        self._socket.close()

    def _answer(self) -> None:
        while not self._is_over.is_set():
            try:
                data, where = self._socket.recvfrom(2048)
            except TimeoutError:
                continue
            question = stun.parse_message(data)
            answer = stun.Message(stun.Method.BINDING, stun.Class.RESPONSE, question.transaction_id)
            answer.attributes["XOR-MAPPED-ADDRESS"] = self._says
            self.asked.append(where)
            self._socket.sendto(bytes(answer), where)
