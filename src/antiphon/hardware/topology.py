"""What a machine offers -> where engines may compute on it: whole cores, fast cores, cores near to one memory.

Hyperthreads of one core count as one: two threads of dense arithmetic on it gain next to nothing. Cores are grouped by
memory node, since a thread that reads weights from the other socket waits for them; on a processor with fast and slow
cores only the fast ones count. Units: logical cores by the system's numbers. Threads: pure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.hardware.facts import Core, MachineFacts

SAME_SPEED = 0.85  # of a cluster's fastest core: favoured cores of one make are within 6 %, slow ones 25 % behind
FEWEST_FAST = 2  # one fast core alone holds no engine beside the event loop
WORTH_OF_A_NODE = 0.5  # of the first node's cores: so many must another have to be worth a stage of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreGroup:
    """Cores that lie near to each other, and are alike."""

    node: int | None
    cores: tuple[int, ...]  # logical; () where the system does not tell
    whole: int  # threads that compute at full speed side by side, at least 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Where engines may compute."""

    usable_cores: float  # of processor time: what affinity and quota leave
    computing_cores: float  # of these, whole and fast ones on the nodes that are used: what engines can keep busy
    usable: frozenset[int]  # logical cores by affinity; empty where the system does not tell
    logical: int  # how many threads can run at once, hyperthreads and slow cores included, quota left aside
    quota_cores: float | None  # where it is what limits us
    home: CoreGroup  # for the language model, the voice and the rest
    ears: CoreGroup  # for the recognizer: home, or a node of its own
    slow: tuple[int, ...] = ()  # the cores that are left out for being slow
    nodes: int = 1
    idle_nodes: tuple[int | None, ...] = ()  # that no stage is planned on
    is_threaded: bool = False  # hyperthreads
    gpu_node: int | None = None  # home was chosen for it

    @property
    def is_pinned(self) -> bool:
        """Whether naming cores helps: several nodes, or slow cores to keep off."""
        return bool(self.home.cores) and (self.nodes > 1 or bool(self.slow))


def survey(facts: MachineFacts) -> Topology:
    """Where engines may compute on this machine."""
    cores = [core for core in facts.cores if core.is_usable]
    logical = len(cores) or facts.cpu.usable_cores
    quota = facts.quota_cores
    usable_cores = float(min(logical, facts.cpu.usable_cores) if quota is None else min(logical, quota))
    limit = max(1, int(usable_cores))
    if not cores:
        group = CoreGroup(node=None, cores=(), whole=limit)
        return Topology(
            usable_cores=usable_cores,
            computing_cores=usable_cores,
            usable=frozenset(),
            logical=max(1, facts.cpu.logical_cores),
            quota_cores=quota if quota is not None and quota < facts.cpu.logical_cores else None,
            home=group,
            ears=group,
        )
    fast = _fast(cores)
    by_node: dict[int | None, list[Core]] = defaultdict(list)
    for core in fast:
        by_node[core.node].append(core)
    gpu_node = next((gpu.node for gpu in facts.gpus if gpu.node in by_node and gpu.node is not None), None)
    order = sorted(
        by_node, key=lambda node: (node != gpu_node, -_physical(by_node[node]), -1 if node is None else node)
    )
    home_cores = by_node[order[0]]
    binds = quota is not None and quota < logical
    is_small_share = binds and limit < _physical(home_cores)
    if is_small_share:  # of a machine that others use too: all of them would crowd on the same node
        home = ears = CoreGroup(node=None, cores=(), whole=limit)
    else:
        home, ears = _groups([by_node[node] for node in order], limit)
    whole = home.whole if ears is home else home.whole + ears.whole
    return Topology(
        usable_cores=usable_cores,
        computing_cores=usable_cores if is_small_share else float(whole),
        usable=frozenset(core.number for core in cores),
        logical=logical,
        quota_cores=quota if binds else None,
        home=home,
        ears=ears,
        slow=() if is_small_share else tuple(sorted(core.number for core in cores if core not in fast)),
        nodes=len(by_node),
        idle_nodes=() if is_small_share else tuple(node for node in order[1:] if node not in {None, ears.node}),
        is_threaded=_physical(cores) < len(cores),
        gpu_node=gpu_node,
    )


def _groups(nodes: Sequence[Sequence[Core]], limit: int) -> tuple[CoreGroup, CoreGroup]:
    """(home, ears): the second node is the recognizer's, if it is worth it and the quota leaves something for it."""
    home = _group(nodes[0], limit)
    left = limit - home.whole
    if len(nodes) > 1 and min(left, _physical(nodes[1])) >= max(1.0, WORTH_OF_A_NODE * home.whole):
        return home, _group(nodes[1], left)
    return home, home


def _group(cores: Sequence[Core], limit: int) -> CoreGroup:
    numbers = tuple(sorted(core.number for core in cores))
    return CoreGroup(node=cores[0].node, cores=numbers, whole=max(1, min(limit, _physical(cores))))


def _physical(cores: Sequence[Core]) -> int:
    """How many whole cores these are; a core that does not say stands for itself."""
    known = {core.physical for core in cores if core.physical is not None}
    return len(known) + sum(core.physical is None for core in cores)


def _fast(cores: Sequence[Core]) -> list[Core]:
    """The fast cluster, with the next faster ones until there are enough; all, where speeds are unknown or alike."""
    if any(core.most_mhz is None for core in cores):
        return list(cores)
    ranked = sorted(cores, key=lambda core: -(core.most_mhz or 0))
    fast: list[Core] = []
    while len(fast) < len(ranked) and _physical(fast) < FEWEST_FAST:
        floor_mhz = SAME_SPEED * (ranked[len(fast)].most_mhz or 0)
        fast = [core for core in ranked if (core.most_mhz or 0) >= floor_mhz]
    return fast
