"""Turns with the scripted server in virtual time: what the lab says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lab.fake_server import InMemory, Script, speech
from tests.virtual_time import VirtualClock, run

from antiphon.lab.caller import Manners
from antiphon.lab.lateness import Lateness
from antiphon.lab.patience import Patience
from antiphon.lab.plan import BenchPlan, SessionWishes
from antiphon.lab.ramp import climb
from antiphon.lab.scenario import Stage, perform
from antiphon.lab.schedule import RAMP, Habits, lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.lab.microphone import Speech
    from antiphon.lab.result import Turn

FRAME_MS = 20


def turns_with(
    script: Script,
    speeches: Sequence[Speech] = (),
    *,
    wishes: SessionWishes | None = None,
    manners: dict[str, Any] | None = None,
    habits: dict[str, Any] | None = None,
    **plan: Any,
) -> tuple[list[Turn], Stage]:
    """Perform a plan; without speeches, one of 205 ms, whose end lies 5 ms into a frame of the clip."""
    speeches = speeches or [speech(205)]
    made = BenchPlan(url="ws://nowhere", wishes=wishes or SessionWishes(), **plan)
    ways = Habits(**(habits or {}))

    async def main() -> tuple[list[Turn], Stage]:
        turns: list[Turn] = []

        async def take(turn: Turn) -> None:
            turns.append(turn)

        server = InMemory(script)
        clock = VirtualClock()
        stage = Stage(
            dial=server.dial,
            manners=Manners(wishes=made.wishes, **(manners or {})),
            habits=ways,
            patience=Patience(answer_s=made.patience_s),
            speeches={one.clip.name: one for one in speeches},
            clock=clock,
            lateness=Lateness(),
            on_turn=take,
            scenario=made.scenario,
            began_ns=clock.now_ns(),
        )
        try:
            clips = [one.clip for one in speeches]
            if made.scenario == RAMP:
                found = await climb(stage, made, ways, clips)
                stage.notes.append(f"{found.callers} of {found.tried}")
            else:
                await perform(stage, lanes(made, ways, clips, callers=made.callers))
        finally:
            await server.close()
        return turns, stage

    return run(main())
