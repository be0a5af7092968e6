"""A stage, where engines may compute and what the user said -> its threads, cores and niceness, each with its reason.

Units: logical cores by the system's numbers; niceness adds to the process's own. Threads: pure.
What it does not know: what a stage computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.hardware.plan_settings import ALL_CORES, read_cores
from antiphon.hardware.reasons import Reason, decide, plural, show_cores

if TYPE_CHECKING:
    from antiphon.hardware.facts import MachineFacts
    from antiphon.hardware.plan_settings import CpuSettings, GpuSettings
    from antiphon.hardware.stage_costs import Choice, StageCosts
    from antiphon.hardware.topology import CoreGroup, Topology

FEW_THREADS = 4  # small models gain little from more: smart-turn's second thread 1.86x, tiny matrices ever less
CROWDED = 2  # callers a core, from which on calls of one thread serve them better (results/one_thread.json);
CROWDED_CORES = 2  # measured on so many cores alone
PERIOD_MS = 100  # over which the system counts a quota


class Role(StrEnum):
    """The stages, by their names in the settings."""

    VOICE_DETECTOR = "voice_detector"
    PROSODY = "prosody"
    RECOGNIZER = "recognizer"
    QUICK_RECOGNIZER = "quick_recognizer"
    LANGUAGE_MODEL = "language_model"
    VOICE = "voice"
    BACKGROUND = "background"  # calibration, loading, whatever nobody waits for


NICE = {
    Role.VOICE_DETECTOR: (0, "it runs on the event loop, which comes before every engine and must never wait"),
    Role.VOICE: (
        1,
        "the first chunk's sound is the last thing a caller waits for, so only the event loop comes before",
    ),
    Role.QUICK_RECOGNIZER: (
        2,
        "a reply begins with its words: before the language model (3), behind the voice (1), which is awaited already",
    ),
    Role.LANGUAGE_MODEL: (3, "the next chunk's words give way to the voice (1), which a caller waits for at once"),
    Role.RECOGNIZER: (5, "it gives way to the voice (1) and the language model (3), whose replies are already awaited"),
    Role.PROSODY: (5, "it works beside the recognizer (5), on the same pause"),
    Role.BACKGROUND: (10, "nobody waits for it"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What every stage's plan is made from."""

    facts: MachineFacts
    choice: Choice
    cpu: CpuSettings
    gpu: GpuSettings
    costs: StageCosts
    topology: Topology
    callers: int = 0  # that the threads are to suit; 0: a caller alone


def few_threads(ground: Ground, group: CoreGroup) -> tuple[int, str]:
    """How many threads a small machine's large engines get, and why."""
    is_small = 1 < group.whole <= CROWDED_CORES
    crowd = CROWDED * group.whole
    if is_small and ground.callers >= crowd:
        return 1, (
            f"{plural(crowd, 'caller')} or more may be on {plural(group.whole, 'whole core')}: threads of one call "
            f"wait for each other whenever another call has one of their cores. For {crowd} callers one thread took "
            f"about half of the time until a slow reply's first sound, for one caller as long as two."
        )
    return min(FEW_THREADS, group.whole), why_few_threads(ground.topology, group)


def why_few_threads(topology: Topology, group: CoreGroup) -> str:
    """Why a small machine's engines get as many threads as they do."""
    quota = topology.quota_cores
    whole = plural(group.whole, "whole core")
    if quota is not None and group.whole == int(max(1.0, quota)) and quota < group.whole + 1 and quota != int(quota):
        more = group.whole + 1
        granted_ms = quota * PERIOD_MS
        used_ms = granted_ms / more
        return (
            f"The quota of {plural(quota, 'core')} has {whole}: {more} threads would use up its "
            f"{granted_ms:.0f} ms after {used_ms:.0f} of every {PERIOD_MS} ms, and then all be stopped for "
            f"{PERIOD_MS - used_ms:.0f}."
        )
    if group.whole <= FEW_THREADS:
        kind = ", hyperthreads not counted" if topology.is_threaded else ""
        fast = ", the slow ones left out" if topology.slow else ""
        return f"One for each of {whole} that this process may use{kind}{fast}."
    return f"{FEW_THREADS} of {whole}: more gain small models little, and other stages compute beside it."


def choose_threads(
    ground: Ground, role: Role, planned: int, why: str, cores: tuple[int, ...], asked: int
) -> tuple[int, Reason]:
    setting, most = f"cpu.{role}_threads", ground.topology.logical
    if asked > most:
        raise CallerError(
            f"{setting} is {asked}, but this process may use {plural(most, 'core')}", hint=f"use 0 to {most}"
        )
    if cores and asked > len(cores):
        raise CallerError(
            f"{setting} is {asked}, but its cores are {show_cores(cores)}",
            hint=f"use {len(cores)} at most, or allow more cores by cpu.{role}_cores",
        )
    if cores and planned > len(cores):
        planned, why = len(cores), f"One for each of its {plural(len(cores), 'core')}, {show_cores(cores)}."
    return decide("threads", planned, why, setting=setting, given=asked or None)


def choose_cores(ground: Ground, role: Role, group: CoreGroup) -> tuple[tuple[int, ...], Reason]:
    topology, setting = ground.topology, f"cpu.{role}_cores"
    text = str(getattr(ground.cpu, setting.partition(".")[2]))
    planned: tuple[int, ...] = group.cores if topology.is_pinned and group.cores else ()
    if topology.slow and planned:
        why = f"The fast cores; {show_cores(topology.slow)} are slower and would hold the others up."
    elif planned and topology.gpu_node == group.node:
        why = f"Memory node {group.node}, which is the GPU's: nothing crosses to the other sockets."
    elif planned:
        why = (
            f"Memory node {group.node}, one of {topology.nodes}: threads that read weights from another wait for them."
        )
    elif topology.quota_cores is not None and topology.nodes > 1:
        why = f"A quota of {plural(topology.quota_cores, 'core')} on a shared host: pinned, it would crowd with others."
    else:
        why = "All cores are alike and near to all memory: the system places threads best."
    given: tuple[int, ...] | None = None
    if text == ALL_CORES:
        given = ()
    elif text:
        given = read_cores(setting, text)
        strange = sorted(set(given) - topology.usable)
        if strange:
            usable = show_cores(tuple(sorted(topology.usable))) if topology.usable else "not known"
            raise CallerError(
                f"{setting} is {text}, but core {strange[0]} is none that this process may use",
                hint=f"the usable ones are {usable}",
            )
    return decide("cores", planned, why, setting=setting, given=given, show=show_cores)


def choose_nice(ground: Ground, role: Role) -> tuple[int, Reason]:
    planned, why = NICE[role]
    if role is Role.VOICE_DETECTOR:
        return decide("nice", planned, f"{why[0].upper()}{why[1:]}.")
    setting = f"cpu.{role}_nice"
    asked = int(getattr(ground.cpu, f"{role}_nice"))
    text = f"{why[0].upper()}{why[1:]}; to be nicer needs no right."
    return decide("nice", planned, text, setting=setting, given=asked if asked >= 0 else None)


def place(topology: Topology, group: CoreGroup) -> str:
    """Where these cores are, if that says anything."""
    return f" of memory node {group.node}" if topology.nodes > 1 and group.node is not None else ""
