"""More and more callers -> how many a server holds.

Each level is a schedule of its own, and the next one begins when all its turns are over. The first level that breaks a
limit ends the ramp: more callers would only wait longer. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lab.scenario import perform
from antiphon.lab.schedule import lanes, levels
from antiphon.lab.summary import capacity, summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.lab.clips import Clip
    from antiphon.lab.plan import BenchPlan
    from antiphon.lab.result import Turn
    from antiphon.lab.scenario import Stage
    from antiphon.lab.schedule import Habits
    from antiphon.lab.summary import Capacity, CapacityLimits


async def climb(
    stage: Stage, plan: BenchPlan, habits: Habits, clips: Sequence[Clip], *, limits: CapacityLimits | None = None
) -> Capacity:
    """Raise the callers up to the plan's limit, or until a level breaks one of `limits`.

    Raises: as `perform`.
    """
    tried = {}
    tell = stage.on_turn
    for level in levels(plan.ramp_limit):
        turns: list[Turn] = []

        async def take(turn: Turn, turns: list[Turn] = turns) -> None:
            turns.append(turn)
            await tell(turn)

        stage.on_turn = take
        await perform(stage, lanes(plan, habits, clips, callers=level))
        tried[level] = summarise(turns)
        if capacity(tried, limits).ended_by:
            break
    stage.on_turn = tell
    return capacity(tried, limits)
