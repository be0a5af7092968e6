"""antiphon models: what models there are, fetching them, and checking what was fetched."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from antiphon.models.progress import SilentTransfer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rich.progress import Progress as RichDisplay
    from rich.progress import TaskID

    from antiphon.models.progress import Progress, Transfer
    from antiphon.models.store import ModelState, Store

PLAIN_STEP = 0.25  # without a terminal, a line at each quarter: alive, and short enough for a log


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("models", help="list, fetch and verify models")
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(dest="models_action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="every known model, and whether it is on this machine")
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    fetching = actions.add_parser("fetch", help="download models; without a name, those that a conversation needs")
    fetching.add_argument("names", nargs="*", metavar="NAME")
    fetching.add_argument("--all", action="store_true", help="every known model")
    verifying = actions.add_parser("verify", help="read every file again and compare its checksum")
    verifying.add_argument("names", nargs="*", metavar="NAME")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the command; 1 if verify found something missing or damaged.

    Raises:
        AntiphonError: an unknown name, or a download that failed.
    """
    from antiphon.models.store import Store

    store = Store()
    if arguments.models_action == "list":
        return _list(store, as_json=arguments.json)
    if arguments.models_action == "verify":
        return _verify(store, arguments.names)
    return _fetch(store, arguments.names, everything=arguments.all)


def _list(store: Store, *, as_json: bool) -> int:
    states = [store.state(name) for name in store.catalogue]
    if as_json:
        print(json.dumps([_as_json(state) for state in states], indent=2))
        return 0
    from rich.console import Console
    from rich.table import Table

    needed = needed_names(store)
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "role"):
        table.add_column(heading, no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    for heading in ("licence", "state"):
        table.add_column(heading, no_wrap=True)
    for state in states:
        model = state.model
        style = {"present": "green", "missing": "dim", "damaged": "red"}[state.condition]
        name = f"{model.name} *" if model.name in needed else model.name
        size = in_megabytes(model.size_bytes)
        table.add_row(name, model.role, size, model.licence, f"[{style}]{state.condition}[/{style}]")
    console = Console(soft_wrap=not sys.stdout.isatty(), highlight=False)
    console.print(table)
    console.print(f"\n* needed by a conversation; kept in {store.root}", soft_wrap=True)
    return 0


def _verify(store: Store, names: list[str]) -> int:
    states = store.verify(names)
    for state in states:
        print(f"{state.model.name}: {state.condition}")
        for problem in state.problems:
            print(f"  {problem}")
    broken = [state.model.name for state in states if state.condition != "present"]
    if broken:
        print(f"hint: antiphon models fetch {' '.join(broken)}")
    return 1 if broken else 0


def _fetch(store: Store, names: list[str], *, everything: bool) -> int:
    chosen = list(store.catalogue) if everything else names or needed_names(store)
    with progress_display() as progress:
        fetched = store.fetch(chosen, progress)
    for name in dict.fromkeys(chosen):
        print(f"{name}: {'fetched' if name in fetched else 'already here'}")
    print(f"in {store.root}")
    return 0


def needed_names(store: Store) -> list[str]:
    """The models of a conversation by the defaults, and whatever else of the catalogue the settings name.

    Raises:
        CallerError: the settings are wrong.
    """
    from antiphon.config import load
    from antiphon.models.catalogue import DEFAULT_NAMES

    configured = [name for name in load().config.models.names if name in store.catalogue]
    return list(dict.fromkeys((*DEFAULT_NAMES, *configured)))


@contextmanager
def progress_display() -> Iterator[Progress]:
    """One display for all transfers inside the block: bars on a terminal, lines anywhere else; on stderr."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield PlainProgress()
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as RichDisplay

    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(bar_width=20), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with RichDisplay(*columns, console=console) as display:
        yield BarProgress(display)


class BarProgress:
    """A bar for each transfer."""

    def __init__(self, display: RichDisplay) -> None:
        self._display = display

    def begin(self, name: str, total_bytes: int | None) -> Transfer:
        return _Bar(self._display, self._display.add_task(name, total=total_bytes))

    def note(self, text: str) -> None:
        self._display.console.print(text, markup=False)


class _Bar:
    def __init__(self, display: RichDisplay, task: TaskID) -> None:
        self._display = display
        self._task = task

    def advance(self, count_bytes: int) -> None:
        self._display.advance(self._task, count_bytes)

    def end(self) -> None:
        self._display.stop_task(self._task)


class PlainProgress:
    """A line when a transfer begins, and at each quarter of it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()  # lines of several threads stay whole

    def begin(self, name: str, total_bytes: int | None) -> Transfer:
        self.note(f"{name}: {in_megabytes(total_bytes) if total_bytes else 'of unknown size'}")
        return _Lines(self, name, total_bytes) if total_bytes else SilentTransfer()

    def note(self, text: str) -> None:
        with self._guard:
            print(text, file=sys.stderr, flush=True)


class _Lines:
    def __init__(self, progress: PlainProgress, name: str, total_bytes: int) -> None:
        self._progress = progress
        self._name = name
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self._next = PLAIN_STEP

    def advance(self, count_bytes: int) -> None:
        self._done_bytes += count_bytes
        share = self._done_bytes / self._total_bytes
        if share >= self._next:
            self._progress.note(f"{self._name}: {share:.0%}")
            self._next = share - share % PLAIN_STEP + PLAIN_STEP

    def end(self) -> None: ...


def in_megabytes(count_bytes: int) -> str:
    """A size for people."""
    return f"{count_bytes / 1e6:.1f} MB"


def _as_json(state: ModelState) -> dict[str, object]:
    from antiphon.models.catalogue import DEFAULT_NAMES

    model = state.model
    return {
        "name": model.name,
        "role": model.role,
        "size_bytes": model.size_bytes,
        "licence": model.licence,
        "homepage": model.homepage,
        "default": model.name in DEFAULT_NAMES,
        "state": state.condition,
        "problems": list(state.problems),
        "folder": str(state.folder),
    }
