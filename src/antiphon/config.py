"""Defaults, a TOML file, the environment and flags in -> one `Config`, and where each of its values came from, out.

A later layer wins: default < file < environment < flag. A section is a frozen dataclass that its own module defines
and checks; to add one, add a field to `Config`. All else follows from the fields' names and types: the file's keys
(`[turn] longest_wait_ms`), the variables (`ANTIPHON_TURN_LONGEST_WAIT_MS`), the flags
(`--set turn.longest_wait_ms=900`), what `antiphon config` prints, and the documentation, which is the string in the
field's `Annotated[int, "what it is for"]`. config_values.py lists the types; a section's module must import them at
run time.

A field that is no part of its section's `repr` is a secret: it comes from its variable alone, and `Setting` does not
hold its value.

In variables and flags a tuple's items are separated by commas, or written as a TOML array. An empty variable counts
as not set. Relative paths start at the working folder, wherever they are written.

Threads: `load` reads a file; call it once, at start. It alone takes settings from the environment.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from platformdirs import user_config_path

from antiphon.audio.card.settings import SoundSettings
from antiphon.config_values import Value, choices, seen, to_toml, type_name, value_of_text, value_of_toml
from antiphon.core.errors import CallerError
from antiphon.dialogue.log import LogSettings
from antiphon.dialogue.settings import TurnSettings
from antiphon.hardware.plan_settings import CapacitySettings, CpuSettings, GpuSettings
from antiphon.hear.moonshine_settings import MoonshineSettings
from antiphon.hear.whisper_settings import WhisperSettings
from antiphon.scheduling.settings import SchedulingSettings
from antiphon.serve_settings import ServeSettings
from antiphon.think.chat_address import is_address, read_address
from antiphon.think.chat_settings import ChatServerSettings
from antiphon.think.chunker import ChunkerSettings
from antiphon.think.llama_settings import LlamaSettings
from antiphon.think.spoken_form import SpokenFormSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FILE_NAME = "antiphon.toml"
PREFIX = "ANTIPHON_"
# Secrets that have a name of their own already.
FOREIGN_VARIABLES = {"chat_server.openai_key": "OPENAI_API_KEY"}
OTHER_VARIABLES = frozenset({"ANTIPHON_CACHE"})  # ours too, but no setting: it moves the models' cache
# Kubernetes tells each pod of a service called "antiphon" in these.
KUBERNETES = re.compile(r"ANTIPHON_(SERVICE_(HOST|PORT)|PORT)(_\w+)?")
AUTO = "auto"
QUICK_RECOGNIZER = "moonshine-tiny.en"
ENGLISH_ALONE = ".en"  # how the names of recognizers for that end
MAY_BE_EMPTY = frozenset({"prosody", "quick_recognizer"})  # models that a conversation can do without
TYPO = 0.82  # so like a setting's variable must another be to be a slip: Kubernetes sets ANTIPHON_SERVICE_HOST itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """Which model does what: names of the catalogue; for the recognizers also a folder of a Whisper model in
    CTranslate2's form or of a Moonshine model, written with a slash; for the language model a GGUF file's path or a
    server's address.

    Raises:
        CallerError: a role that cannot stay empty is empty, or the server's address is none.
    """

    voice_detector: Annotated[str, "hears that somebody speaks"] = "silero-v6"
    prosody: Annotated[str, "hears whether it sounded finished; empty: nobody does"] = "smart-turn-v3.2"
    recognizer: Annotated[str, "turns speech into words; a name, or the path of a folder"] = "whisper-tiny.en"
    quick_recognizer: Annotated[
        str,
        "finds the words that a reply begins on, before the recognizer hears the whole turn; empty: nobody does; "
        "auto: moonshine-tiny.en beside a recognizer for English alone",
    ] = AUTO
    language_model: Annotated[str, "writes the replies"] = "smollm2-135m-instruct-q4_1"
    voice: Annotated[str, "speaks the replies"] = "hibari-heart"
    starts_thinking: Annotated[bool, "the language model's replies begin inside a thought, with no tag to open it"] = (
        False
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name not in MAY_BE_EMPTY and isinstance(value, str) and not value.strip():
                raise CallerError(f"{item.name} is empty", hint="`antiphon models list` shows the names")
        if is_address(self.language_model):
            read_address(self.language_model)

    @property
    def quick_name(self) -> str:
        """The quick recognizer's, as `recognizer` has it; empty: there is none."""
        if self.quick_recognizer != AUTO:
            return self.quick_recognizer
        return QUICK_RECOGNIZER if self.recognizer.endswith(ENGLISH_ALONE) else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all models that are to be loaded."""
        resolved = replace(self, quick_recognizer=self.quick_name)
        values = (getattr(resolved, item.name) for item in fields(self))
        return tuple(value for value in values if isinstance(value, str) and value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, by section."""

    turn: TurnSettings = field(default_factory=TurnSettings)
    models: ModelChoice = field(default_factory=ModelChoice)
    cpu: CpuSettings = field(default_factory=CpuSettings)
    gpu: GpuSettings = field(default_factory=GpuSettings)
    capacity: CapacitySettings = field(default_factory=CapacitySettings)
    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings)
    chunker: ChunkerSettings = field(default_factory=ChunkerSettings)
    spoken_form: SpokenFormSettings = field(default_factory=SpokenFormSettings)
    whisper: WhisperSettings = field(default_factory=WhisperSettings)
    moonshine: MoonshineSettings = field(default_factory=MoonshineSettings)
    llama: LlamaSettings = field(default_factory=LlamaSettings)
    chat_server: ChatServerSettings = field(default_factory=ChatServerSettings)
    sound: SoundSettings = field(default_factory=SoundSettings)
    record: LogSettings = field(default_factory=LogSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting that can be made."""

    section: str
    name: str
    wanted: object  # its type, as `get_type_hints` gives it
    default: Value
    doc: str
    is_secret: bool

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return FOREIGN_VARIABLES.get(self.dotted) or f"{PREFIX}{self.section}_{self.name}".upper()


class Layer(StrEnum):
    """Where a value can come from, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value came from."""

    layer: Layer
    where: str = ""  # the file with its line, the variable, the flag

    def __str__(self) -> str:
        return self.where or str(self.layer)


DEFAULT = Origin(layer=Layer.DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting as it was resolved."""

    key: Key
    value: Value  # a secret's is its default
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The outcome of all layers."""

    config: Config
    settings: tuple[Setting, ...]  # in the order of `Config`
    file: Path | None  # the one that was read
    looked_for: tuple[Path, ...]


@lru_cache(maxsize=1)
def keys() -> tuple[Key, ...]:
    """Every setting there is."""
    defaults = Config()
    found = []
    for section in fields(Config):
        values = getattr(defaults, section.name)
        hints = get_type_hints(type(values), include_extras=True)
        for item in fields(values):
            name, hint = item.name, hints[item.name]
            wanted, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            doc = next((extra for extra in extras if isinstance(extra, str)), "")
            default = getattr(values, name)
            secret = not item.repr
            key = Key(section=section.name, name=name, wanted=wanted, default=default, doc=doc, is_secret=secret)
            found.append(key)
    return tuple(found)


def load(
    *,
    file: Path | None = None,
    sets: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    folders: Sequence[Path] | None = None,
) -> Resolved:
    """Resolve all layers: `file`, else the first antiphon.toml in `folders`; `environment`; `sets`, "turn.x=1" each.

    `folders` are the working folder and the user's configuration folder, unless given; `environment` the process's.

    Raises:
        CallerError: a file cannot be read, or a name or value in any layer is wrong; the message says where.
    """
    if folders is None:
        folders = (Path(), user_config_path("antiphon", appauthor=False))
    looked_for = (file,) if file else tuple(folder / FILE_NAME for folder in folders)
    path, text = _first_text(looked_for, must_exist=file is not None)
    given: dict[str, tuple[Value, Origin]] = {}
    if path:
        given.update(_in_file(path, text))
    given.update(_in_environment(os.environ if environment is None else environment))
    given.update(_in_flags(sets))
    config = _built(given)
    return Resolved(
        config=config,
        settings=tuple(
            Setting(
                key=key,
                value=key.default if key.is_secret else getattr(getattr(config, key.section), key.name),
                origin=given[key.dotted][1] if key.dotted in given else DEFAULT,
            )
            for key in keys()
        ),
        file=path,
        looked_for=looked_for,
    )


def _first_text(paths: Sequence[Path], *, must_exist: bool) -> tuple[Path | None, str]:
    for path in paths:
        try:
            return path, path.read_text(encoding="utf-8-sig")  # Windows editors put a byte order mark first
        except (FileNotFoundError, NotADirectoryError) as error:
            if must_exist:
                raise CallerError(f"there is no file {path}", hint="`antiphon config --toml` prints one") from error
        except OSError as error:
            raise CallerError(f"{path} cannot be read: {error.strerror}", hint="it must be a readable file") from error
        except UnicodeDecodeError as error:
            raise CallerError(f"{path} is not UTF-8 at byte {error.start}", hint="save it as UTF-8") from error
    return None, ""


def _in_file(path: Path, text: str) -> Iterator[tuple[str, tuple[Value, Origin]]]:
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CallerError(f"{path} is not TOML: {error}", hint="`antiphon config --toml` prints an example") from error
    lines = _lines(text)
    for section, content in sections.items():
        if section not in _sections():
            raise _unknown(section, _origin_in(path, lines, section))
        if not isinstance(content, dict):
            where = _origin_in(path, lines, section)
            raise CallerError(f"{where}: {section} is a section, not a value", hint=f"write [{section}] above its keys")
        for name, raw in content.items():
            dotted = f"{section}.{name}"
            origin = Origin(layer=Layer.FILE, where=_origin_in(path, lines, dotted))
            key = _key(dotted, origin.where)
            yield dotted, (_checked(key, raw, origin, from_text=False), origin)


def _lines(text: str) -> dict[str, int]:
    """On which line each dotted key stands; quoted and inline keys are left out, for tomllib does not tell."""
    found: dict[str, list[int]] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            section = header[1] + "."
            found.setdefault(header[1], []).append(number)
        elif assignment := re.match(r"\s*([\w.-]+)\s*=", line):
            found.setdefault(section + assignment[1], []).append(number)
    return {dotted: numbers[0] for dotted, numbers in found.items() if len(numbers) == 1}


def _origin_in(path: Path, lines: Mapping[str, int], dotted: str) -> str:
    return f"{path}:{lines[dotted]}" if dotted in lines else str(path)


def _in_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[Value, Origin]]]:
    variables = {key.variable: key for key in keys()}
    ours = tuple(f"{PREFIX}{section.upper()}_" for section in _sections())
    for variable, text in sorted(environment.items()):
        key = variables.get(variable)
        if key is None and (not variable.startswith(PREFIX) or variable in OTHER_VARIABLES):
            continue
        if key is None and KUBERNETES.fullmatch(variable):
            continue
        if key is None:
            near = get_close_matches(variable, variables, n=1, cutoff=TYPO)
            if near or variable.startswith(ours):
                hint = f"did you mean {near[0]}?" if near else "`antiphon config` lists the settings"
                raise CallerError(f"the variable {variable} names no setting", hint=hint)
        elif text:
            origin = Origin(layer=Layer.ENVIRONMENT, where=variable)
            yield key.dotted, (_checked(key, text, origin, from_text=True), origin)


def _in_flags(sets: Sequence[str]) -> Iterator[tuple[str, tuple[Value, Origin]]]:
    origin = Origin(layer=Layer.FLAG, where="--set")
    for assignment in sets:
        dotted, equals, text = assignment.partition("=")
        if not equals:
            raise CallerError(f"--set {assignment} gives no value", hint="write --set section.name=value")
        key = _key(dotted.strip(), "--set")
        yield key.dotted, (_checked(key, text, origin, from_text=True), origin)


def _sections() -> tuple[str, ...]:
    return tuple(section.name for section in fields(Config))


def _key(dotted: str, where: str) -> Key:
    for key in keys():
        if key.dotted == dotted:
            return key
    raise _unknown(dotted, where)


def _unknown(dotted: str, where: str) -> CallerError:
    """The error for a name that is no setting's, with the nearest that is."""
    name = dotted.rpartition(".")[2]
    near = [key.dotted for key in keys() if key.name == name]
    near += get_close_matches(dotted, [*(key.dotted for key in keys()), *_sections()], n=1)
    near += [key.dotted for key in keys() if get_close_matches(name, [key.name])]
    hint = f"did you mean {near[0]}?" if near else f"the sections are {', '.join(_sections())}"
    return CallerError(f"{where}: there is no setting {seen(dotted)}", hint=hint)


def _checked(key: Key, raw: object, origin: Origin, *, from_text: bool) -> Value:
    if key.is_secret and origin.layer is not Layer.ENVIRONMENT and raw not in ("", []):
        raise CallerError(f"{origin}: {key.dotted} is a secret", hint=f"set the variable {key.variable} instead")
    try:
        return value_of_text(key.wanted, raw) if from_text and isinstance(raw, str) else value_of_toml(key.wanted, raw)
    except ValueError as error:
        shown = "secret" if key.is_secret else seen(raw)
        near = get_close_matches(str(raw), choices(key.wanted), n=1)
        raise CallerError(
            f"{origin}: {key.dotted} is {shown}, but must be {type_name(key.wanted)}",
            hint=f"did you mean {near[0]}?" if near else f"the default is {to_toml(key.default)}",
        ) from error


def _built(given: Mapping[str, tuple[Value, Origin]]) -> Config:
    """The configuration; what a section refuses is told with where its values came from."""
    config = Config()
    for section in _sections():
        mine = {dotted.partition(".")[2]: found for dotted, found in given.items() if dotted.startswith(f"{section}.")}
        values: dict[str, Any] = {name: value for name, (value, _) in mine.items()}
        try:
            made: dict[str, Any] = {section: replace(getattr(config, section), **values)}
        except CallerError as error:
            named = {name for name in mine if re.search(rf"\b{name}\b", error.message)} or mine.keys()
            where = ", ".join(f"{section}.{name} from {mine[name][1]}" for name in mine if name in named)
            raise CallerError(f"[{section}] {error.message} ({where})", hint=error.hint) from error
        config = replace(config, **made)
    return config
