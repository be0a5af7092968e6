"""A network for calls over WebRTC that can be cut: a page's datagrams go through a relay of ours, and only there."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import TYPE_CHECKING, Any, Self

from tests.serve.webrtc.relay import Relay

if TYPE_CHECKING:
    from types import TracebackType

CALLS = "**/v1/realtime/calls**"
CANDIDATE = re.compile(r"a=candidate:.*\r\n")


class MediaWire:
    """Stands between a page and its server: call by call, as many as the page makes."""

    def __init__(self, page: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._relays: list[Relay] = []
        self._page = page  # playwright's
        self.is_cut = False

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, name="media-wire")
        self._thread.start()
        self._page.route(CALLS, self._call)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for relay in self._relays:
            asyncio.run_coroutine_threadsafe(relay.__aexit__(None, None, None), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """Nothing comes through in either direction, and no call can be made."""
        self._set(is_cut=True)

    def mend(self) -> None:
        self._set(is_cut=False)

    def _set(self, *, is_cut: bool) -> None:
        self.is_cut = is_cut
        for relay in self._relays:
            relay.is_bad = is_cut

    def _call(self, route: Any) -> None:
        """Let neither side know of the other's addresses: the offer tells none, the answer only the relay's."""
        if self.is_cut:
            route.abort()
            return
        if route.request.url.endswith("/hangup"):
            route.continue_()
            return
        response = route.fetch(post_data=CANDIDATE.sub("", route.request.post_data))
        relay = Relay(loss=1.0, jitter_s=0.0, seed=1)
        asyncio.run_coroutine_threadsafe(relay.__aenter__(), self._loop).result(10)
        self._relays.append(relay)
        route.fulfill(response=response, body=relay.stand_between(response.text()))
