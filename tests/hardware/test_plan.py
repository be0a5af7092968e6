"""The plans for recorded machines are right, and say why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.hardware.planning import AVX2, GIB, QUICK, config, cpu, h200, hybrid, plan, reason, recorded

from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import CallerError
from antiphon.hardware.audio_plan import plan_audio
from antiphon.hardware.facts import AudioDevice, Core, GpuFacts, MachineFacts, Rights
from antiphon.loading import Lanes, lane_facts

pytestmark = pytest.mark.unit

ENGINES = ("recognizer", "prosody", "language_model", "voice")


def threads(made) -> tuple[int, ...]:
    return tuple(made.stage(role).threads for role in ENGINES)


def test_a_small_machine() -> None:
    """Two cores: both for the large engines, one for the small ones, pinned nowhere."""
    made = plan(recorded("vm_2_cores"))

    assert (2, 1, 2, 1) == threads(made)
    assert {()} == {stage.cores for stage in made.stages}
    assert {1} == {made.stage(role).width for role in ("recognizer", "prosody", "voice")}
    assert (4, 2.0) == (made.callers, made.usable_cores)
    assert (1, 4, 8) == (made.stage("recognizer").batch, *batch_and_width(made))
    assert () == made.warnings


@pytest.mark.parametrize(("callers", "expected"), [(0, 2), (3, 2), (4, 1), (16, 1)])
def test_a_small_machine_with_a_crowd(callers: int, expected: int) -> None:
    """Calls of one thread, once so many callers are expected that calls keep taking each other's cores."""
    made = plan(recorded("vm_2_cores"), config(capacity={"conversations": callers}))

    assert [expected] * 2 == [made.stage(role).threads for role in ("recognizer", "language_model")]
    assert ("wait for each other" in reason(made, "language_model", "threads")) == (expected == 1)


def test_a_small_machine_is_planned_for_one_caller_unless_a_crowd_is_said_to_come() -> None:
    """Many may be let in; who is alone hears the reply sooner from calls of two threads."""
    made = plan(recorded("vm_2_cores"), config(models=QUICK))

    assert made.callers >= 4
    assert [2, 2] == [made.stage(role).threads for role in ("recognizer", "language_model")]


@pytest.mark.parametrize(("machine", "callers"), [("laptop_4_cores", 16), ("container_1_5_of_64_cores", 16)])
def test_a_crowd_elsewhere_changes_no_threads(machine: str, callers: int) -> None:
    """It was measured on two cores alone."""
    facts = recorded(machine)
    assert threads(plan(facts)) == threads(plan(facts, config(capacity={"conversations": callers})))


def batch_and_width(made) -> tuple[int, int]:
    model = made.stage("language_model")
    return model.batch, model.width


def test_the_order_of_who_runs_first() -> None:
    """The event loop comes before the voice, that before the language model, that before hearing; last is the rest."""
    made = plan(recorded("vm_2_cores"))

    assert {
        "voice_detector": 0,
        "voice": 1,
        "language_model": 3,
        "recognizer": 5,
        "prosody": 5,
        "background": 10,
    } == {str(stage.stage): stage.nice for stage in made.stages}


def test_a_quick_recognizer_has_a_stage_and_a_lane() -> None:
    """Behind the other one's, one core beside the prosody judge, between voice and language model; others stay."""
    facts = recorded("vm_2_cores")
    alone, made = plan(facts), plan(facts, config(models=QUICK))
    quick = made.stage("quick_recognizer")

    assert ["recognizer", "quick_recognizer"] == [str(stage.stage) for stage in made.stages][1:3]
    assert ("onnxruntime", "moonshine-tiny.en", "cpu") == (quick.engine, quick.model, quick.device)
    assert (1, (), 2, 1, 1) == (quick.threads, quick.cores, quick.nice, quick.batch, quick.width)
    assert [made.stage(role) for role in ("prosody", "voice")] == [alone.stage(role) for role in ("prosody", "voice")]
    lanes = {lane.name: (lane.width, lane.cores, lane.nice) for lane in lane_facts(made)}
    assert (1, 1, 2) == lanes.pop("quick_recognizer")
    assert set(lanes) == {lane.name for lane in lane_facts(alone)}


def test_where_no_tone_is_judged_the_quick_recognizer_has_both_cores() -> None:
    made = plan(recorded("vm_2_cores"), config(models={**QUICK, "prosody": ""}))
    assert 2 == made.stage("quick_recognizer").threads


def test_without_a_quick_recognizer_nothing_tells_of_one() -> None:
    made = plan(recorded("vm_2_cores"), config(cpu={"quick_recognizer_threads": 2}))

    assert not made.has_quick_recognizer
    assert ["recognizer", "prosody", "language_model", "voice"] == [lane.name for lane in lane_facts(made)]
    assert all("quick" not in each.text for stage in made.stages for each in stage.reasons)
    assert all("quick" not in each.text for each in made.reasons)


def test_a_single_core_for_six_engines_is_warned_of() -> None:
    made = plan(recorded("container_1_5_of_64_cores"), config(models=QUICK))
    (warning,) = made.warnings

    assert 1 == made.stage("quick_recognizer").threads
    assert "one whole core" in reason(made, "quick_recognizer", "threads")
    assert warning.startswith("1.5 cores for six engines: ")


def test_many_cores_have_several_workers_for_quick_recognition() -> None:
    """They compute where the language model does, which reads their words."""
    made = plan(recorded("two_sockets_64_cores"), config(models=QUICK))
    quick = made.stage("quick_recognizer")

    assert (2, 4) == (quick.threads, quick.width)
    assert made.stage("language_model").cores == quick.cores


def test_the_engine_follows_the_model() -> None:
    """Told by the name, of the catalogue or of a folder."""
    models = {"recognizer": "~/models/moonshine-base.en", "quick_recognizer": "whisper-tiny.en"}
    made = plan(recorded("vm_2_cores"), config(models=models))

    assert "onnxruntime" == made.stage("recognizer").engine
    assert "ctranslate2" == made.stage("quick_recognizer").engine


def test_a_quota_between_two_whole_numbers() -> None:
    """1.5 cores of a large host: one thread each, or the quota would stop them, and no core by name."""
    made = plan(recorded("container_1_5_of_64_cores"))

    assert (1, 1, 1, 1) == threads(made)
    assert 1.5 == made.usable_cores
    assert {()} == {stage.cores for stage in made.stages}
    why = reason(made, "recognizer", "threads")
    assert "1.5 cores" in why
    assert "150 ms after 75 of every 100 ms" in why
    assert "stopped for 25" in why
    assert 1 <= made.callers <= 4
    assert len(made.warnings) == 1


def test_hyperthreads_do_not_count() -> None:
    """A laptop's eight logical cores are four."""
    made = plan(recorded("laptop_4_cores"))

    assert (4, 1, 4, 1) == threads(made)
    assert {()} == {stage.cores for stage in made.stages}
    assert "hyperthreads not counted" in reason(made, "recognizer", "threads")
    assert (8.0, 4.0) == (made.usable_cores, made.computing_cores)


@pytest.mark.parametrize(
    ("machine", "cores"),
    [("laptop_4_cores", 4), ("container_1_5_of_64_cores", 1), ("vm_2_cores", 2), ("two_sockets_64_cores", 64)],
)
def test_the_policy_counts_cores_as_threads_were_planned(machine: str, cores: int) -> None:
    """With the laptop's eight it would let two engines of four threads begin on four cores."""
    lanes = Lanes.of(plan(recorded(machine)), config(), MonotonicClock())
    try:
        assert lanes.scheduler is not None
        assert cores == lanes.scheduler._policy.cores
    finally:
        lanes.close()


def test_two_sockets() -> None:
    """No stage spans two sockets: the recognizer has one with several workers, everything else the other."""
    facts = recorded("two_sockets_64_cores")
    made = plan(facts)
    node = {core.number: core.node for core in facts.cores}
    recognizer, model = made.stage("recognizer"), made.stage("language_model")

    assert (4, 8) == (recognizer.threads, recognizer.width)
    assert (16, 2, 4) == (model.threads, made.stage("prosody").width, made.stage("voice").width)
    for stage in (recognizer, model, made.stage("voice"), made.stage("prosody")):
        assert len({node[core] for core in stage.cores}) == 1
    assert node[recognizer.cores[0]] != node[model.cores[0]]
    assert made.stage("voice").cores == model.cores
    assert "event loop" in made.reasons[1].text
    assert 20 <= made.callers <= 60


def test_an_arm_board() -> None:
    """Four alike cores of Arm: all of them, and no talk of AVX2."""
    made = plan(recorded("arm_board_4_cores"))

    assert (4, 1, 4, 1) == threads(made)
    assert () == made.warnings
    assert "asimddp" in made.reasons[2].text


def test_a_gpu_host() -> None:
    """An H200: 100 of 132 multiprocessors for replies, and the small engines stay on the processor."""
    made = plan(h200())
    (gpu,) = made.gpus

    assert ("cuda:0", 100, 32) == (gpu.device, gpu.reply_multiprocessors, gpu.other_multiprocessors)
    assert [-3, -2, -1, 0] == [level for _, level in gpu.levels]
    assert 60e9 < gpu.context_bytes < 75e9
    assert {"cpu"} == {stage.device for stage in made.stages}
    assert (4, 1, 4, 1) == threads(made)


@pytest.mark.parametrize(
    ("multiprocessors", "compute", "expected"),
    [
        (132, "9.0", 100),
        (128, "8.9", 96),
        (108, "8.0", 82),
        (148, "10.0", 116),
        (72, "", 56),
        (20, "8.6", None),
        (None, "9.0", None),
    ],
)
def test_gpus_of_any_kind(multiprocessors: int | None, compute: str, expected: int | None) -> None:
    """A quarter goes to the rest in steps that the GPU can part; small and unknown ones are not parted."""
    gpu = GpuFacts(index=1, name="GPU", memory_bytes=24 * GIB, compute=compute, multiprocessors=multiprocessors)
    (made,) = plan(MachineFacts(cpu=cpu(8), gpus=(gpu,))).gpus

    assert expected == made.reply_multiprocessors
    assert 0 < made.context_bytes < gpu.memory_bytes


def test_the_gpu_decides_the_node() -> None:
    """Of two sockets the one with the GPU is home."""
    facts = recorded("two_sockets_64_cores")
    gpu = GpuFacts(index=0, name="GPU", memory_bytes=24 * GIB, node=1)
    made = plan(replace(facts, gpus=(gpu,)))
    node = {core.number: core.node for core in facts.cores}

    assert {1} == {node[core] for core in made.stage("language_model").cores}
    assert {0} == {node[core] for core in made.stage("recognizer").cores}
    assert "GPU's" in reason(made, "voice", "cores")


def test_slow_cores_are_kept_off() -> None:
    """On a hybrid laptop engines have the fast cores, favoured or not, and the rest has the slow ones."""
    made = plan(hybrid())

    assert (4, 1, 4, 1) == threads(made)
    assert {tuple(range(8))} == {made.stage(role).cores for role in ENGINES}
    assert tuple(range(8, 16)) == made.stage("background").cores
    assert "8-15 are slower" in reason(made, "voice", "cores")


def test_a_single_fast_core_is_not_enough() -> None:
    """With one prime core the next faster ones count as well."""
    speeds = (3300, 2400, 2400, 2400, 1800, 1800)
    cores = tuple(Core(number=n, physical=n, most_mhz=mhz) for n, mhz in enumerate(speeds))
    made = plan(MachineFacts(cpu=cpu(6), cores=cores))

    assert (0, 1, 2, 3) == made.stage("voice").cores


def test_a_large_quota_of_a_larger_host_stays_on_one_node() -> None:
    """48 of 128 logical cores: 32 on one socket, and what is left hears on the other."""
    facts = recorded("two_sockets_64_cores")
    made = plan(replace(facts, quota_cores=48.0))
    recognizer = made.stage("recognizer")

    assert 48.0 == made.usable_cores
    assert recognizer.threads * recognizer.width <= 16
    assert len(made.stage("language_model").cores) == 64


def test_nodes_that_nothing_uses_are_named() -> None:
    """Four nodes: two stay free, and the plan says which."""
    cores = tuple(Core(number=n, physical=n, node=n // 8) for n in range(32))
    made = plan(MachineFacts(cpu=cpu(32), cores=cores))

    assert any("node 2, 3" in warning for warning in made.warnings)


def test_nothing_known_but_the_count() -> None:
    """Where the system tells no topology, the count of cores makes the plan."""
    made = plan(MachineFacts(cpu=cpu(6, flags=None, memory_bytes=None)))

    assert (4, 1, 4, 1) == threads(made)
    assert "more gain small models little" in reason(made, "recognizer", "threads")
    assert made.callers >= 1


@pytest.mark.parametrize(
    ("devices", "value", "words"),
    [
        ((), "none", "`antiphon talk` needs one"),
        (
            (AudioDevice(name="PCH: Analog", system="alsa", can_capture=True, can_play=True),),
            "ALSA",
            "and a loudspeaker",
        ),
        ((AudioDevice(name="PipeWire", system="pipewire", can_capture=True, can_play=True),), "ALSA", "PipeWire"),
    ],
)
def test_the_plan_says_through_what_sound_goes(devices: tuple[AudioDevice, ...], value: str, words: str) -> None:
    reasons = {reason.choice: reason for reason in plan_audio(Rights(), "auto", devices).reasons}
    assert value == reasons["card"].value
    assert words in reasons["card"].text
    assert "5.3-85 ms" == reasons["period"].value


@pytest.mark.parametrize(
    ("rights", "policy"),
    [
        (Rights(fifo_priority=99, deadline=True), "fifo"),
        (Rights(deadline=True), "deadline"),
        (Rights(rtkit=True, least_nice=-5), "rtkit"),
        (Rights(least_nice=-5), "nice"),
        (Rights(), "normal"),
    ],
)
def test_the_audio_thread_has_the_strongest_policy_that_may_be_had(rights: Rights, policy: str) -> None:
    made = plan(MachineFacts(cpu=cpu(4), rights=rights))

    assert policy == made.audio.policy
    assert (made.audio.priority > 0) == (policy in {"fifo", "rtkit"})
    assert (made.audio.runtime_ns > 0) == (policy == "deadline")


def test_a_language_model_elsewhere_frees_this_machine() -> None:
    """With a server for the replies, more callers fit, and nothing is planned for it here."""
    facts = recorded("vm_2_cores")
    made = plan(facts, config(models={"language_model": "http://gpu.lan:8000/v1"}))
    model = made.stage("language_model")

    assert ("server", "server", 1, ()) == (model.engine, model.device, model.threads, model.cores)
    assert made.callers > plan(facts).callers


def test_a_processor_without_the_instructions_is_warned_of() -> None:
    """The built-in language model cannot run there; a server can."""
    facts = MachineFacts(cpu=cpu(4, flags=frozenset({"avx"})))

    assert any("AVX2" in warning for warning in plan(facts).warnings)
    assert () == plan(facts, config(models={"language_model": "http://gpu.lan:8000/v1"})).warnings


def test_memory_bounds_the_callers() -> None:
    """1 GiB holds six contexts of 2048 tokens beside the models, and one longer context makes it fewer."""
    small = MachineFacts(cpu=cpu(32, flags=AVX2 | {"amx_int8"}, memory_bytes=GIB))
    long = config(capacity={"context_tokens": 8192})

    assert 7 == plan(small).callers
    assert 1 == plan(small, long).callers
    assert any("Memory holds" in warning for warning in plan(MachineFacts(cpu=cpu(2, memory_bytes=GIB // 2))).warnings)


@pytest.mark.parametrize(
    ("sections", "stage", "field", "value"),
    [
        ({"cpu": {"recognizer_threads": 1}}, "recognizer", "threads", 1),
        ({"cpu": {"voice_threads": 2}}, "voice", "threads", 2),
        ({"cpu": {"language_model_nice": 0}}, "language_model", "nice", 0),
        ({"cpu": {"voice_cores": "1"}}, "voice", "cores", (1,)),
        ({"cpu": {"recognizer_width": 3}}, "recognizer", "width", 3),
        ({"cpu": {"recognizer_batch": 5}}, "recognizer", "batch", 5),
        ({"cpu": {"background_nice": 19}}, "background", "nice", 19),
        ({"gpu": {"recognizer": "cpu"}}, "recognizer", "device", "cpu"),
        ({"models": QUICK, "cpu": {"quick_recognizer_threads": 2}}, "quick_recognizer", "threads", 2),
        ({"models": QUICK, "cpu": {"quick_recognizer_nice": 4}}, "quick_recognizer", "nice", 4),
        ({"models": QUICK, "cpu": {"quick_recognizer_width": 2}}, "quick_recognizer", "width", 2),
        ({"models": QUICK, "cpu": {"quick_recognizer_cores": "1"}}, "quick_recognizer", "cores", (1,)),
    ],
)
def test_every_line_can_be_overridden(sections, stage: str, field: str, value: object) -> None:
    """The value holds, and the reason says who decided and what the plan would have done."""
    made = plan(recorded("vm_2_cores"), config(**sections)).stage(stage)
    (why,) = (each for each in made.reasons if each.choice == field)

    assert value == getattr(made, field)
    assert why.is_overridden
    assert "says so; the plan would take" in why.text


def test_fewer_cores_mean_fewer_threads() -> None:
    """A stage that is given one core takes one thread."""
    made = plan(recorded("vm_2_cores"), config(cpu={"recognizer_cores": "0"})).stage("recognizer")

    assert (1, (0,)) == (made.threads, made.cores)


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        ({"cpu": {"recognizer_threads": 3}}, "cpu.recognizer_threads"),
        ({"cpu": {"quick_recognizer_threads": 3}, "models": QUICK}, "cpu.quick_recognizer_threads"),
        ({"cpu": {"voice_cores": "0-2"}}, "cpu.voice_cores"),
        ({"cpu": {"voice_cores": "0", "voice_threads": 2}}, "cpu.voice_threads"),
        ({"cpu": {"audio_policy": "fifo"}}, "cpu.audio_policy"),
        ({"gpu": {"recognizer": "cuda"}}, "gpu.recognizer"),
    ],
)
def test_what_the_machine_does_not_have_is_refused(sections, name: str) -> None:
    """The error names the setting."""
    facts = replace(recorded("vm_2_cores"), rights=Rights())
    with pytest.raises(CallerError, match=name):
        plan(facts, config(**sections))


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"reply_multiprocessors": 130}, "gpu.reply_multiprocessors"), ({"context_mib": 2**20}, "gpu.context_mib")],
)
def test_what_the_gpu_does_not_have_is_refused(settings: dict[str, int], name: str) -> None:
    with pytest.raises(CallerError, match=name):
        plan(h200(), config(gpu=settings))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recognizer_threads", 257),
        ("quick_recognizer_threads", 257),
        ("quick_recognizer_cores", "a"),
        ("voice_nice", 20),
        ("voice_nice", -2),
        ("voice_cores", "a"),
        ("voice_cores", "3-1"),
        ("voice_cores", "1,"),
        ("prosody_width", 65),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(CallerError, match=name):
        config(cpu={name: value})
