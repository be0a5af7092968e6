"""Costs follow the machine and the models until they are measured, and are found again only where they were."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.hardware.planning import AVX2, GIB, QUICK, config, cpu, plan, recorded

from antiphon.core.errors import MachineError
from antiphon.hardware.admission import COINCIDENCE, Means, admit, by_pauses, hearing_ns, pause_ns, work_ns
from antiphon.hardware.calibration import costs_file, known_costs, model_sizes, read_costs, write_costs
from antiphon.hardware.facts import MachineFacts
from antiphon.hardware.stage_costs import QUICK_FIELDS, REFERENCE, TIMES, reference_costs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

FACTS = MachineFacts(cpu=cpu(2))
CHOICE = config().models
MEASURED = replace(REFERENCE, origin="measured", taken="2026-12-02T10:00:00+00:00", waited=0.01)
TWO_EARS = config(models=QUICK).models
MEANS = Means(
    computing_cores=2.0,
    memory_bytes=8 * GIB,
    context_tokens=2048,
    recognizer_threads=2,
    recognizer_width=1,
    language_model_threads=2,
    has_prosody=True,
)


def test_the_reference_is_itself() -> None:
    """On a machine like the reference, with the default models, its own figures come out."""
    sizes = model_sizes(CHOICE)

    assert REFERENCE == replace(reference_costs(FACTS, CHOICE, sizes), base_bytes=REFERENCE.base_bytes)
    assert 78_090_594 == sizes["whisper-tiny.en"]


def test_instructions_models_and_threads_scale() -> None:
    """Faster instructions, larger models and more threads change what they concern."""
    fast = reference_costs(MachineFacts(cpu=cpu(2, flags=AVX2 | {"avx512_vnni"})), CHOICE, {})
    base = config(models={"recognizer": "whisper-base"}).models
    larger = reference_costs(FACTS, base, model_sizes(base))

    assert all(getattr(fast, name).median_ns < getattr(REFERENCE, name).median_ns for name in TIMES)
    assert 1.8 < larger.encode.median_ns / REFERENCE.encode.median_ns < 2.0
    assert REFERENCE.prompt_token == larger.prompt_token
    assert 1.7 < REFERENCE.recognition_ns(1) / REFERENCE.recognition_ns(2) < 1.9
    assert REFERENCE.recognition_ns(16) == REFERENCE.recognition_ns(64)


def test_a_quick_recognizer_costs_by_its_kind_and_size() -> None:
    """Its model counts as memory; Whisper takes longer for its bytes than Moonshine."""
    quick = reference_costs(FACTS, TWO_EARS, model_sizes(TWO_EARS))
    whisper = config(models={"quick_recognizer": "whisper-tiny.en"}).models
    slow = reference_costs(FACTS, whisper, model_sizes(whisper))

    assert REFERENCE.quick_recognition == quick.quick_recognition
    assert 110 < (quick.base_bytes - reference_costs(FACTS, CHOICE, model_sizes(CHOICE)).base_bytes) / 2**20 < 116
    assert 0.7 < slow.quick_recognition_ns(2) / REFERENCE.recognition_ns(2) < 1.5
    assert quick.quick_recognition_ns(2) < quick.quick_recognition_ns(1)


def test_moonshine_is_quicker_than_whisper() -> None:
    moonshine = config(models={"recognizer": "moonshine-tiny.en"}).models

    assert reference_costs(FACTS, moonshine, model_sizes(moonshine)).encode.median_ns < REFERENCE.encode.median_ns / 2


def test_a_quick_recognizer_looks_instead_of_the_other() -> None:
    """A caller takes less of the cores and a pause less time; the other hears each pause once."""
    two = replace(MEANS, quick_threads=1)

    assert 1.5 * REFERENCE.recognition_ns(2) == hearing_ns(two, REFERENCE)
    assert work_ns(two, REFERENCE) < work_ns(MEANS, REFERENCE)
    saved_ns = REFERENCE.recognition_ns(2) - REFERENCE.quick_recognition_ns(1)
    assert saved_ns == pytest.approx(pause_ns(MEANS, REFERENCE) - pause_ns(two, REFERENCE))
    assert plan(recorded("vm_2_cores")).callers <= plan(recorded("vm_2_cores"), config(models=QUICK)).callers


def test_its_workers_bound_the_callers() -> None:
    """Slow enough, it is what there is least of, and the reason names it."""
    slow = replace(REFERENCE, quick_recognition=REFERENCE.quick_recognition.times(20))
    two = replace(MEANS, computing_cores=64.0, quick_threads=1, quick_width=2)

    assert "of the quick recognizer's 2 workers" in admit(two, slow, given=0)[1].text
    assert "on 2 workers" in by_pauses(two, slow)[1]


def test_pauses_coincide_no_more_often_than_stated() -> None:
    """The count of callers and their pauses' length give the stated share of pauses that meet another."""
    count, _ = by_pauses(MEANS, REFERENCE)
    alone = 1 - pause_ns(MEANS, REFERENCE) / 10e9

    assert 1 - alone ** (count - 1) <= COINCIDENCE < 1 - alone**count


def test_the_estimate_of_callers_is_told_with_its_figures() -> None:
    """Four on the reference machine, as was measured there; the reason holds all three bounds."""
    count, reason = admit(MEANS, REFERENCE, given=0)

    assert 4 == count
    assert all(word in reason.text for word in ("whole cores", "pauses meet another", "MB for each"))


def test_measured_costs_are_found_again(tmp_path: Path) -> None:
    """The same machine and models find them, and the plan says when they were taken."""
    write_costs(FACTS, CHOICE, MEASURED, root=tmp_path)
    again = MachineFacts(cpu=replace(cpu(2), memory_bytes=8 * GIB - 8192))  # another boot

    assert MEASURED == known_costs(again, CHOICE, root=tmp_path)
    assert "measured 2026-12-02" in {reason.value for reason in plan_with(MEASURED).reasons}


def plan_with(costs):
    from antiphon.hardware.plan import make_plan

    return make_plan(FACTS, CHOICE, config(), costs)


@pytest.mark.parametrize(
    "other",
    [
        MachineFacts(cpu=cpu(4)),
        MachineFacts(cpu=cpu(2), quota_cores=1.5),
        MachineFacts(cpu=cpu(2, flags=AVX2 | {"avx512f"})),
        MachineFacts(cpu=cpu(2, memory_bytes=4 * GIB)),
        MachineFacts(cpu=replace(cpu(2), model="Another CPU")),
    ],
)
def test_another_machine_finds_nothing(other: MachineFacts, tmp_path: Path) -> None:
    write_costs(FACTS, CHOICE, MEASURED, root=tmp_path)

    assert read_costs(other, CHOICE, root=tmp_path) is None
    assert "reference" == known_costs(other, CHOICE, root=tmp_path).origin


def test_other_models_find_nothing(tmp_path: Path) -> None:
    """Another name or, with a file of one's own, other content."""
    model = tmp_path / "mine.gguf"
    model.write_bytes(b"GGUF")
    mine = config(models={"language_model": str(model)}).models
    write_costs(FACTS, mine, MEASURED, root=tmp_path)

    assert read_costs(FACTS, CHOICE, root=tmp_path) is None
    assert MEASURED == read_costs(FACTS, mine, root=tmp_path)
    model.write_bytes(b"GGUF, changed")
    assert read_costs(FACTS, mine, root=tmp_path) is None


def test_a_quick_recognizer_is_another_model(tmp_path: Path) -> None:
    """What was measured without one is kept for whoever has none, and the other way round."""
    write_costs(FACTS, CHOICE, MEASURED, root=tmp_path)
    assert read_costs(FACTS, TWO_EARS, root=tmp_path) is None
    write_costs(FACTS, TWO_EARS, replace(MEASURED, quick_recognizer_threads=2), root=tmp_path)

    assert MEASURED == read_costs(FACTS, CHOICE, root=tmp_path)
    assert replace(MEASURED, quick_recognizer_threads=2) == read_costs(FACTS, TWO_EARS, root=tmp_path)


def test_a_file_from_before_there_were_quick_recognizers_is_read(tmp_path: Path) -> None:
    file = write_costs(FACTS, CHOICE, MEASURED, root=tmp_path)
    data = json.loads(file.read_text())
    for name in QUICK_FIELDS:
        del data["costs"][name]
    file.write_text(json.dumps(data))

    assert MEASURED == read_costs(FACTS, CHOICE, root=tmp_path)


def damaged(data: dict[str, object], change: str) -> str:
    costs = data["costs"]
    assert isinstance(costs, dict)
    if change == "schema":
        data["schema"] = "antiphon.costs/0"
    elif change == "unknown":
        costs["more"] = 1
    elif change == "missing":
        del costs["encode"]
    elif change == "zero":
        costs["encode"]["median_ns"] = 0
    elif change == "text":
        costs["recognizer_threads"] = "2"
    elif change == "threads":
        costs["quick_recognizer_threads"] = 0
    elif change == "reference":
        costs["origin"] = "reference"
    return json.dumps(data)[: 50 if change == "torn" else None]


@pytest.mark.parametrize("change", ["schema", "unknown", "missing", "zero", "text", "threads", "reference", "torn"])
def test_a_damaged_file_counts_as_none(change: str, tmp_path: Path) -> None:
    file = write_costs(FACTS, CHOICE, MEASURED, root=tmp_path)
    file.write_text(damaged(json.loads(file.read_text()), change))

    assert read_costs(FACTS, CHOICE, root=tmp_path) is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "costs").write_text("")  # a file, where the folder should be

    with pytest.raises(MachineError, match="cannot be written"):
        write_costs(FACTS, CHOICE, MEASURED, root=tmp_path)


def test_the_cache_may_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))

    assert tmp_path / "costs" == costs_file(FACTS, CHOICE).parent


def test_slow_costs_admit_fewer() -> None:
    """Measured costs of twice the reference halve the callers."""
    slow = replace(MEASURED, **{name: getattr(MEASURED, name).times(2.0) for name in TIMES})

    assert 4 == plan(recorded("vm_2_cores")).callers
    assert 2 == plan_with(slow).callers
