"""antiphon doctor: finds what is missing, says how to mend it, and survives everything."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

import pytest

from antiphon.cli import doctor
from antiphon.cli.doctor import Finding, engine_remedy, examine
from antiphon.core.errors import CallerError
from antiphon.hardware.probe_cpu import CpuFacts
from antiphon.hardware.probe_engines import ImportResult
from antiphon.models.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.unit


def antiphon(*words: str) -> int:
    parser = argparse.ArgumentParser()
    doctor.add(parser.add_subparsers())
    arguments = parser.parse_args(["doctor", *words])
    return int(arguments.run(arguments))


def cpu_of(**changes: object) -> CpuFacts:
    facts = {
        "model": "Some CPU",
        "architecture": "x86_64",
        "logical_cores": 4,
        "usable_cores": 4,
        "flags": frozenset({"avx2", "fma"}),
        "memory_bytes": 8 * 10**9,
        **changes,
    }
    return CpuFacts(**facts)  # type: ignore[arg-type]


def levels(findings: Iterator[Finding]) -> list[tuple[str, str]]:
    return [(finding.subject, finding.level) for finding in findings]


@pytest.fixture
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, no index that answers, engines that all load."""
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setattr(
        "antiphon.hardware.probe_engines.probe_imports",
        lambda modules, timeout_s: [ImportResult(module=module, problem="") for module in modules],
    )


@pytest.mark.usefixtures("_bare")
def test_a_fresh_machine_is_told_to_fetch_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    """1, and the command that mends it; an index that is not reached only warns, and shows no password."""
    assert antiphon() == 1

    out = capsys.readouterr().out

    assert "hint: antiphon models fetch silero-v6" in out
    assert "warn  index: http://127.0.0.1:9 cannot be reached" in out
    assert "secret" not in out


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize("configured", ["", "whisper-base"])
def test_a_model_that_the_settings_name_is_looked_for(
    configured: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_MODELS_QUICK_RECOGNIZER", configured)
    assert antiphon() == 1

    assert bool(configured) == ("hint: antiphon models fetch whisper-base" in capsys.readouterr().out)


@pytest.mark.usefixtures("_bare")
def test_json_holds_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives subject, level, text and remedy, and nothing else on stdout."""
    assert antiphon("--json") == 1

    findings = json.loads(capsys.readouterr().out)

    assert {"subject", "level", "text", "mend"} == set(findings[0])
    assert all(finding["mend"] for finding in findings if finding["level"] == "fail")


def test_a_check_that_breaks_is_a_finding() -> None:
    """Neither our own errors nor foreign ones end the examination."""

    def foreign() -> Iterator[Finding]:
        yield Finding("x", "ok", "first")
        raise RuntimeError("broken")

    def own() -> Iterator[Finding]:
        raise CallerError("pip.conf cannot be parsed", hint="correct it")
        yield

    assert [("x", "ok"), ("x", "warn")] == levels(examine("x", foreign))
    assert [Finding("y", "warn", "pip.conf cannot be parsed", "correct it")] == list(examine("y", own))


@pytest.mark.skipif(sys.platform != "linux", reason="the rule is for Linux's wheel")
@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        (cpu_of(), [("cores", "ok"), ("instructions", "ok")]),
        (cpu_of(flags=frozenset({"avx2"})), [("cores", "ok"), ("instructions", "fail")]),
        (cpu_of(flags=frozenset()), [("cores", "ok"), ("instructions", "fail")]),
        (cpu_of(flags=None), [("cores", "ok"), ("instructions", "ok")]),
        (cpu_of(architecture="aarch64", flags=frozenset({"asimd"})), [("cores", "ok"), ("instructions", "ok")]),
        (cpu_of(usable_cores=1), [("cores", "warn"), ("instructions", "ok")]),
    ],
)
def test_cpu(cpu: CpuFacts, expected: list[tuple[str, str]]) -> None:
    """AVX2 and FMA are needed on x86; one core is little; what is unknown is no failure."""
    assert expected == levels(doctor._cpu(cpu))


@pytest.mark.parametrize(("size", "level"), [(8 * 10**9, "ok"), (10**9, "warn"), (None, "ok")])
def test_memory(size: int | None, level: str) -> None:
    """Little memory warns."""
    assert [("memory", level)] == levels(doctor._memory(cpu_of(memory_bytes=size)))


@pytest.mark.parametrize(
    ("library", "level"),
    [(("glibc", "2.36"), "ok"), (("glibc", "2.28"), "ok"), (("glibc", "2.17"), "fail"), (("", ""), "fail")],
)
def test_system(library: tuple[str, str], level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old glibc or another C library fails, with a way out."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("platform.libc_ver", lambda: library)

    (finding,) = doctor._system()

    assert level == finding.level
    assert bool(finding.mend) == (level == "fail")


def test_a_cache_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails while models are missing, and names ANTIPHON_CACHE."""
    monkeypatch.setattr(doctor, "_write_problem", lambda _: "Read-only file system")

    (finding,) = doctor._cache(Store(tmp_path / "cache"))

    assert finding.level == "fail"
    assert "ANTIPHON_CACHE" in finding.mend


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room for what is missing fails with the size that is needed."""
    monkeypatch.setattr("antiphon.models.download.free_bytes_of", lambda _: 1000)

    (finding,) = doctor._cache(Store(tmp_path / "cache"))

    assert finding.level == "fail"
    assert "MB needed" in finding.text


@pytest.mark.parametrize(
    ("problem", "word"),
    [
        ("ImportError: libgomp.so.1: cannot open shared object file", "libgomp1"),
        ("the import ended its process with signal 4", "instructions"),
        ("ImportError: DLL load failed while importing x", "Visual C++"),
        ("ModuleNotFoundError: No module named 'soxr'", "-m pip install"),
    ],
)
def test_an_engine_that_does_not_load_has_a_remedy(problem: str, word: str) -> None:
    """Each known cause has its own way out."""
    assert word in engine_remedy("soxr", problem)
