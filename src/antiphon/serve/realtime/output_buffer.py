"""The sound of responses that goes over a track of its own -> the `output_audio_buffer` events that tell of it.

Of each response that sounds: `started` with its first sound, then once either `stopped`, when the last of it has left,
or `cleared`, when the rest was thrown away.
Threads: the event loop. What it does not know: packets, and why a response ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.core.flow import AudioFrame
    from antiphon.serve.line import Track
    from antiphon.serve.realtime.outbox import Outbox


class OutputBuffer:
    """Of one call."""

    def __init__(self, outbox: Outbox, track: Track) -> None:
        self._outbox = outbox
        self._track = track
        self._response: str | None = None  # that sounds, or of which something still waits
        self._cleared: str | None = None  # of which nothing more is to be heard, whatever still comes

    def play(self, response: str, frame: AudioFrame) -> None:
        """More of a response's sound."""
        if response == self._cleared:
            return
        if response != self._response:
            self._stopped(self._response)
            self._response = response
            self._put("started", response)
        self._track.play(frame)

    def finish(self, response: str) -> None:
        """No more of it will come, and what waits is still heard."""
        if response == self._response:
            self._track.when_sent(lambda: self._stopped(response))

    def clear(self) -> None:
        """Throw away what waits."""
        self._track.clear()
        response, self._response = self._response, None
        if response is not None:
            self._cleared = response
            self._put("cleared", response)

    def _stopped(self, response: str | None) -> None:
        if response is not None and response == self._response:
            self._response = None
            self._put("stopped", response)

    def _put(self, kind: str, response: str) -> None:
        self._outbox.put(f"output_audio_buffer.{kind}", {"response_id": response})
