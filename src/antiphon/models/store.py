"""A model's name -> its files on this machine, checked; and the fetching of those that are missing.

    ROOT/models/NAME/FILE       the files, each renamed into place only once its sha256 was right
    ROOT/models/NAME/LICENCE.txt, NOTICE.txt
    ROOT/models/NAME/verified.json   which files were verified, with size and time of change: what a start checks
    ROOT/downloads/             what is on its way
    ROOT/lock                   held while files are changed

ROOT is the user's cache folder, or ANTIPHON_CACHE. A folder that was copied from elsewhere, or is read-only, is as
good as a fetched one: files without a valid record are hashed, and the record is written if it can be.
Threads: blocks on disk and network.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import platformdirs

from antiphon.core.errors import CallerError, MachineError
from antiphon.models.catalogue import CATALOGUE, DEFAULT_NAMES, Catalogue, find
from antiphon.models.download import Downloader, free_bytes_of, hash_file, write_error
from antiphon.models.fetch import Fetch, Want
from antiphon.models.lock import exclusive
from antiphon.models.package_index import PackageIndex
from antiphon.models.progress import SilentProgress
from antiphon.models.source import HUB_URL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from antiphon.models.catalogue import Model, ModelFile
    from antiphon.models.progress import Progress

Condition: TypeAlias = Literal["present", "missing", "damaged"]
RECORD_NAME = "verified.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """How a model stands in the store."""

    model: Model
    condition: Condition
    folder: Path
    problems: tuple[str, ...] = ()  # one for each file that is missing or damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """One file's condition, and the problem in words."""

    file: ModelFile
    condition: Condition
    problem: str = ""


@dataclass(slots=True)
class _Installed:
    """What a fetch has put in place, by model; written to from several threads."""

    files: dict[str, list[ModelFile]] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def add(self, want: Want) -> None:
        with self.guard:
            self.files.setdefault(want.model.name, []).append(want.file)


def default_root(environ: Mapping[str, str] | None = None) -> Path:
    """Where models lie unless told otherwise."""
    moved = (os.environ if environ is None else environ).get("ANTIPHON_CACHE")
    return Path(moved).expanduser().absolute() if moved else platformdirs.user_cache_path("antiphon", appauthor=False)


class Store:
    """The models of this machine."""

    def __init__(
        self,
        root: Path | None = None,
        *,
        catalogue: Catalogue = CATALOGUE,
        index: PackageIndex | None = None,
        free_bytes: Callable[[Path], int] = free_bytes_of,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.root = default_root() if root is None else root
        self.catalogue = catalogue
        self._free_bytes = free_bytes
        self._pause = pause
        self._index = index  # made when first needed: a start reads no configuration of pip's

    def folder(self, name: str) -> Path:
        """Where the model's files lie, or will."""
        return self.root / "models" / find(name, self.catalogue).name

    def locate(self, name: str) -> Path:
        """The folder of a model whose files are all there.

        Raises:
            CallerError: no model has this name.
            MachineError: the model is missing or damaged.
        """
        state = self.state(name)
        if state.condition != "present":
            what = "is not on this machine" if state.condition == "missing" else "is damaged"
            raise MachineError(
                f"the model {name} {what} ({'; '.join(state.problems)} in {state.folder})",
                hint=f"antiphon models fetch {name}",
            )
        return state.folder

    def file(self, name: str) -> Path:
        """The one file of a single-file model.

        Raises:
            CallerError: no model has this name, or it has several files.
            MachineError: the model is missing or damaged.
        """
        files = find(name, self.catalogue).files
        if len(files) != 1:
            raise CallerError(f"the model {name} is a folder of {len(files)} files", hint="use its folder")
        return self.locate(name) / files[0].name

    def state(self, name: str, *, rehash: bool = False) -> ModelState:
        """How the model stands; without `rehash`, a recorded verification saves reading the file."""
        model = find(name, self.catalogue)
        folder = self.folder(name)
        record = {} if rehash else _read_record(folder)
        checked = [_check(folder / file.name, file, record) for file in model.files]
        sound = [each.file for each in checked if each.condition == "present"]
        if folder.is_dir() and (rehash or _record_of(folder, sound) != record):
            _write_record(folder, sound)
        conditions = {each.condition for each in checked}
        # both kinds of trouble are mended by a fetch; a model of which nothing is there is plainly missing
        condition: Condition = "damaged" if "damaged" in conditions or len(conditions) > 1 else conditions.pop()
        problems = tuple(each.problem for each in checked if each.problem)
        return ModelState(model=model, condition=condition, folder=folder, problems=problems)

    def verify(self, names: Iterable[str] = ()) -> list[ModelState]:
        """Hash every file of the named models; by default of the default ones and all others that are here.

        Raises:
            CallerError: no model has such a name.
        """
        chosen = list(names) or [name for name in self.catalogue if name in DEFAULT_NAMES or self.folder(name).is_dir()]
        return [self.state(name, rehash=True) for name in dict.fromkeys(chosen)]

    def fetch(self, names: Sequence[str] = DEFAULT_NAMES, progress: Progress | None = None) -> tuple[str, ...]:
        """Make the named models present; return those that were not before.

        Another process that fetches into the same root is waited for, and what it brought is not brought again.

        Raises:
            CallerError: no model has such a name; nothing was fetched.
            PeerError: no source delivers some file.
            MachineError: no room, or the root cannot be written to.
        """
        models = [find(name, self.catalogue) for name in dict.fromkeys(names)]
        progress = SilentProgress() if progress is None else progress
        if all(self.state(model.name).condition == "present" and self._has_papers(model) for model in models):
            return ()  # a cache that is complete may be read-only
        try:
            downloads = self.root / "downloads"
            downloads.mkdir(parents=True, exist_ok=True)
            with exclusive(self.root / "lock", on_wait=lambda: progress.note("another fetch is running; waiting")):
                fetched = self._fetch_locked(models, downloads, progress)
                shutil.rmtree(downloads, ignore_errors=True)
        except OSError as error:
            raise write_error(error, self.root) from error
        return fetched

    def _fetch_locked(self, models: Sequence[Model], downloads: Path, progress: Progress) -> tuple[str, ...]:
        downloads.mkdir(exist_ok=True)  # whoever held the lock before us has cleared it away
        wants = []
        for model in models:
            folder = self.folder(model.name)
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in folder.glob(".*.part"):
                leftover.unlink()
            record = _read_record(folder)
            for file in model.files:
                target = folder / file.name
                if _check(target, file, record).condition != "present":
                    wants.append(Want(model=model, file=file, target=target))
        for model in models:
            if not any(want.model is model for want in wants):
                _write_papers(model, self.folder(model.name))
        if not wants:
            return ()
        installed = _Installed()
        index = PackageIndex() if self._index is None else self._index
        downloader = Downloader(
            transport=index.transport, progress=progress, free_bytes=self._free_bytes, pause=self._pause
        )
        hub_url = os.environ.get("HF_ENDPOINT") or HUB_URL
        try:
            fetch = Fetch(index=index, downloader=downloader, folder=downloads, hub_url=hub_url)
            fetch.run(wants, installed.add)
        finally:
            for name, files in installed.files.items():
                folder = self.folder(name)
                _write_papers(self.catalogue[name], folder)
                _write_record(folder, files, base=_read_record(folder))
        return tuple(dict.fromkeys(want.model.name for want in wants))

    def _has_any_file(self, model: Model) -> bool:
        return any((self.folder(model.name) / file.name).exists() for file in model.files)

    def _has_papers(self, model: Model) -> bool:
        return not model.read_licence() or (self.folder(model.name) / "LICENCE.txt").exists()


Record: TypeAlias = "dict[str, dict[str, str | int]]"


def _check(path: Path, file: ModelFile, record: Record) -> _Checked:
    """The condition of one file: by its record if that still fits, else by its content."""
    try:
        status = path.stat()
        if status.st_size != file.size_bytes:
            problem = f"{file.name} has {status.st_size} bytes of {file.size_bytes}"
            return _Checked(file=file, condition="damaged", problem=problem)
        if record.get(file.name) == _entry(path, file) or hash_file(path) == file.sha256:
            return _Checked(file=file, condition="present")
    except FileNotFoundError:
        return _Checked(file=file, condition="missing", problem=f"{file.name} is missing")
    except OSError as error:
        problem = f"{file.name} cannot be read: {error.strerror}"
        return _Checked(file=file, condition="damaged", problem=problem)
    return _Checked(file=file, condition="damaged", problem=f"{file.name} has a wrong checksum")


def _entry(path: Path, file: ModelFile) -> dict[str, str | int]:
    # whole seconds, since archives and images that carry caches around keep no finer time
    return {"sha256": file.sha256, "size_bytes": file.size_bytes, "changed_s": int(path.stat().st_mtime)}


def _record_of(folder: Path, files: Iterable[ModelFile]) -> Record:
    return {file.name: _entry(folder / file.name, file) for file in files}


def _read_record(folder: Path) -> Record:
    try:
        record = json.loads((folder / RECORD_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(folder: Path, files: Iterable[ModelFile], *, base: Record | None = None) -> None:
    """Remember what was verified; a folder that cannot be written to is verified again next time."""
    draft = folder / f".{RECORD_NAME}.{os.getpid()}.part"
    with contextlib.suppress(OSError):
        record = {**(base or {}), **_record_of(folder, files)}
        draft.write_text(json.dumps(record, indent=1), encoding="utf-8")
        draft.replace(folder / RECORD_NAME)


def _write_papers(model: Model, folder: Path) -> None:
    """The licence and whom to credit, beside the files that they are about."""
    licence = model.read_licence()
    if licence:
        (folder / "LICENCE.txt").write_text(licence, encoding="utf-8")
    notice = f"{model.name} ({model.role})\n{model.homepage}\nLicence: {model.licence}\n\n{model.notice}"
    (folder / "NOTICE.txt").write_text(notice, encoding="utf-8")
