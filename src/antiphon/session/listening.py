"""The caller's frames in, stimuli out: their voice started, it stopped, the sound stalled.

Brings the sound to HEARING_RATE_HZ, and gives it to whoever listens: recognition, voice detection, and the window that
the prosody judge looks back through. Threads: the event loop; 0.3 ms for 20 ms of sound.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.audio.resample import FrameResampler
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS, samples_to_ns
from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.core.stamps import Stage
from antiphon.dialogue import stimuli
from antiphon.hear.ear import Ear
from antiphon.hear.segmenter import VoiceStarted, VoiceStopped
from antiphon.hear.voice_signs import VoiceSigns
from antiphon.session.window import SoundWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock
    from antiphon.core.errors import AntiphonError
    from antiphon.core.flow import AudioFrame, Pcm
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.hear.segmenter import VoiceFact
    from antiphon.scheduling.shares import Signs
    from antiphon.session.engines import Engines
    from antiphon.session.settings import SessionSettings
    from antiphon.session.two_pass import TwoPassRecognition


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlets:
    """Where what is heard goes to."""

    tell: Callable[[Stimulus], None]  # the dialogue
    report: Callable[[Stage, AntiphonError], None]  # failures
    hears: Callable[[Signs], None]  # whoever shares the cores between callers
    falters: Callable[[int], None]  # the voice may just have ended, and its sound up to there is to be heard
    goes_on: Callable[[], None]  # it had not


class Listening:
    """One caller's microphone."""

    def __init__(
        self,
        engines: Engines,
        recognition: TwoPassRecognition,
        *,
        clock: Clock,
        settings: SessionSettings,
        outlets: Outlets,
    ) -> None:
        self._recognition = recognition
        self._clock = clock
        self._stalled_ns = settings.turn.stalled_ms * MILLISECOND_NS
        self._tell = outlets.tell
        self._report = outlets.report
        self._hears = outlets.hears
        self._falters = outlets.falters
        self._goes_on = outlets.goes_on
        self._faltered_from: int | None = None
        self._ear = Ear(engines.voice_detector, settings.ear)
        self._signs = VoiceSigns(engines.voice_detector.frame_samples)
        self._window = SoundWindow(engines.prosody.window_samples if engines.prosody else 0)
        self._resampler: FrameResampler | None = None
        self._latest: AudioFrame | None = None
        self._fed_ns = 0
        self._watch: asyncio.Task[None] | None = None
        self._adjusted = asyncio.Event()

    def adjust(self, settings: SessionSettings) -> None:
        """Take the voice for one, and silence for a lost microphone, by other settings from here on."""
        self._ear.adjust(settings.ear)
        self._stalled_ns = settings.turn.stalled_ms * MILLISECOND_NS
        self._adjusted.set()

    def feed(self, frame: AudioFrame, tasks: asyncio.TaskGroup) -> None:
        """Take the next sound; see Session.feed."""
        if frame.pcm.ndim != 1:
            raise CallerError(f"the sound has shape {frame.pcm.shape}", hint="mix it down to one channel")
        if self._resampler is None:
            self._resampler = FrameResampler(frame.rate_hz, HEARING_RATE_HZ)
        for heard in self._resampler.push(frame):
            self._hear(heard)
        self._fed_ns = self._clock.now_ns()
        if self._watch is None or self._watch.done():
            self._watch = tasks.create_task(self._expect_sound())

    def end(self) -> None:
        """No sound will come any more."""
        self.close()
        for heard in self._resampler.flush() if self._resampler else ():
            self._hear(heard)
        end_samples, ended_ns = self.where_it_ended()
        self._tell(stimuli.InputEnded(at_ns=self._clock.now_ns(), end_samples=end_samples, ended_ns=ended_ns))

    def close(self) -> None:
        """Expect no more sound."""
        if self._watch is not None:
            self._watch.cancel()

    def last_seconds(self) -> Pcm:
        """What the prosody judge looks at."""
        return self._window.last()

    def where_it_ended(self) -> tuple[int, int]:
        """(samples, ns) of the newest sound."""
        latest = self._latest
        return (latest.end_samples, latest.end_ns) if latest else (0, self._clock.now_ns())

    def _hear(self, frame: AudioFrame) -> None:
        self._latest = frame
        self._window.push(frame.pcm)
        self._recognition.feed(frame)
        try:
            facts = self._ear.hear(frame)
        except EngineError as error:
            self._report(Stage.VAD, error)
            return
        self._hears(self._signs.take(frame.pcm, self._ear))
        for fact in facts:
            self._tell(self._stimulus(fact, frame))
        falters_from = self._ear.falters_from
        if falters_from != self._faltered_from and falters_from is not None:
            self._falters(self._ear.pos_samples)
        elif falters_from is None and self._faltered_from is not None and self._ear.is_voiced:
            self._goes_on()
        self._faltered_from = falters_from

    def _stimulus(self, fact: VoiceFact, frame: AudioFrame) -> Stimulus:
        now_ns = self._clock.now_ns()
        match fact:
            case VoiceStarted(start_samples=start):
                return stimuli.VoiceStarted(at_ns=now_ns, start_samples=start)
            case VoiceStopped(end_samples=end):
                ended_ns = frame.end_ns - samples_to_ns(frame.end_samples - end, HEARING_RATE_HZ)
                return stimuli.VoiceStopped(at_ns=now_ns, end_samples=end, ended_ns=ended_ns)

    async def _expect_sound(self) -> None:
        """A microphone that stops delivering is a pause: sleep until it could have stopped, and look."""
        while (patience_ns := self._fed_ns + self._stalled_ns - self._clock.now_ns()) > 0:
            self._adjusted.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._adjusted.wait(), patience_ns / SECOND_NS)
        self._ear.break_off()
        end_samples, ended_ns = self.where_it_ended()
        self._tell(stimuli.InputStalled(at_ns=self._clock.now_ns(), end_samples=end_samples, ended_ns=ended_ns))
