"""What holds of the plan for any machine and any settings."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hardware.planning import QUICK, config, plan

from antiphon.core.errors import CallerError
from antiphon.hardware.facts import Core, GpuFacts, MachineFacts, Rights
from antiphon.hardware.plan_settings import CpuSettings, read_cores
from antiphon.hardware.probe_cpu import ARM_FLAGS, X86_FLAGS, CpuFacts
from antiphon.hardware.reasons import show_cores

pytestmark = pytest.mark.unit

CHOICES = {"device", "threads", "cores", "nice", "batch", "width"}
GIB = 2**30


@st.composite
def cores(draw: st.DrawFn) -> tuple[Core, ...]:
    """Any topology, told in part or not at all."""
    count = draw(st.integers(0, 48))
    threads = draw(st.sampled_from((None, 1, 2)))
    nodes = draw(st.sampled_from((None, 1, 2, 4)))
    speeds = draw(st.sampled_from(((), (3000,), (4700, 3400), (3300, 2400, 1800))))
    return tuple(
        Core(
            number=number,
            physical=None if threads is None else number // threads,
            node=None if nodes is None else number * nodes // count,
            most_mhz=speeds[number * len(speeds) // count] if speeds else None,
            is_usable=draw(st.booleans()),
        )
        for number in range(count)
    )


@st.composite
def machines(draw: st.DrawFn) -> MachineFacts:
    found = draw(cores())
    logical = max(1, len(found))
    quota = draw(st.none() | st.floats(0.1, 64))
    usable = sum(core.is_usable for core in found) or logical
    gpus = st.builds(
        GpuFacts,
        index=st.integers(0, 7),
        name=st.just("GPU"),
        memory_bytes=st.integers(GIB, 256 * GIB),
        compute=st.sampled_from(("", "6.1", "7.5", "8.6", "9.0", "12.0", "new")),
        multiprocessors=st.none() | st.integers(1, 256),
        node=st.none() | st.integers(-1, 3),
    )
    rights = st.builds(
        Rights,
        fifo_priority=st.integers(0, 99),
        deadline=st.booleans(),
        least_nice=st.none() | st.integers(-20, 0),
        locked_memory_bytes=st.none() | st.integers(0, 2**40),
        rtkit=st.booleans(),
    )
    return MachineFacts(
        cpu=CpuFacts(
            model="",
            architecture=draw(st.sampled_from(("x86_64", "aarch64"))),
            logical_cores=logical,
            usable_cores=max(1, int(min(usable, quota or usable))),
            flags=draw(st.none() | st.frozensets(st.sampled_from(sorted(X86_FLAGS | ARM_FLAGS)))),
            memory_bytes=draw(st.none() | st.integers(GIB // 4, 1024 * GIB)),
        ),
        quota_cores=quota,
        cores=found,
        gpus=tuple(draw(st.lists(gpus, max_size=2))),
        rights=draw(rights),
    )


@settings(deadline=None)
@given(machines(), st.sampled_from(({}, QUICK)))
def test_the_plan_fits_the_machine(facts: MachineFacts, models: dict[str, object]) -> None:
    """Threads never exceed the usable cores, cores are among the usable ones, and every choice has its reason."""
    made = plan(facts, config(models=models))
    usable = {core.number for core in facts.cores if core.is_usable}

    for stage in made.stages:
        assert 1 <= stage.threads <= max(1, int(made.usable_cores))
        assert set(stage.cores) <= usable
        assert not stage.cores or stage.threads <= len(stage.cores)
        assert stage.batch >= 1
        assert stage.width >= 1
        assert 0 <= stage.nice <= 19
        assert {reason.choice for reason in stage.reasons} == CHOICES
    recognizer = made.stage("recognizer")
    assert recognizer.threads * recognizer.width <= max(1, int(made.usable_cores))
    assert 1 <= made.callers <= 256
    everything = [reason for stage in made.stages for reason in stage.reasons]
    everything += [*made.reasons, *made.audio.reasons, *(reason for gpu in made.gpus for reason in gpu.reasons)]
    for reason in everything:
        assert reason.text[0].isupper() or reason.text[0].isdecimal()
        assert reason.text.endswith(".")
        assert not reason.is_overridden
    for gpu in made.gpus:
        if gpu.reply_multiprocessors is not None and gpu.other_multiprocessors is not None:
            assert gpu.reply_multiprocessors > gpu.other_multiprocessors > 0


@settings(deadline=None)
@given(machines())
def test_no_stage_spans_two_nodes(facts: MachineFacts) -> None:
    """Where cores are named for being near to a memory, they are near to one."""
    node = {core.number: core.node for core in facts.cores}
    for stage in plan(facts, config(models=QUICK)).stages:
        if str(stage.stage) != "background":
            assert len({node[core] for core in stage.cores}) <= 1


def asked() -> st.SearchStrategy[dict[str, object]]:
    """Some settings of the section, each in its range but for the machine."""
    kinds: dict[str, st.SearchStrategy[object]] = {
        "threads": st.integers(2, 64),
        "nice": st.integers(0, 19),
        "width": st.integers(1, 64),
        "batch": st.integers(1, 64),
        "cores": st.sets(st.integers(0, 50), min_size=1, max_size=6).map(lambda found: show_cores(tuple(found))),
        "policy": st.sampled_from(("fifo", "deadline", "rtkit", "nice", "normal")),
    }
    names = [item.name for item in fields(CpuSettings)]
    return st.sampled_from(names).flatmap(lambda name: kinds[name.rpartition("_")[2]].map(lambda value: {name: value}))


@settings(deadline=None)
@given(machines(), asked())
def test_an_override_is_honoured_or_refused_by_name(facts: MachineFacts, wanted: dict[str, object]) -> None:
    ((name, value),) = wanted.items()
    role, _, kind = name.rpartition("_")
    try:
        made = plan(facts, config(cpu=wanted, models=QUICK))
    except CallerError as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert f"cpu.{name}" in refusal.message
        assert refusal.hint
        return
    if kind == "policy":
        assert value == made.audio.policy
        return
    expected = read_cores(name, str(value)) if kind == "cores" else value
    stage = made.stage(role)
    assert expected == getattr(stage, kind)
    assert [f"cpu.{name}"] == [reason.setting for reason in stage.reasons if reason.is_overridden]


@settings(deadline=None)
@given(machines(), st.integers(1, 256))
def test_the_number_of_callers_is_the_settings(facts: MachineFacts, count: int) -> None:
    made = plan(facts, config(capacity={"conversations": count}))

    assert count == made.callers
    assert 2 * count == made.stage("language_model").width
    assert made.stage("language_model").batch <= count


@settings(deadline=None)
@given(st.sets(st.integers(0, 4095), min_size=1))
def test_cores_read_as_they_are_shown(numbers: set[int]) -> None:
    assert tuple(sorted(numbers)) == read_cores("cores", show_cores(tuple(numbers)))
