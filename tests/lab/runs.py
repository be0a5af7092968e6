"""Made-up runs, for tests and for looking at the report: what they hold was never measured."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from antiphon.lab.result import Outcome, Run, Turn

KINDS = {
    "clean": (640.0, 0.16, 0.0),
    "noisy": (760.0, 0.2, 0.01),
    "hesitation": (820.0, 0.22, 0.06),
}  # ms, spread, cut-ins
ORDERS = ("a large latte with oat milk", "two shots of espresso", "a small americano, dark roast")
STAGES = (
    ("antiphon.pause.noticed", 0.16),
    ("antiphon.transcribed", 0.42),
    ("antiphon.turn.confirmed", 0.55),
    ("antiphon.reply.first_token", 0.74),
    ("antiphon.reply.chunk_ready", 0.86),
    ("antiphon.reply.voiced", 0.97),
    ("antiphon.reply.first_sound", 1.0),
)
EVENTS = (
    ("input_audio_buffer.speech_stopped", 0.2),
    ("input_audio_buffer.committed", 0.56),
    ("response.created", 0.57),
    ("response.output_audio.delta", 0.99),
)


def turn(v2v_ms: float | None = 500.0, **changes: Any) -> Turn:
    """An answered turn, or a silent one where the latency is None."""
    outcome = Outcome.SILENT if v2v_ms is None else Outcome.ANSWERED
    plain: dict[str, Any] = {"clip": "a.flac", "kind": "clean", "outcome": outcome, "started_s": 0.0, "v2v_ms": v2v_ms}
    return Turn(**{**plain, **changes})


def run(turns: tuple[Turn, ...] = (), **changes: Any) -> Run:
    """A run with these turns."""
    plain: dict[str, Any] = {"name": "antiphon", "scenario": "single", "settings": {"callers": 1}, "turns": turns}
    return Run(**{**plain, **changes})


def large(
    *, seed: int = 1, turns: int = 320, callers: int = 4, speed: float = 1.0, stages: bool = True, **changes: Any
) -> Run:
    """Hundreds of turns of three kinds by several callers: some cut-ins, one silent, one failed, a few gaps."""
    dice = random.Random(seed)
    made = [_made(dice, number, callers, speed, stages=stages) for number in range(turns)]
    if turns > 20:
        made[17] = replace(
            made[17], outcome=Outcome.SILENT, v2v_ms=None, events_ms={}, stages_ms={}, reply="", reply_ms=None
        )
    plain: dict[str, Any] = {
        "settings": {"callers": callers, "seed": seed, "corpus": "barista", "kinds": list(KINDS), "patience_s": 10.0},
        "server": {"model": "antiphon", "voice": "hibari-heart", "turn_detection": {"type": "semantic_vad"}},
        "machine": {
            "cpu": "AMD EPYC 7B13",
            "cores": 2,
            "system": "Linux 6.18",
            "python": "3.11.9",
            "commit": "0123456789ab",
            "versions": {"antiphon": "0.1.0", "numpy": "2.4.6"},
        },
        "load": {"steal": 0.004, "busy_by_others": 0.01, "is_valid": True},
        "ruler": {"p50_ms": 0.08, "p99_ms": 1.9, "max_ms": 4.2, "cpu_share": 0.06},
    }
    return run(tuple(made), **{**plain, **changes})


def ramp(levels: tuple[int, ...] = (1, 2, 4, 8, 16), *, turns: int = 24) -> Run:
    """A server that bears four callers and breaks under more."""
    made: list[Turn] = []
    for level in levels:
        dice = random.Random(level)
        slower = 1 + max(0, level - 4) * 0.35
        made += [
            replace(_made(dice, number, level, slower, stages=False), scenario="ramp", callers=level)
            for number in range(turns)
        ]
    return run(tuple(made), scenario="ramp", settings={"callers": 1, "ramp_limit": max(levels)})


def _made(dice: random.Random, number: int, callers: int, speed: float, *, stages: bool) -> Turn:
    kind = dice.choices(list(KINDS), weights=(5, 2, 3))[0]
    middle, spread, cuts = KINDS[kind]
    v2v_ms = round(speed * middle * dice.lognormvariate(0, spread), 2)
    order = dice.choice(ORDERS)
    is_cut = dice.random() < cuts
    return Turn(
        clip=f"{kind}_{number % 80:03}.flac",
        kind=kind,
        caller=number % callers,
        number=number // callers,
        callers=callers,
        outcome=Outcome.CUT_IN if is_cut else Outcome.ANSWERED,
        started_s=round(number // callers * 6.2 + dice.random(), 3),
        due_s=round(number // callers * 6.2, 3),
        v2v_ms=None if is_cut else v2v_ms,
        late_ms=round(dice.expovariate(1 / 2.0), 2),
        cut_in_ms=round(dice.uniform(100, 900), 1) if is_cut else None,
        splits=int(is_cut),
        transcript=order,
        reply=f"Sure, {order}, coming right up. Anything else for you today?",
        slots={"size": "large", "coffeeDrink": "latte"},
        slots_heard=2 if dice.random() < 0.93 else 1,
        words=8,
        word_errors=int(dice.random() < 0.3),
        reply_ms=round(dice.uniform(1800, 3600), 1),
        gaps_ms=(round(dice.uniform(40, 300), 1),) if dice.random() < 0.03 else (),
        events_ms={name: round(v2v_ms * share, 2) for name, share in EVENTS},
        stages_ms={name: round(v2v_ms * share, 2) for name, share in STAGES} if stages else {},
    )
