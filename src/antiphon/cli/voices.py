"""antiphon voices: every voice that can be chosen, and what it takes to choose it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from antiphon.models.store import Store

State = Literal["here", "to be fetched", "damaged", "missing"]

STATES: dict[str, State] = {"present": "here", "missing": "to be fetched", "damaged": "damaged"}  # of the catalogue's
HIBARI_LICENCE = "Apache-2.0"
PIPER_LICENCE = "GPL-3.0-or-later"  # of the engine: a voice's own stands beside it
UNSTATED = "see its model card"
ACCENTS = {  # of the catalogue's voices
    "hibari-heart": "en-US, female",
    "hibari-emma": "en-GB, female",
    "hibari-fenrir": "en-US, male",
    "hibari-fable": "en-GB, male",
    "hibari-kore": "en-US, female",
    "piper-ljspeech": "en-US, female",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """One line of the list."""

    name: str  # as models.voice and Agent(voice=...) take it
    speaks: str
    engine: Literal["hibari", "piper"]
    engine_licence: str
    licence: str  # of the voice itself
    size_bytes: int
    state: State
    is_configured: bool
    hint: str  # what is left to do before it can speak


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    from antiphon.cli.config import add_flags

    parser = subparsers.add_parser("voices", help="list the voices that can be chosen")
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(dest="voices_action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="every voice, its language and licence, and whether it is here")
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_flags(listing)


def run(arguments: argparse.Namespace) -> int:
    """Carry out the command.

    Raises:
        CallerError: the configuration is wrong.
    """
    from antiphon.cli.config import resolve
    from antiphon.models.store import Store

    store = Store()
    found = voices(store, configured=resolve(arguments).config.models.voice)
    if arguments.json:
        print(json.dumps([asdict(voice) for voice in found], indent=2))
    else:
        _show(found, store)
    return 0


def voices(store: Store, *, configured: str) -> list[Voice]:
    """Every voice of the catalogue, every Piper voice in the cache's folder for them, and the configured one."""
    from antiphon.core.errors import CallerError
    from antiphon.speak.voices import PIPER, own_piper_voices, piper_file, voice_model

    chosen, file = "", None
    if configured.startswith(PIPER):
        file = piper_file(configured, store)
    else:
        try:
            chosen = voice_model(configured, store.catalogue).name
        except CallerError:
            chosen = ""  # said below the table; the list is what helps whoever mistyped it
    names = [model.name for model in store.catalogue.values() if model.role == "voice"]
    found = [_of_catalogue(name, store, is_configured=name == chosen) for name in names]
    own = own_piper_voices(store)
    found += [_of_file(path, f"{PIPER}{path.stem}", is_configured=path == file) for path in own]
    if file is not None and file not in own:
        found.append(_of_file(file, configured, is_configured=True))
    return found


def _of_catalogue(name: str, store: Store, *, is_configured: bool) -> Voice:
    from antiphon.speak.voices import PIPER_IN_CATALOGUE

    state = store.state(name)
    is_piper = name.startswith(PIPER_IN_CATALOGUE)
    here = STATES[state.condition]
    hints = [] if here == "here" else [f"antiphon models fetch {name}"]
    if is_piper:
        hints += _extra_hint()
    return Voice(
        name=name,
        speaks=ACCENTS.get(name, "en"),
        engine="piper" if is_piper else "hibari",
        engine_licence=PIPER_LICENCE if is_piper else HIBARI_LICENCE,
        licence=state.model.licence,
        size_bytes=state.model.size_bytes,
        state=here,
        is_configured=is_configured,
        hint="; ".join(hints),
    )


def _of_file(path: Path, name: str, *, is_configured: bool) -> Voice:
    is_here = path.is_file() and path.with_name(f"{path.name}.json").is_file()
    hints = [] if is_here else [f"put {path.name} and {path.name}.json into {path.parent}"]
    return Voice(
        name=name,
        speaks=_language(path),
        engine="piper",
        engine_licence=PIPER_LICENCE,
        licence=UNSTATED,
        size_bytes=path.stat().st_size if path.is_file() else 0,
        state="here" if is_here else "missing",
        is_configured=is_configured,
        hint="; ".join([*hints, *_extra_hint()]),
    )


def _language(path: Path) -> str:
    """As the voice's own settings say it; "?" where they do not."""
    try:
        settings = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
        return str(settings["language"]["code"]).replace("_", "-")
    except (OSError, ValueError, KeyError, TypeError):
        return "?"


def _extra_hint() -> list[str]:
    from importlib.util import find_spec

    from antiphon.speak.voices import INSTALL_PIPER

    return [] if find_spec("piper") else [INSTALL_PIPER]


def _show(found: list[Voice], store: Store) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from antiphon.cli.config import UNBOUND
    from antiphon.cli.models import in_megabytes
    from antiphon.speak.voices import INSTALL_PIPER, VOICE_FOLDER

    table = Table(box=None, pad_edge=False)
    for heading in ("voice", "speaks", "engine"):
        table.add_column(heading, overflow="fold")
    table.add_column("licence")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for voice in found:
        style = {"here": "green", "to be fetched": "dim"}.get(voice.state, "red")
        name = f"{voice.name} *" if voice.is_configured else voice.name
        licence = voice.licence
        if voice.engine == "piper":
            licence += f"; engine {voice.engine_licence}"
        size = in_megabytes(voice.size_bytes) if voice.size_bytes else ""
        table.add_row(Text(name), voice.speaks, voice.engine, licence, size, Text(voice.state, style))
    Console(width=None if sys.stdout.isatty() else UNBOUND, highlight=False, markup=False).print(table)
    print()
    if not any(voice.is_configured for voice in found):
        print("the configured voice is none of these: `antiphon config` shows it")
    print('* configured; choose another with models.voice = "NAME", or Agent(voice="NAME") for one agent')
    if any(voice.state == "to be fetched" for voice in found):
        print("hint: antiphon models fetch NAME brings a voice that is to be fetched")
    if _extra_hint():
        print(f"hint: {INSTALL_PIPER} lets Piper's voices speak")
    for voice in found:
        if voice.state == "missing":
            print(f"hint: {voice.name}: {voice.hint}")
    folder = store.root / VOICE_FOLDER
    print(f'any other Piper voice: models.voice = "piper:/path/of/it.onnx", or its two files in {folder}')
