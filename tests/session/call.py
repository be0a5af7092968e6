"""One caller with scripted ears, mind and voice, held in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tests.dialogue.conversation import MODEL
from tests.session.doubles import LevelDetector, ScriptedJudge, ScriptedRecognizer
from tests.session.mind import mind
from tests.speak.doubles import ToneVoice
from tests.virtual_time import VirtualClock, run

from antiphon.core.clock import SECOND_NS
from antiphon.core.flow import AudioFrame
from antiphon.dialogue.settings import TurnSettings
from antiphon.session import Engines, Session, SessionSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.think.doubles import ScriptedModel

    from antiphon.act.tool import Tool
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.session.events import Event

ORDER = ((1000, "A"), (1500, "latte,"), (2000, "please."))
# A scripted mind gives each reply once, so none is begun before its time.
TURN = TurnSettings(
    shortest_wait_ms=100,
    longest_wait_ms=1000,
    pause_ms=350,
    cut_in_risk=0.05,
    stalled_ms=500,
    hop_ms=1000,
    open_ahead=False,
)
Kind = TypeVar("Kind")


@dataclass
class Call:
    """Say who the caller meets and what they do; `hold` gives what happened."""

    frames: list[AudioFrame]
    ears: ScriptedRecognizer = field(default_factory=lambda: ScriptedRecognizer(ORDER))
    quick: ScriptedRecognizer | None = None  # what hears first, where the ears hear again
    mind: ScriptedModel = field(default_factory=lambda: mind(["Coming ", "right ", "up. ", "Anything ", "else?"]))
    voice: ToneVoice = field(default_factory=ToneVoice)
    judge: ScriptedJudge = field(default_factory=ScriptedJudge)
    detector: LevelDetector = field(default_factory=LevelDetector)
    turn: TurnSettings = TURN
    tools: tuple[Tool, ...] = ()
    greeting: str = ""
    interruptible: bool = True
    act: Callable[[Session], Awaitable[None]] | None = None  # what the owner does beside listening

    @property
    def engines(self) -> Engines:
        return Engines(
            voice_detector=self.detector,
            recognizer=self.ears,
            quick_recognizer=self.quick,
            language_model=self.mind,
            synthesizer=self.voice,
            prosody=self.judge,
        )

    @property
    def settings(self) -> SessionSettings:
        return SessionSettings(
            turn_end=MODEL,
            instructions="Be brief.",
            turn=self.turn,
            tools=self.tools,
            greeting=self.greeting,
            interruptible=self.interruptible,
        )

    def hold(self) -> list[Event]:
        return run(self._hold())

    async def _hold(self) -> list[Event]:
        clock = VirtualClock()
        self.log: list[tuple[Stimulus, tuple[Command, ...]]] = []
        watch = lambda stimulus, commands: self.log.append((stimulus, commands))  # noqa: E731
        async with Session(self.engines, self.settings, clock=clock, watch=watch) as session:
            feeding = asyncio.create_task(self._feed(session, clock))
            acting = asyncio.create_task(self.act(session)) if self.act else None
            heard = [event async for event in session]
            await feeding
            if acting:
                await acting
            self.history = session.history
            self.left_over = session._conduct.under_way
        return heard

    async def _feed(self, session: Session, clock: VirtualClock) -> None:
        origin_ns = clock.now_ns()
        for frame in self.frames:
            await asyncio.sleep((origin_ns + frame.end_ns - clock.now_ns()) / SECOND_NS)
            session.feed(AudioFrame(frame.pcm, frame.rate_hz, frame.pos_samples, frame.captured_ns + origin_ns))
        session.hang_up()


def of(kind: type[Kind], heard: list[Event]) -> list[Kind]:
    return [event for event in heard if isinstance(event, kind)]
