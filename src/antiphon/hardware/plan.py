"""A machine's facts, the chosen models, settings and costs in -> which engine computes where, with what, and why, out.

The plan is data: the runtime and its lanes carry it out, `antiphon plan` prints it. The same inputs give the same plan.
Units: ns, bytes, logical cores by the system's numbers. Threads: pure.
What it does not know: how facts and costs were found, and whether an engine really loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from antiphon.hardware.admission import Means, admit, by_memory
from antiphon.hardware.audio_plan import AudioPlan, plan_audio
from antiphon.hardware.gpu_plan import GpuPlan, plan_gpu
from antiphon.hardware.reasons import Reason, plural
from antiphon.hardware.stage_choices import Ground, Role
from antiphon.hardware.stage_costs import Choice, StageCosts, is_served, speed_of
from antiphon.hardware.stage_plans import (
    StagePlan,
    plan_background,
    plan_language_model,
    plan_prosody,
    plan_quick_recognizer,
    plan_recognizer,
    plan_voice,
    plan_voice_detector,
)
from antiphon.hardware.topology import survey

if TYPE_CHECKING:
    from antiphon.hardware.facts import MachineFacts
    from antiphon.hardware.gpu_parts import Shares
    from antiphon.hardware.plan_settings import CapacitySettings, CpuSettings, GpuSettings
    from antiphon.hardware.topology import Topology

__all__ = ["AudioPlan", "GpuPlan", "Plan", "Reason", "Role", "Settings", "StagePlan", "make_plan"]


class Settings(Protocol):
    """What the user said; `antiphon.config.Config` is one."""

    @property
    def cpu(self) -> CpuSettings: ...
    @property
    def capacity(self) -> CapacitySettings: ...
    @property
    def gpu(self) -> GpuSettings: ...
    @property
    def scheduling(self) -> Shares: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which engine computes where, and how many callers there may be."""

    stages: tuple[StagePlan, ...]
    callers: int  # that are let in
    usable_cores: float  # of processor time, by affinity and quota
    computing_cores: float  # of these, what engines can keep busy: whole and fast ones, on the nodes that are used
    audio: AudioPlan  # of a sound card's thread
    gpus: tuple[GpuPlan, ...]
    costs: StageCosts  # that it was made from
    reasons: tuple[Reason, ...]  # for what concerns the whole
    warnings: tuple[str, ...]  # what makes this machine a poor place, with a remedy

    def stage(self, role: Role | str) -> StagePlan:
        """The plan of one stage."""
        return next(each for each in self.stages if each.stage == role)

    @property
    def has_quick_recognizer(self) -> bool:
        """Whether there is such a stage."""
        return any(each.stage is Role.QUICK_RECOGNIZER for each in self.stages)


def make_plan(facts: MachineFacts, choice: Choice, settings: Settings, costs: StageCosts) -> Plan:
    """Decide everything, as far as the settings leave it open.

    Raises:
        CallerError: a setting asks for what this machine does not have; the message names it.
    """
    topology = survey(facts)
    ground = Ground(
        facts=facts,
        choice=choice,
        cpu=settings.cpu,
        gpu=settings.gpu,
        costs=costs,
        topology=topology,
        callers=settings.capacity.conversations,
    )
    callers, admitting, means = _admitted(ground, settings)
    quick = (plan_quick_recognizer(ground),) if choice.quick_name else ()
    stages = (
        plan_voice_detector(ground),
        plan_recognizer(ground),
        *quick,
        plan_prosody(ground),
        plan_language_model(ground, callers),
        plan_voice(ground),
        plan_background(ground),
    )
    return Plan(
        stages=stages,
        callers=callers,
        usable_cores=topology.usable_cores,
        computing_cores=topology.computing_cores,
        audio=plan_audio(facts.rights, settings.cpu.audio_policy, facts.audio),
        gpus=tuple(
            plan_gpu(gpu, settings.gpu, settings.scheduling, context_tokens=settings.capacity.context_tokens)
            for gpu in facts.gpus
        ),
        costs=costs,
        reasons=(_usable(facts, topology), admitting, _origin(facts, costs)),
        warnings=tuple(_warnings(ground, means, callers)),
    )


def _admitted(ground: Ground, settings: Settings) -> tuple[int, Reason, Means]:
    """How many callers there may be, why, and what they share."""
    facts, choice, topology = ground.facts, ground.choice, ground.topology
    recognizer, alone = plan_recognizer(ground), plan_language_model(ground, 1)
    quick = plan_quick_recognizer(ground) if choice.quick_name else None
    means = Means(
        computing_cores=topology.computing_cores,
        memory_bytes=facts.cpu.memory_bytes,
        context_tokens=settings.capacity.context_tokens,
        recognizer_threads=recognizer.threads,
        recognizer_width=recognizer.width,
        language_model_threads=alone.threads,
        has_prosody=bool(choice.prosody),
        quick_threads=quick.threads if quick else 0,
        quick_width=quick.width if quick else 1,
        recognises_here=recognizer.device == "cpu",
        writes_here=not is_served(choice.language_model),
    )
    return *admit(means, ground.costs, given=settings.capacity.conversations), means


def _usable(facts: MachineFacts, topology: Topology) -> Reason:
    if topology.quota_cores is not None:
        text = f"The control group's quota is {plural(topology.quota_cores, 'core')} of {facts.cpu.logical_cores}."
    elif topology.usable and len(topology.usable) < facts.cpu.logical_cores:
        text = f"Affinity leaves {len(topology.usable)} of {plural(facts.cpu.logical_cores, 'logical core')}."
    else:
        text = f"All {plural(topology.usable_cores, 'logical core')}: neither affinity nor a quota takes any away."
    if topology.computing_cores < topology.usable_cores:
        text += (
            f" Engines count {plural(topology.computing_cores, 'core')}: whole and fast ones, on the nodes they use."
        )
    return Reason(choice="usable cores", value=f"{topology.usable_cores:g}", text=text)


def _origin(facts: MachineFacts, costs: StageCosts) -> Reason:
    if costs.origin == "measured":
        text = "Measured on this machine with these models; `antiphon plan --calibrate` measures again."
        return Reason(choice="costs", value=f"measured {costs.taken[:10]}".strip(), text=text)
    factor, what = speed_of(facts)
    text = (
        f"Those of a 2-core EPYC, times {factor:g} for {what}, and by threads and size of the models: good to about a "
        f"factor of two. `antiphon plan --calibrate` measures them here."
    )
    return Reason(choice="costs", value="estimated", text=text)


def _warnings(ground: Ground, means: Means, callers: int) -> list[str]:
    facts, topology = ground.facts, ground.topology
    found = []
    if topology.usable_cores < 2:
        engines = "six" if means.quick_threads else "five"
        found.append(
            f"{plural(topology.usable_cores, 'core')} for {engines} engines: a pause waits for each in turn. Allow two."
        )
    flags = facts.cpu.flags
    if means.writes_here and facts.cpu.is_x86 and flags is not None and not {"avx2", "fma"} <= flags:
        found.append(
            f"The built-in language model needs AVX2 and FMA, which this processor lacks: "
            f"{ground.choice.language_model} cannot run here. Name a server's address as models.language_model."
        )
    if topology.idle_nodes:
        nodes = ", ".join(str(node) for node in topology.idle_nodes)
        found.append(f"Memory node {nodes} is left free: run another server there, or name its cores in cpu.*_cores.")
    fits, _ = by_memory(means, ground.costs)
    if fits < callers:
        found.append(
            f"Memory holds {plural(fits, 'caller')} of {callers}: lower capacity.conversations or "
            f"capacity.context_tokens, or choose smaller models."
        )
    return found
