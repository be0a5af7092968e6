"""Lists of values, or the name of a baseline -> policies to try, each with what tells it from the others.

Two baselines are what others do, on the same conversations and with all else of ours:

- `silence`: the turn is over after a fixed silence, whatever was said. Settings express it: `turn.shortest_wait_ms` and
  `turn.longest_wait_ms` the same.
- `smart-turn`: the tone of voice alone decides; above a threshold the turn is over at once, else after a long silence.
  No setting expresses that; the fit by which evidence becomes a posterior does, and here is put in the place of ours:
  0 or 1 by the tone of voice, 0 as long as it is not known.

Units: ms in settings. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.dialogue.turn_end import KINDS, Fit, TurnEndModel, logit
from antiphon.hindsight.again import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from antiphon.dialogue.settings import TurnSettings

MOST_TRIALS = 5000  # of one sweep
SILENCES_MS = (100, 150, 200, 250, 300, 350, 400, 500, 600, 700, 800, 1000, 1200)
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
PATIENCES_MS = (500, 800, 1200, 2000, 3000)
STEEP = 1e6  # of a fit that is a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One policy to try; `of` gives it for a conversation that was held with these settings."""

    name: str
    settings: Mapping[str, object]
    of: Callable[[TurnSettings], Policy]


def grid(sweeps: Sequence[str]) -> list[tuple[str, ...]]:
    """Every combination of "turn.name=a,b,c" each, as assignments.

    Raises:
        CallerError: a list is empty, a name comes twice, or there are too many combinations.
    """
    lists: list[list[str]] = []
    names: set[str] = set()
    count = 1
    for sweep in sweeps:
        name, _, values = (part.strip() for part in sweep.partition("="))
        found = [value.strip() for value in values.split(",") if value.strip()]
        if not found or name in names:
            raise CallerError(
                f"--sweep {sweep} lists no values" if not found else f"--sweep {name} is given twice",
                hint="write --sweep turn.shortest_wait_ms=60,100,160",
            )
        names.add(name)
        lists.append([f"{name}={value}" for value in dict.fromkeys(found)])
        count *= len(lists[-1])
    if count > MOST_TRIALS:
        raise CallerError(f"the sweep has {count} combinations", hint=f"{MOST_TRIALS} are the most")
    return list(product(*lists))


def swept(
    combinations: Iterable[tuple[str, ...]], change: Callable[[TurnSettings, Sequence[str]], TurnSettings]
) -> list[Variant]:
    """The policies of a grid; `change` applies assignments to settings."""

    def variant(assignments: tuple[str, ...]) -> Variant:
        parts = (assignment.partition("=") for assignment in assignments)
        return Variant(
            name=" ".join(assignment.removeprefix("turn.") for assignment in assignments) or "as recorded",
            settings={name: value for name, _, value in parts},
            of=lambda recorded: Policy(settings=change(recorded, assignments)),
        )

    return [variant(assignments) for assignments in combinations]


def silence_alone(waits_ms: Sequence[int] = SILENCES_MS) -> list[Variant]:
    """Each turn is over after the same silence."""

    def variant(wait_ms: int) -> Variant:
        return Variant(
            name=f"{wait_ms} ms",
            settings={"turn.shortest_wait_ms": wait_ms, "turn.longest_wait_ms": wait_ms},
            of=lambda recorded: Policy(
                settings=replace(recorded, shortest_wait_ms=wait_ms, longest_wait_ms=wait_ms),
            ),
        )

    return [variant(wait_ms) for wait_ms in waits_ms]


def smart_turn_alone(
    thresholds: Sequence[float] = THRESHOLDS, patiences_ms: Sequence[int] = PATIENCES_MS
) -> list[Variant]:
    """The tone of voice decides; `patiences_ms`: silences after which a turn is over that does not sound it."""

    def variant(threshold: float, patience_ms: int) -> Variant:
        return Variant(
            name=f"{threshold:g}, else {patience_ms} ms",
            settings={"threshold": threshold, "turn.longest_wait_ms": patience_ms},
            of=lambda recorded: Policy(
                settings=replace(
                    recorded,
                    shortest_wait_ms=min(recorded.shortest_wait_ms, SILENCES_MS[0]),
                    longest_wait_ms=patience_ms,
                    pause_ms=10_000,  # so that the wait is either the shortest or the longest
                    cut_in_risk=0.04,
                ),
                turn_end=step_at(threshold),
            ),
        )

    return [variant(threshold, patience_ms) for threshold, patience_ms in product(thresholds, patiences_ms)]


def step_at(threshold: float) -> TurnEndModel:
    """Posterior 1 where the tone of voice is at or above the threshold, else 0; 0 where it is not known."""
    knows = Fit(-STEEP * logit(threshold) + 1.0, {"prosody": STEEP})
    never = Fit(-STEEP, {})
    return TurnEndModel({kind: knows if "prosody" in kind else never for kind in KINDS})
