"""A client's packets as they come -> its sound in order, without gaps, each frame with the moment of its capture.

The moment is the client's own, brought to our clock, so that neither the network's delay nor what a packet waited here
for another looks like the caller's silence.
Units: samples at 48 kHz inside, HEARING_RATE_HZ out; ns of our clock. Pure but for the decoder that it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from antiphon.audio.resample import FrameResampler
from antiphon.core.clock import samples_to_ns
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame
from antiphon.serve.webrtc.concealment import RATE_HZ, Concealer
from antiphon.serve.webrtc.jitter import JitterBuffer, Missing, Packet
from antiphon.serve.webrtc.remote_clock import RemoteClock, patience_ns

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm
    from antiphon.serve.webrtc.jitter import Receipts, Sent, Step

MOST_CONCEALED = 120 * RATE_HZ // 1000  # samples of one loss; what is longer is silence
MOST_FILLED = RATE_HZ  # samples of one gap; a longer one is shortened


class Decoder(Protocol):
    """What a packet holds."""

    def decode(self, payload: bytes) -> Pcm:
        """(samples,) at 48 kHz.

        Raises:
            ValueError: it cannot be read.
        """
        ...


class Incoming:
    """One client's track."""

    def __init__(self, decoder: Decoder, *, lookahead_samples: int = 0) -> None:
        self.clock = RemoteClock()
        self.concealed_samples = 0
        self._decoder = decoder
        self._lookahead_samples = lookahead_samples
        self._jitter = JitterBuffer()
        self._concealer = Concealer()
        self._resampler = FrameResampler(RATE_HZ, HEARING_RATE_HZ)
        self._pos_samples = 0
        self._captured_ns = 0  # of the newest frame; they never go back

    @property
    def receipts(self) -> Receipts:
        return self._jitter.receipts

    def arrive(self, sent: Sent, now_ns: int) -> list[AudioFrame]:
        """A packet came; the sound that can go on."""
        packet = self._jitter.push(sent, now_ns)
        if packet is not None:
            self.clock.see(_ns(packet.at_samples + packet.samples), now_ns)
        return self.take(now_ns)

    def take(self, now_ns: int) -> list[AudioFrame]:
        """The sound that has waited long enough for what is missing; call this at `next_ns`."""
        steps = self._jitter.take(now_ns, patience_ns(self.clock.jitter_ns))
        return [frame for step in steps for frame in self._frames(step)]

    @property
    def next_ns(self) -> int | None:
        """When something will have waited long enough; None: nothing waits."""
        return self._jitter.next_ns(patience_ns(self.clock.jitter_ns))

    def _frames(self, step: Step) -> tuple[AudioFrame, ...]:
        pcm = self._sound(step)
        if not len(pcm):
            return ()
        captured_ns = self.clock.here(_ns(step.at_samples - self._lookahead_samples))
        self._captured_ns = max(self._captured_ns, captured_ns)
        frame = AudioFrame(pcm, RATE_HZ, self._pos_samples, self._captured_ns)
        self._pos_samples += len(pcm)
        return self._resampler.push(frame)

    def _sound(self, step: Step) -> Pcm:
        if isinstance(step, Packet):
            try:
                return self._concealer.heard(self._decoder.decode(step.payload))
            except ValueError:
                step = Missing(step.at_samples, step.samples, 1)
        samples = min(step.samples, MOST_FILLED)
        concealed = min(samples, MOST_CONCEALED) if step.packets else 0
        self.concealed_samples += concealed
        silence = np.zeros(samples - concealed, np.float32)
        if not concealed:
            return self._concealer.heard(silence)
        return np.concatenate([self._concealer.conceal(concealed), silence])


def _ns(samples: int) -> int:
    return samples_to_ns(samples, RATE_HZ)
