"""`antiphon talk`: a conversation on this machine's own microphone and headphones."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from antiphon.cli.config import add_flags, resolve
from antiphon.cli.device import add_device, on_device
from antiphon.core.clock import MILLISECOND_NS, MonotonicClock

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from antiphon.agent import Agent
    from antiphon.audio.card.link import SoundLink
    from antiphon.audio.card.notes import Note
    from antiphon.cli.talk_view import TalkView
    from antiphon.config import Config
    from antiphon.core.flow import AudioFrame
    from antiphon.session import Session

SCHEMA = "antiphon.talk/1"
VOICE_HZ = 24_000  # what the loudspeaker is asked for first, as the default voice has it; others are resampled
MOST_DELAYS = 1_000_000  # of captured frames whose way is remembered: over an hour
LAST_WORDS_S = 2.0  # for what is being said when the time is over


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    from antiphon.audio.card.settings import SoundSystem

    parser = subparsers.add_parser(
        "talk",
        help="talk to it, on this machine's microphone and headphones",
        description="A conversation on this machine's own microphone and loudspeaker, both ways at once. Wear "
        "headphones: what the loudspeaker says is not taken out of what the microphone hears. Ctrl-C ends it.",
    )
    parser.add_argument("--agent", type=Path, metavar="AGENT.PY", help="a Python file that defines `agent`")
    parser.add_argument("--list", action="store_true", help="list the devices that can be named, and end")
    parser.add_argument("--input", metavar="NAME", help="the microphone (sound.input); default: the system's")
    parser.add_argument("--output", metavar="NAME", help="the loudspeaker (sound.output); default: the system's")
    parser.add_argument("--system", choices=get_args(SoundSystem), help="through which sound goes (sound.system)")
    parser.add_argument("--seconds", type=float, metavar="S", help="end after so long")
    parser.add_argument("--turns", type=int, metavar="N", help="end after so many replies")
    parser.add_argument("--out", type=Path, metavar="WAV", help="the conversation in stereo: you left, the reply right")
    parser.add_argument("--json", type=Path, metavar="JSON", help="everything that was measured")
    add_device(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Talk; 1 if nobody said anything that was answered.

    Raises:
        MachineError: there is no sound to be had, or the models are not here.
        CallerError: a setting or the agent's file is wrong.
    """
    from rich.console import Console

    from antiphon.agent import Agent, read_agent

    console = Console(highlight=False)
    if arguments.list:
        return show_devices(console)
    agent = read_agent(arguments.agent) if arguments.agent else Agent()
    config = on_device(resolve(arguments).config, arguments)
    named = {name: getattr(arguments, name) for name in ("system", "input", "output")}
    sound = replace(config.sound, **{name: value for name, value in named.items() if value is not None})
    limits = _Limits(arguments.seconds, arguments.turns)
    talk = _Talk(agent, replace(config, sound=sound), limits, console)
    try:
        asyncio.run(talk.hold())
    except KeyboardInterrupt:
        console.print("Ended.", style="dim")
    finally:
        talk.write(arguments.out, arguments.json)
    return 0 if talk.view.turns else 1


def show_devices(console: Console) -> int:
    """A line for each that can be named; 1 if there is none."""
    from rich.table import Table

    from antiphon.audio.card.choose import choices

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("system", "name", "in", "out", "what it is"):
        table.add_column(heading, overflow="fold")
    found = choices()
    for choice in found:
        ways = ("yes" if has else "" for has in (choice.can_capture, choice.can_play))
        table.add_row(choice.system, choice.name, *ways, choice.text)
    if found:
        console.print(table)
    else:
        console.print("No sound system is here. hint: apt install libasound2, or pip install 'antiphon[talk]'")
    return 0 if found else 1


@dataclass(frozen=True, slots=True)
class _Limits:
    seconds: float | None
    turns: int | None


@dataclass(slots=True)
class _Talk:
    """One conversation by sound card: link and session side by side."""

    agent: Agent
    config: Config
    limits: _Limits
    console: Console
    view: TalkView = field(init=False)
    delays_ns: list[int] = field(default_factory=list)  # from a period's last sample to the session
    over: asyncio.Event = field(default_factory=asyncio.Event)
    failed: Note | None = None
    link: SoundLink | None = None
    session: Session | None = None
    ready_ms: float = 0.0

    def __post_init__(self) -> None:
        from antiphon.cli.talk_view import TalkView

        self.view = TalkView(self.console)

    async def hold(self) -> None:
        """Open the card, load the models, talk."""
        from antiphon.audio.card.link import SoundLink
        from antiphon.audio.card.process import Order
        from antiphon.core.errors import MachineError
        from antiphon.hardware.audio_plan import plan_audio
        from antiphon.hardware.probe_rights import probe_rights

        rights, _ = await asyncio.to_thread(probe_rights)
        plan = plan_audio(rights, self.config.cpu.audio_policy)
        order = Order(sound=self.config.sound, plan=plan, voice_hz=VOICE_HZ)
        clock = MonotonicClock()
        async with SoundLink(order, hear=self.hear, tell=self.tell) as self.link:
            started_ns = clock.now_ns()
            config = self.agent.configured(self.config)
            runtime = await self.agent.load(config)
            self.ready_ms = (clock.now_ns() - started_ns) / MILLISECOND_NS
            try:
                self.console.print(f"Models loaded and warm after {self.ready_ms / 1000:.1f} s. Say something; "
                                   "Ctrl-C ends it.", style="dim")  # fmt: skip
                async with runtime.open(self.agent.settings(runtime, config)) as session:
                    self.session = session
                    with self.view.live():
                        await self._until_over(session)
                    self.session = None
            finally:
                runtime.close()
        if self.failed:
            raise MachineError(self.failed.text, hint=self.failed.hint)

    async def _until_over(self, session: Session) -> None:
        listener = asyncio.create_task(self._listen(session))
        waiter = asyncio.create_task(self.over.wait())
        try:
            await asyncio.wait({listener, waiter}, timeout=self.limits.seconds, return_when="FIRST_COMPLETED")
            session.hang_up()
            await asyncio.wait({listener}, timeout=LAST_WORDS_S)
            if listener.done():
                listener.result()  # raises what it raised
        finally:
            waiter.cancel()
            listener.cancel()

    async def _listen(self, session: Session) -> None:
        from antiphon.session.events import ReplyAudio, ReplyFinished

        assert self.link is not None
        async for event in session:
            match event:
                case ReplyAudio(frame=frame):
                    self.link.play(frame)
                    self.view.says(frame)
                case ReplyFinished():
                    self.link.finish()
                case _:
                    pass
            self.view.tell(event)
            if isinstance(event, ReplyFinished) and self.limits.turns and len(self.view.turns) >= self.limits.turns:
                self.over.set()

    def hear(self, frame: AudioFrame) -> None:
        """A captured frame; those before the models are loaded are not for anybody."""
        if self.session is None:
            return
        if len(self.delays_ns) < MOST_DELAYS:
            self.delays_ns.append(MonotonicClock().now_ns() - frame.end_ns)
        self.view.hears(frame)
        self.session.feed(frame)

    def tell(self, note: Note) -> None:
        """What the audio process says of itself."""
        self.view.note(note)
        if note.what == "failed":
            self.failed = note
            self.over.set()

    def write(self, wav: Path | None, file: Path | None) -> None:
        """Write what was asked for."""
        if wav:
            self.view.recording.save(wav)
            self.console.print(f"{wav}  the conversation: you left, Antiphon right")
        if file:
            file.write_text(json.dumps(self.record(), indent=2) + "\n", encoding="utf-8")
            self.console.print(f"{file}  all of it in figures")

    def record(self) -> dict[str, Any]:
        """Everything that was measured; times in ms."""
        view, link = self.view, self.link
        return {
            "schema": SCHEMA,
            "ready_ms": self.ready_ms,
            "policy": view.policy,
            "devices": view.devices,
            "turns": [
                {
                    "turn": turn.turn,
                    "text": turn.text,
                    "reply": turn.reply,
                    "session_ms": turn.session_ns / MILLISECOND_NS,
                    "loudspeaker_ms": turn.loudspeaker_ns / MILLISECOND_NS,
                    "v2v_ms": (turn.session_ns + turn.loudspeaker_ns) / MILLISECOND_NS,
                }
                for turn in view.turns
            ],
            "xruns": view.xruns,
            "wake_ups_per_second": view.wake_ups,
            "worst_wake_up_ms": view.worst_ns / MILLISECOND_NS,
            "capture_to_session_ms": percentiles_ms(self.delays_ns),
            "dropped_frames": link.dropped_frames if link else 0,
            "restarts": link.restarts if link else 0,
        }


def percentiles_ms(values_ns: list[int]) -> dict[str, float | int]:
    """P50, P99, worst, and of how many."""
    if not values_ns:
        return {"count": 0}
    ordered = sorted(values_ns)
    at = {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in (("p50", 0.5), ("p99", 0.99))
    }
    return {
        **{name: ns / MILLISECOND_NS for name, ns in at.items()},
        "worst": ordered[-1] / MILLISECOND_NS,
        "count": len(ordered),
    }
