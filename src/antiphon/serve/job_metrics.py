"""What became of the engines' jobs in, Prometheus' counts of it out.

Waits and times by stage and class, how wrong the estimates were, how busy the cores are, what the scheduler costs.
Units: seconds. Threads: the event loop; a decision costs three observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from antiphon.core.clock import SECOND_NS
from antiphon.scheduling.overhead import PARTS

if TYPE_CHECKING:
    from antiphon.scheduling.cpu_lanes import CpuScheduler
    from antiphon.scheduling.decisions import Decision
    from antiphon.scheduling.overhead import Account
    from antiphon.serve.metrics import Metrics

WAIT_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)
TOOK_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)
RATIO_BUCKETS = (0.25, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Children:
    """The counts of one stage and class, looked up once: that takes longer than counting."""

    wait: Histogram
    took: Histogram
    ratio: Histogram
    missed: Counter
    made_way: Counter


class JobMetrics:
    """Of one scheduler."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        self._children: dict[tuple[str, str], _Children] = {}
        self._waits = Histogram(
            "antiphon_job_wait_seconds",
            "How long engine calls waited for the cores",
            ["stage", "urgency"],
            buckets=WAIT_BUCKETS,
            registry=registry,
        )
        self._took = Histogram(
            "antiphon_job_seconds",
            "What engine calls took",
            ["stage"],
            buckets=TOOK_BUCKETS,
            registry=registry,
        )
        self._ratio = Histogram(
            "antiphon_job_estimate_ratio",
            "What engine calls took against what they were said to take",
            ["stage"],
            buckets=RATIO_BUCKETS,
            registry=registry,
        )
        self._missed = Counter(
            "antiphon_job_deadlines_missed", "Engine calls that ended too late", ["stage", "urgency"], registry=registry
        )
        self._made_way = Counter(
            "antiphon_job_stretches_ended_early", "Times that a call made way", ["stage"], registry=registry
        )
        self._busy = Gauge("antiphon_cores_busy_ratio", "Part of the cores that engines took lately", registry=registry)
        self._jobs = Gauge("antiphon_scheduler_jobs", "Engine calls decided about", registry=registry)
        self._spent = Gauge(
            "antiphon_scheduler_seconds",
            "Processor time of the event loop that the scheduler took, in all, by what for",
            ["part"],
            registry=registry,
        )
        self._spent_p99 = Gauge(
            "antiphon_scheduler_job_p99_seconds",
            "Processor time of the event loop that the scheduler took for a job, P99 of the latest 4096",
            ["part"],
            registry=registry,
        )

    def follow(self, scheduler: CpuScheduler) -> None:
        """Count what this scheduler does from now on."""
        scheduler.watchers.append(self._take)
        self._busy.set_function(lambda: scheduler.pressure(1).busy)
        self._jobs.set_function(lambda: float(scheduler.overhead.jobs))
        for name in PARTS:
            account = scheduler.overhead.part(name)
            self._spent.labels(name).set_function(partial(_total_s, account))
            self._spent_p99.labels(name).set_function(partial(_p99_s, account))

    def _take(self, decision: Decision) -> None:
        if decision.dropped and decision.took_ns == 0:  # it never began
            return
        children = self._children.get((decision.stage, decision.urgency))
        if children is None:
            children = self._children[decision.stage, decision.urgency] = self._of(decision.stage, decision.urgency)
        children.wait.observe(decision.waited_ns / SECOND_NS)
        children.took.observe(decision.took_ns / SECOND_NS)
        if decision.estimate_ns and not decision.made_way:
            children.ratio.observe(decision.took_ns / decision.estimate_ns)
        if decision.ended_ns > decision.deadline_ns:
            children.missed.inc()
        if decision.made_way:
            children.made_way.inc()

    def _of(self, stage: str, urgency: str) -> _Children:
        return _Children(
            wait=self._waits.labels(stage, urgency),
            took=self._took.labels(stage),
            ratio=self._ratio.labels(stage),
            missed=self._missed.labels(stage, urgency),
            made_way=self._made_way.labels(stage),
        )


def _total_s(account: Account) -> float:
    return account.total_ns / SECOND_NS


def _p99_s(account: Account) -> float:
    return account.p99_ns / SECOND_NS
