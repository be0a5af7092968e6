"""A server as it runs -> one JSON object: who is here, how fast turns were, engines, the plan, drafts' fates.

It reads and changes nothing. No words, no keys, no addresses of callers. Units: epoch seconds, ms.
Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon import __version__
from antiphon.hardware.plan import Role

if TYPE_CHECKING:
    from prometheus_client import Counter

    from antiphon.hardware.plan import Plan
    from antiphon.serve.reception import Reception
    from antiphon.session.engines import Engines

SCHEMA = "antiphon.status/1"  # the number changes only if a field goes away or changes its meaning


def status(reception: Reception, *, now_s: float, since_s: float) -> dict[str, object]:
    """The server's state at this moment."""
    metrics, runtime = reception.metrics, reception.runtime
    return {
        "schema": SCHEMA,
        "version": __version__,
        "condition": reception.condition,
        "now_s": round(now_s, 2),
        "since_s": round(since_s, 2),
        "models": list(reception.offer.models),
        "sessions": {
            "open": reception.open_sessions,
            "capacity": reception.capacity,
            "begun": _total(metrics.sessions),
            "ended": _by_label(metrics.ended),
            "refused": _by_label(metrics.refused),
            "now": reception.guests(),
        },
        "turns": {"outcomes": _by_label(metrics.turns), "recent": metrics.recent.wire()},
        "drafts": _by_label(metrics.drafts),
        "stage_failures": _by_label(metrics.stage_failures),
        "engines": _engines(runtime.engines) if runtime is not None else [],
        "plan": _plan(runtime.plan, runtime.engines) if runtime is not None and runtime.plan is not None else None,
    }


def _by_label(counter: Counter) -> dict[str, int]:
    """The totals of a counter with one label."""
    return {
        next(iter(sample.labels.values())): int(sample.value)
        for family in counter.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }


def _total(counter: Counter) -> int:
    return int(sum(s.value for family in counter.collect() for s in family.samples if s.name.endswith("_total")))


def _engines(engines: Engines) -> list[dict[str, str]]:
    found = {
        "voice_detector": engines.voice_detector,
        "recognizer": engines.recognizer,
        "quick_recognizer": engines.quick_recognizer,
        "prosody": engines.prosody,
        "language_model": engines.language_model,
        "synthesizer": engines.synthesizer,
    }
    return [{"role": role, "name": str(getattr(engine, "name", ""))} for role, engine in found.items() if engine]


def _plan(plan: Plan, engines: Engines) -> dict[str, object]:
    """The plan as it is carried out; a language model's path or address is nobody else's business."""

    def shown(text: str) -> str:
        return text.replace(private, engines.language_model.name) if private else text

    private = next((stage.model for stage in plan.stages if stage.stage is Role.LANGUAGE_MODEL), "")
    return {
        "callers": plan.callers,
        "usable_cores": plan.usable_cores,
        "stages": [
            {
                "stage": str(stage.stage),
                "engine": stage.engine,
                "model": shown(stage.model),
                "device": stage.device,
                "threads": stage.threads,
                "cores": list(stage.cores),
                "batch": stage.batch,
                "width": stage.width,
                "reasons": [
                    {"choice": reason.choice, "value": reason.value, "text": shown(reason.text)}
                    for reason in stage.reasons
                ],
            }
            for stage in plan.stages
        ],
        "reasons": [{"choice": one.choice, "value": one.value, "text": one.text} for one in plan.reasons],
        "warnings": list(plan.warnings),
    }
