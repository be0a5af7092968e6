"""Settings come from four layers, the last one wins, and every mistake is told with its place and the remedy."""

from __future__ import annotations

import enum
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import Config, Layer, Resolved, Setting, keys, load
from antiphon.config_values import choices, to_json, to_toml, type_name, value_of_text, value_of_toml
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit


class Fruit(enum.Enum):
    APPLE = "apple"
    PEAR = "pear"


def loaded(tmp_path: Path, text: str = "", sets: tuple[str, ...] = (), **environment: str) -> Resolved:
    file = tmp_path / "antiphon.toml"
    file.write_text(text, encoding="utf-8")
    return load(folders=(tmp_path,), sets=sets, environment=environment)


def one(resolved: Resolved, dotted: str) -> Setting:
    (setting,) = (setting for setting in resolved.settings if setting.key.dotted == dotted)
    return setting


def refused(tmp_path: Path, text: str = "", sets: tuple[str, ...] = (), **environment: str) -> CallerError:
    with pytest.raises(CallerError) as caught:
        loaded(tmp_path, text, sets, **environment)
    return caught.value


def test_without_any_layer_all_is_default(tmp_path: Path) -> None:
    resolved = load(folders=(tmp_path,), environment={})
    assert Config() == resolved.config
    assert {Layer.DEFAULT} == {setting.origin.layer for setting in resolved.settings}
    assert (None, (tmp_path / "antiphon.toml",)) == (resolved.file, resolved.looked_for)


def test_each_layer_beats_the_one_before(tmp_path: Path) -> None:
    text = "[turn]\nshortest_wait_ms = 1\nstalled_ms = 101\nlongest_turn_s = 11\n"
    variables = {"ANTIPHON_TURN_STALLED_MS": "102", "ANTIPHON_TURN_LONGEST_TURN_S": "12"}
    resolved = loaded(tmp_path, text, ("turn.longest_turn_s=5", "turn.longest_turn_s=13"), **variables)
    turn = resolved.config.turn
    assert (turn.shortest_wait_ms, turn.stalled_ms, turn.longest_turn_s) == (1, 102, 13)
    assert f"{tmp_path / 'antiphon.toml'}:2" == str(one(resolved, "turn.shortest_wait_ms").origin)
    assert str(one(resolved, "turn.stalled_ms").origin) == "ANTIPHON_TURN_STALLED_MS"
    assert str(one(resolved, "turn.longest_turn_s").origin) == "--set"
    assert str(one(resolved, "turn.longest_wait_ms").origin) == "default"


def test_the_first_folder_with_a_file_is_read(tmp_path: Path) -> None:
    for name, value in (("user", 1), ("here", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "antiphon.toml").write_text(f"turn.shortest_wait_ms = {value}\n")
    folders = (tmp_path / "empty", tmp_path / "here", tmp_path / "user")
    resolved = load(folders=folders, environment={})
    assert (2, folders[1] / "antiphon.toml") == (resolved.config.turn.shortest_wait_ms, resolved.file)
    explicit = load(file=tmp_path / "user" / "antiphon.toml", folders=folders, environment={})
    assert explicit.config.turn.shortest_wait_ms == 1


def test_the_process_environment_is_read_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_TURN_SHORTEST_WAIT_MS", "7")
    assert load(folders=()).config.turn.shortest_wait_ms == 7


def test_a_file_may_start_with_a_byte_order_mark_and_have_windows_lines(tmp_path: Path) -> None:
    (tmp_path / "antiphon.toml").write_bytes(b"\xef\xbb\xbf[turn]\r\nshortest_wait_ms = 5\r\n")
    resolved = load(folders=(tmp_path,), environment={})
    assert resolved.config.turn.shortest_wait_ms == 5
    assert str(one(resolved, "turn.shortest_wait_ms").origin).endswith("antiphon.toml:2")


def test_a_line_that_cannot_be_told_is_left_out(tmp_path: Path) -> None:
    resolved = loaded(tmp_path, "turn = {shortest_wait_ms = 5}\n")
    assert str(tmp_path / "antiphon.toml") == str(one(resolved, "turn.shortest_wait_ms").origin)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[turn]\n\nlongest_wait = 900\n", ":3: there is no setting", "did you mean turn.longest_wait_ms?"),
        ("[trun]\nlongest_wait_ms = 900\n", ":1: there is no setting", "did you mean turn?"),
        ("longest_wait_ms = 900\n", ":1: there is no setting", "did you mean turn.longest_wait_ms?"),
        ("[qqqq]\n", "there is no setting", "the sections are turn, "),
        ("turn = 900\n", ":1: turn is a section", "[turn]"),
        ('[turn]\nstalled_ms = "900"\n', ':2: turn.stalled_ms is "900", but must be a whole', "the default is 500"),
        ("[turn]\nstalled_ms = 900.0\n", "turn.stalled_ms is 900.0, but must be a whole number", "the default"),
        ("[turn]\nstalled_ms = true\n", "turn.stalled_ms is true, but must be a whole number", "the default"),
        ("[turn.stalled_ms]\n", "turn.stalled_ms is a section, but must be a whole number", "the default"),
        ("[[turn]]\n", "turn is a section, not a value", "[turn]"),
        ("[models]\nvoice = 5\n", "models.voice is 5, but must be text", 'the default is "hibari-heart"'),
        ("[models]\nvoice = ''\n", "[models] voice is empty (models.voice from ", "antiphon models list"),
        ("[turn]\nstalled_ms = 1\n", "[turn] stalled_ms is 1 (turn.stalled_ms from ", "from 100 to"),
        ("[turn]\nstalled_ms = \n", "is not TOML: Invalid value (at line 2, column 14)", "--toml"),
        ("[turn]\nstalled_ms = 900\nstalled_ms = 901\n", "is not TOML", "--toml"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_place(tmp_path: Path, text: str, message: str, hint: str) -> None:
    error = refused(tmp_path, text)
    assert message in error.message
    assert "antiphon.toml" in error.message
    assert hint in error.hint


def test_a_value_that_another_layer_makes_wrong_is_told_with_its_origin(tmp_path: Path) -> None:
    """The field in the message is a default here; what was set is named all the same."""
    error = refused(tmp_path, sets=("turn.shortest_wait_ms=5000",))
    assert error.message == "[turn] longest_wait_ms is 1200 (turn.shortest_wait_ms from --set)"


@pytest.mark.parametrize(
    ("assignment", "message", "hint"),
    [
        ("turn.longest_wait_ms", "--set turn.longest_wait_ms gives no value", "section.name=value"),
        ("turn.longest-wait-ms=5", "--set: there is no setting", "turn.longest_wait_ms"),
        ("=5", "--set: there is no setting", "the sections are"),
        ("turn.longest_wait_ms=", '--set: turn.longest_wait_ms is "", but must be a whole number', "1200"),
        ("turn.longest_wait_ms=1e3", "must be a whole number", "1200"),
        ("turn.longest_wait_ms=" + "9" * 9000, "must be a whole number", "1200"),
        ("models.voice=\udcff", "must be text", "hibari"),
    ],
)
def test_a_mistake_in_a_flag_is_told(tmp_path: Path, assignment: str, message: str, hint: str) -> None:
    error = refused(tmp_path, sets=(assignment,))
    assert message in error.message
    assert hint in error.hint
    assert len(error.message) < 200


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("ANTIPHON_TURN_LONGEST_WAIT", "did you mean ANTIPHON_TURN_LONGEST_WAIT_MS?"),
        ("ANTIPHON_TURN_QQQ", "antiphon config"),
        ("ANTIPHON_TRUN_LONGEST_WAIT_MS", "did you mean ANTIPHON_TURN_LONGEST_WAIT_MS?"),
        ("ANTIPHON_MODELS_VOICES", "did you mean ANTIPHON_MODELS_VOICE?"),
    ],
)
def test_a_variable_that_means_a_setting_but_names_none_is_refused(tmp_path: Path, variable: str, hint: str) -> None:
    error = refused(tmp_path, **{variable: "900"})
    assert f"the variable {variable} names no setting" == error.message
    assert hint in error.hint


def test_variables_of_others_and_empty_ones_are_left_alone(tmp_path: Path) -> None:
    """The cache's variable is ours; Kubernetes makes the second kind for a service called antiphon."""
    others = {
        "ANTIPHON_CACHE": "/x",
        "ANTIPHON_SERVICE_HOST": "10.0.0.1",
        "ANTIPHON_PORT_80_TCP": "tcp://",
        "HOME": "/",
    }
    assert Config() == loaded(tmp_path, ANTIPHON_TURN_STALLED_MS="", **others).config


def test_a_wrong_variable_is_told_by_name(tmp_path: Path) -> None:
    error = refused(tmp_path, ANTIPHON_CPU_VOICE_THREADS="many")
    assert error.message == 'ANTIPHON_CPU_VOICE_THREADS: cpu.voice_threads is "many", but must be a whole number'
    assert "[cpu] voice_threads is -1" in refused(tmp_path, ANTIPHON_CPU_VOICE_THREADS="-1").message


def test_files_that_cannot_be_read_are_the_callers_errors(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    for path, message in (
        (tmp_path / "none.toml", "there is no file"),
        (tmp_path / "latin.toml" / "x", "there is no file"),
        (tmp_path, "cannot be read"),
        (tmp_path / "latin.toml", "is not UTF-8 at byte 5"),
    ):
        with pytest.raises(CallerError, match=message):
            load(file=path, environment={})


FORMS = [
    (int, "1_000", 1000),
    (int, " -5 ", -5),
    (float, "0.5", 0.5),
    (float, "2", 2.0),
    (bool, "Yes", True),
    (bool, "off", False),
    (str, " kept as it is ", " kept as it is "),
    (Path, "models/x.gguf", Path("models/x.gguf")),
    (tuple[str, ...], "a, b,,c ", ("a", "b", "c")),
    (tuple[str, ...], '["a, b", "c"]', ("a, b", "c")),
    (tuple[str, ...], "", ()),
    (Fruit, "pear", Fruit.PEAR),
    (Literal["cpu", "cuda"], "cuda", "cuda"),
    (Literal[16000, 24000], "24000", 24000),
]


@pytest.mark.parametrize(("wanted", "text", "want"), FORMS)
def test_text_becomes_the_type_that_is_asked_for(wanted: object, text: str, want: object) -> None:
    value = value_of_text(wanted, text)
    assert (want, type(want)) == (value, type(value))


@pytest.mark.parametrize(("wanted", "text", "want"), FORMS)
def test_every_type_can_be_printed_and_read_back(wanted: object, text: str, want: object) -> None:
    import json
    import tomllib

    value = value_of_text(wanted, text)
    assert value == value_of_toml(wanted, tomllib.loads(f"x = {to_toml(value)}")["x"])
    assert json.dumps(to_json(value))
    assert type_name(wanted)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (int, "0x10"),
        (int, ""),
        (float, "nan"),
        (float, "inf"),
        (float, "fast"),
        (bool, "maybe"),
        (bool, ""),
        (tuple[str, ...], "[1, 2]"),
        (tuple[str, ...], '["a"'),
        (Fruit, "plum"),
        (Literal["cpu", "cuda"], "gpu"),
        (str, "a\0b"),
    ],
)
def test_text_of_another_type_is_refused(wanted: object, text: str) -> None:
    with pytest.raises(ValueError):
        value_of_text(wanted, text)


@pytest.mark.parametrize(
    ("wanted", "raw"),
    [
        (int, True),
        (int, 1.0),
        (bool, 1),
        (float, True),
        (float, float("nan")),
        (str, 1),
        (Path, 1),
        (tuple[str, ...], "a"),
        (tuple[str, ...], ["a", 1]),
        (Fruit, 1),
        (Literal[1, 2], "1"),
        (Literal[1, 2], True),
        (Literal["1"], 1),
    ],
)
def test_toml_of_another_type_is_refused(wanted: object, raw: object) -> None:
    with pytest.raises(ValueError):
        value_of_toml(wanted, raw)


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("USERPROFILE", "/home/ada")
    assert Path("/home/ada/x") == value_of_text(Path, "~/x") == value_of_toml(Path, "~/x")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_a_file(text: str) -> None:
    import tomllib

    assert text == tomllib.loads(f"x = {to_toml(text)}")["x"]


def test_choices_are_named() -> None:
    assert type_name(Fruit) == "one of apple, pear"
    assert choices(int) == {}


def test_every_setting_has_a_name_of_its_own_and_a_type_that_can_be_set() -> None:
    """Two settings must not share a variable, as turn.end_x and turn_end.x would."""
    assert len(keys()) == len({key.variable for key in keys()})
    assert all(type_name(key.wanted) for key in keys())
    assert {"models", "cpu"} <= {key.section for key in keys()}


def test_the_settings_defined_here_say_what_they_are() -> None:
    assert [key.dotted for key in keys() if not key.doc] == []


def test_reading_settings_loads_no_heavy_library() -> None:
    code = "import sys, antiphon.config; print(sorted({'numpy', 'torch', 'rich', 'onnxruntime'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_quick_recognizer_is_no_must(tmp_path: Path) -> None:
    """Empty, nobody is quick; else it is named as the recognizer is. All models together are known by their names."""
    default = loaded(tmp_path).config.models
    both = loaded(tmp_path, sets=("models.quick_recognizer=moonshine-tiny.en", "models.prosody=")).config.models
    own = loaded(tmp_path, '[models]\nquick_recognizer = "~/models/moonshine"').config.models

    assert default == loaded(tmp_path, sets=(f"models.quick_recognizer={default.quick_recognizer}",)).config.models
    assert loaded(tmp_path, sets=("models.quick_recognizer=",)).config.models.quick_recognizer == ""
    assert own.quick_recognizer == "~/models/moonshine"
    assert both.names == (
        default.voice_detector,
        default.recognizer,
        "moonshine-tiny.en",
        default.language_model,
        default.voice,
    )


@pytest.mark.parametrize(
    ("recognizer", "quick"),
    [
        ("whisper-tiny.en", "moonshine-tiny.en"),
        ("whisper-base", ""),
        ("./my-whisper", ""),
        ("./mine.en", "moonshine-tiny.en"),
    ],
)
def test_by_itself_the_quick_recognizer_is_there_for_english(recognizer: str, quick: str, tmp_path: Path) -> None:
    """It knows no other language, so it stays away from a recognizer that hears more."""
    models = loaded(tmp_path, sets=(f"models.recognizer={recognizer}",)).config.models
    assert models.quick_name == quick
    assert ("moonshine-tiny.en" in models.names) == bool(quick)


def test_the_recognizer_hears_the_language_that_is_set(tmp_path: Path) -> None:
    """English unless told otherwise; what is no code is refused with the setting's name and the remedy."""
    assert loaded(tmp_path).config.whisper.language == "en"
    assert loaded(tmp_path, '[whisper]\nlanguage = "zh"').config.whisper.language == "zh"
    error = refused(tmp_path, '[whisper]\nlanguage = "Chinese"')
    assert "[whisper] language is 'Chinese'" in error.message
    assert "zh" in str(error.hint)
