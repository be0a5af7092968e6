"""Recorded machines, machines made up for one case, and plans for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from antiphon.config import Config
from antiphon.hardware.facts import Core, GpuFacts, MachineFacts
from antiphon.hardware.machine_file import read_machine
from antiphon.hardware.plan import Plan, make_plan
from antiphon.hardware.probe_cpu import CpuFacts
from antiphon.hardware.stage_costs import reference_costs

MACHINES = Path(__file__).parent / "machines"
GIB = 2**30
QUICK = {"quick_recognizer": "moonshine-tiny.en"}  # as models
AVX2 = frozenset({"avx", "avx2", "fma", "f16c"})


def recorded(name: str) -> MachineFacts:
    return read_machine(MACHINES / f"{name}.json")


def cpu(
    cores: int, *, usable: int = 0, flags: frozenset[str] | None = AVX2, memory_bytes: int | None = 8 * GIB
) -> CpuFacts:
    return CpuFacts(
        model="Some CPU",
        architecture="x86_64",
        logical_cores=cores,
        usable_cores=usable or cores,
        flags=flags,
        memory_bytes=memory_bytes,
    )


def h200() -> MachineFacts:
    """A host of one H200, 16 logical cores that are 8 whole ones, one memory node."""
    flags = AVX2 | {"avx512f", "avx512_vnni", "amx_int8"}
    return MachineFacts(
        cpu=cpu(16, flags=flags, memory_bytes=128 * GIB),
        cores=tuple(Core(number=number, physical=number // 2, socket=0, node=0, most_mhz=3800) for number in range(16)),
        gpus=(
            GpuFacts(
                index=0, name="NVIDIA H200", memory_bytes=150_754_820_096, compute="9.0", multiprocessors=132, node=0
            ),
        ),
    )


def hybrid() -> MachineFacts:
    """A laptop of four fast cores with two threads each, favoured ones a little faster, and eight slow ones."""
    fast = [Core(number=n, physical=n // 2, node=0, most_mhz=4700 if n < 4 else 4600) for n in range(8)]
    slow = [Core(number=n, physical=n, node=0, most_mhz=3400) for n in range(8, 16)]
    return MachineFacts(cpu=cpu(16), cores=(*fast, *slow))


def config(**sections: dict[str, object]) -> Config:
    """Defaults but for these, the number of callers left to the plan, and no quick recognizer."""
    made = Config()
    made = replace(made, models=replace(made.models, quick_recognizer=""))
    made = replace(made, capacity=replace(made.capacity, conversations=0))
    return replace(made, **{name: replace(getattr(made, name), **values) for name, values in sections.items()})


def plan(facts: MachineFacts, settings: Config | None = None) -> Plan:
    settings = settings or config()
    return make_plan(facts, settings.models, settings, reference_costs(facts, settings.models, {}))


def reason(made: Plan, stage: str, choice: str) -> str:
    return next(each.text for each in made.stage(stage).reasons if each.choice == choice)
