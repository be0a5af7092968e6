"""A run's load and the ruler's own error in -> whether its figures can be believed, in words.

Steal is processor time that the host gave to other guests, as a share of all; others' load is in cores. Either bends
latencies by more than servers differ. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from antiphon.lab.result import Run

MOST_STEAL = 0.02
MOST_BUSY_CORES = 0.05  # by processes that are neither the lab nor the server that it started
MOST_RULER_MS = 10.0  # of its own P99: half a frame of 20 ms


def is_void(run: Run) -> bool:
    """Whether the load alone makes the run worthless; a run whose load is not known is not void."""
    return bool(reasons(run.load)) or run.load.get("is_valid") is False


def reasons(load: Mapping[str, Any]) -> list[str]:
    """What bent the figures, each as half a sentence; none if nothing did."""
    found = []
    steal, busy = _number(load.get("steal")), _number(load.get("busy_by_others"))
    if steal is not None and steal > MOST_STEAL:
        found.append(f"the host took {steal:.1%} of the processor time for others (at most {MOST_STEAL:.0%} may be)")
    if busy is not None and busy > MOST_BUSY_CORES:
        found.append(f"other programs used {busy:.2f} cores (at most {MOST_BUSY_CORES:.2f} may be)")
    return found


def sentence(run: Run) -> str:
    """The verdict as one sentence or two."""
    found = reasons(run.load)
    if found:
        why = " and ".join(found)
        return f"This run is void: {why}. Its latencies are worth nothing; measure again on a quiet machine."
    if run.load.get("is_valid") is False:
        return "This run is void: its own record of the load says so. Measure again on a quiet machine."
    if _number(run.load.get("steal")) is None:
        return "Whether the machine was quiet is not known: the run has no record of what the host and others took."
    busy = _number(run.load.get("busy_by_others"))
    others = "" if busy is None else f", other programs used {busy:.2f} cores"
    return f"The machine was quiet: {float(run.load['steal']):.1%} of steal{others}."


def ruler_sentence(run: Run) -> str:
    """How far the lab itself was off its schedule; empty if that was not measured."""
    p99 = _number(run.ruler.get("p99_ms"))
    if p99 is None:
        return ""
    parts = [f"{name} {value:.2f} ms" for name, key in _RULER if (value := _number(run.ruler.get(key))) is not None]
    verdict = "" if p99 <= MOST_RULER_MS else " That is more than half a frame: the figures are too coarse to compare."
    return f"The ruler's own timing was off by {', '.join(parts)}.{verdict}"


_RULER = (("P50", "p50_ms"), ("P99", "p99_ms"), ("at most", "max_ms"))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
