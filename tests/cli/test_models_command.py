"""antiphon models: what a person types, and what comes back."""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from antiphon.cli import models as command
from antiphon.core.errors import CallerError, MachineError
from antiphon.models.catalogue import Model, ModelFile
from antiphon.models.store import Store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

CONTENT = b"voice"


@pytest.fixture(autouse=True)
def _one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A world with one model, whose source is a file, and an empty cache."""
    source = tmp_path / "source.onnx"
    source.write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    file = ModelFile(name="v.onnx", size_bytes=len(CONTENT), sha256=digest, sources=(f"path:{source}",))
    model = Model(
        name="voice-one",
        role="voice",
        licence="MIT",
        licence_text="",
        notice="",
        homepage="https://example.org",
        files=(file,),
    )
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    for module in ("antiphon.models.store", "antiphon.models.catalogue"):
        monkeypatch.setattr(f"{module}.DEFAULT_NAMES", ("voice-one",))
    monkeypatch.setitem(Store.__init__.__kwdefaults__, "catalogue", {"voice-one": model})


def antiphon(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    arguments = parser.parse_args(["models", *words])
    return int(arguments.run(arguments))


def test_list_shows_what_is_missing_and_then_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    """The table names model, role, size, licence and state."""
    assert antiphon("list") == 0
    before = capsys.readouterr().out
    antiphon("fetch")
    capsys.readouterr()
    antiphon("list")
    after = capsys.readouterr().out

    for word in ("voice-one *", "voice", "MIT", "missing"):
        assert word in before
    assert "present" in after


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives the same as data."""
    assert antiphon("list", "--json") == 0

    (entry,) = json.loads(capsys.readouterr().out)

    assert (entry["name"], entry["state"], entry["size_bytes"], entry["default"]) == ("voice-one", "missing", 5, True)


@pytest.mark.parametrize("words", [(), ("voice-one",), ("--all",), ("voice-one", "voice-one")])
def test_fetch_by_name_or_without(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """No name means the default set; a second time says that it is here."""
    assert antiphon("fetch", *words) == 0
    assert "voice-one: fetched" in capsys.readouterr().out
    assert antiphon("fetch", *words) == 0
    assert "voice-one: already here" in capsys.readouterr().out


def test_what_the_settings_name_is_needed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that the configuration chooses is starred and fetched beside the default ones; of anything else, none."""
    (model,) = Store().catalogue.values()
    ear = replace(model, name="ear-one", role="recognition")
    monkeypatch.setitem(Store.__init__.__kwdefaults__, "catalogue", {"voice-one": model, "ear-one": ear})
    assert antiphon("fetch") == 0
    assert "ear-one" not in capsys.readouterr().out
    monkeypatch.setenv("ANTIPHON_MODELS_QUICK_RECOGNIZER", "ear-one")
    antiphon("list")
    assert "ear-one *" in capsys.readouterr().out
    assert antiphon("fetch") == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["voice-one: already here", "ear-one: fetched"]


def test_fetch_of_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The error suggests the nearest name."""
    with pytest.raises(CallerError) as caught:
        antiphon("fetch", "voice-two")

    assert caught.value.hint == "did you mean voice-one?"


def test_fetch_into_a_place_that_cannot_be(tmp_path: Path) -> None:
    """A cache that cannot be made is the machine's error."""
    (tmp_path / "cache").write_text("in the way")

    with pytest.raises(MachineError, match="cannot write to"):
        antiphon("fetch")


def test_verify_fails_on_what_is_missing_or_damaged_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 while something is wrong, with the command that mends it; 0 when all is well."""
    assert antiphon("verify") == 1
    assert "hint: antiphon models fetch voice-one" in capsys.readouterr().out
    antiphon("fetch")
    assert antiphon("verify") == 0
    (tmp_path / "cache" / "models" / "voice-one" / "v.onnx").write_bytes(b"noise")
    capsys.readouterr()
    assert antiphon("verify", "voice-one") == 1
    assert "v.onnx has a wrong checksum" in capsys.readouterr().out
    assert antiphon("fetch") == 0
    assert antiphon("verify") == 0


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A line at the beginning and one for each quarter, on stderr, without control characters."""
    with command.progress_display() as progress:
        transfer = progress.begin("big", 8_000_000)
        for _ in range(8):
            transfer.advance(1_000_000)
        transfer.end()
        progress.begin("unknown", None).advance(5)

    captured = capsys.readouterr()
    lines = captured.err.splitlines()

    assert lines == ["big: 8.0 MB", "big: 25%", "big: 50%", "big: 75%", "big: 100%", "unknown: of unknown size"]
    assert captured.out == ""


def test_on_a_terminal_there_are_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All transfers are bars of one display."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with command.progress_display() as progress:
        transfers = [progress.begin("one", 10), progress.begin("two", None)]
        progress.note("[a note]")
        for transfer in transfers:
            transfer.advance(10)
            transfer.end()

    err = capsys.readouterr().err

    for word in ("one", "two", "[a note]"):
        assert word in err
