"""antiphon voices: what can be chosen, what was, and what is left to do."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import pytest

from antiphon.cli import voices as command
from antiphon.models.catalogue import CATALOGUE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, nothing configured, no Piper."""
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ANTIPHON_MODELS_VOICE", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_extra_hint", lambda: ["pip install 'antiphon[piper]'"])
    return tmp_path / "cache"


def antiphon(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    arguments = parser.parse_args(["voices", *words])
    return int(arguments.run(arguments))


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, object]]:
    assert antiphon("list", "--json", *words) == 0
    return {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}


def add_piper_voice(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(b"voice")
    (folder / f"{name}.onnx.json").write_text(json.dumps({"language": {"code": "de_DE"}}))
    return folder / f"{name}.onnx"


def test_every_voice_of_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With its accent, engine, licences, size, and what brings it here; the default is the configured one."""
    found = listed(capsys)

    assert [model.name for model in CATALOGUE.values() if model.role == "voice"] == list(found)
    assert ["hibari-heart"] == [name for name, entry in found.items() if entry["is_configured"]]
    emma, ljspeech = found["hibari-emma"], found["piper-ljspeech"]
    assert ("en-GB, female", "hibari", "Apache-2.0") == (emma["speaks"], emma["engine"], emma["licence"])
    assert ("to be fetched", "antiphon models fetch hibari-emma") == (emma["state"], emma["hint"])
    assert ("MIT", "GPL-3.0-or-later", 63_536_351) == tuple(
        ljspeech[key] for key in ("licence", "engine_licence", "size_bytes")
    )
    assert "antiphon models fetch piper-ljspeech; pip install 'antiphon[piper]'" == ljspeech["hint"]


def test_every_voice_of_the_catalogue_has_its_accent() -> None:
    """The list knows of each what it speaks."""
    assert {model.name for model in CATALOGUE.values() if model.role == "voice"} == set(command.ACCENTS)


def test_the_voice_that_comes_with_the_package_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing needs fetching before the default speaks, once its copy lies in the cache or can be made from it."""
    assert listed(capsys)["hibari-heart"]["state"] in {"here", "to be fetched"}


@pytest.mark.parametrize("name", ["emma", "hibari-emma"])
def test_the_configured_voice_may_be_named_for_short(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys, "--set", f"models.voice={name}")

    assert ["hibari-emma"] == [voice for voice, entry in found.items() if entry["is_configured"]]


def test_a_piper_voice_in_the_folder_for_them_is_listed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under the name that chooses it, with the language that its settings state."""
    add_piper_voice(cache / "voices", "de_DE-x-low")
    found = listed(capsys, "--set", "models.voice=piper:de_DE-x-low")["piper:de_DE-x-low"]

    assert ("de-DE", "here", True, 5) == tuple(found[key] for key in ("speaks", "state", "is_configured", "size_bytes"))
    assert "see its model card" == found["licence"]


def test_a_configured_path_is_listed_be_it_there_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing one says which two files it wants."""
    name = f"piper:{tmp_path}/elsewhere/v.onnx"
    missing = listed(capsys, "--set", f"models.voice={name}")[name]
    add_piper_voice(tmp_path / "elsewhere", "v")
    here = listed(capsys, "--set", f"models.voice={name}")[name]

    assert ("missing", "here") == (missing["state"], here["state"])
    assert str(missing["hint"]).startswith(f"put v.onnx and v.onnx.json into {tmp_path}")


def test_the_table_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The configured one is marked; fetching, installing and a path of one's own are named."""
    assert antiphon("list") == 0
    text = capsys.readouterr().out

    for words in ("hibari-heart *", "antiphon models fetch NAME", "pip install 'antiphon[piper]'", "piper:/path/of"):
        assert words in text
    assert "MIT; engine GPL-3.0-or-later" in text


def test_a_configured_voice_that_does_not_exist_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """The list is shown all the same: it is what helps."""
    assert antiphon("list", "--set", "models.voice=ema") == 0

    assert "the configured voice is none of these" in capsys.readouterr().out
