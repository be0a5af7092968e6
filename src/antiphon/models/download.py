"""A URL and a sha256 -> a file with exactly that content, or no file.

Bytes collect in `NAME.part`; only what has the right sha256 gets the name itself. An interrupted download goes on
where it stopped if the server can do that, and the sha256 of the whole judges the joint. Threads: blocks on network
and disk; several downloads may run at once, each to a name of its own.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError, PeerError
from antiphon.models.transport import redact, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from antiphon.models.progress import Progress, Transfer
    from antiphon.models.transport import Transport

CHUNK_BYTES = 256 * 1024
PAUSES_S = (0.5, 2.0, 5.0)  # before the second, third and fourth try; a dropped connection is back within seconds


class Stopped(Exception):  # noqa: N818 - no error: somebody asked for it
    """The fetch was told to stop; nobody waits for this result any more."""


def free_bytes_of(folder: Path) -> int:
    """The bytes that may still be written to the file system of `folder`."""
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloader:
    """Brings files from the network to one file system."""

    transport: Transport
    progress: Progress
    free_bytes: Callable[[Path], int] = free_bytes_of
    pause: Callable[[float], None] = time.sleep
    stop: threading.Event = field(default_factory=threading.Event)

    def download(self, url: str, target: Path, *, name: str, sha256: str, size_bytes: int | None = None) -> None:
        """Make `target` the content of `url`; without a sha256 to expect, whatever arrives whole is taken.

        Raises:
            PeerError: the server cannot be reached, or what it sends is not the file.
            MachineError: no room, or the folder cannot be written to.
            Stopped: the stop event was set; what has come stays for the next time.
        """
        part = target.with_name(target.name + ".part")
        for earlier in (target, part):  # a process that ended between the last byte and its use leaves one of them
            if sha256 and earlier.is_file() and earlier.stat().st_size == size_bytes and hash_file(earlier) == sha256:
                earlier.replace(target)
                return
        shown = _Shown(self.progress, name)
        try:
            if not sha256:  # nothing could judge what was joined to an older beginning
                part.unlink(missing_ok=True)
            for attempt in range(len(PAUSES_S) + 1):
                resumed = part.exists() and part.stat().st_size > 0
                try:
                    digest = self._receive(url, part, shown, size_bytes)
                except PeerError as error:
                    # a server that has sent something will likely be back, one never reached will not
                    may_return = error.retryable or shown.has_begun
                    if not may_return or attempt == len(PAUSES_S):
                        raise
                    self.pause(PAUSES_S[attempt])
                    continue
                if sha256 in {"", digest}:
                    part.replace(target)
                    return
                part.unlink()
                if not resumed:  # what was joined to an older beginning deserves a try from the start
                    break
            raise PeerError(f"{redact(url)} has not the expected content: sha256 {digest}, expected {sha256}")
        except OSError as error:
            raise write_error(error, target.parent) from error
        finally:
            shown.end()

    def _receive(self, url: str, part: Path, shown: _Shown, size_bytes: int | None) -> str:
        """Bring `part` to its full length and return its sha256."""
        start_bytes = part.stat().st_size if part.exists() else 0
        if size_bytes is not None and start_bytes >= size_bytes:
            start_bytes = 0
        with self.transport.open(url, start_bytes=start_bytes) as response:
            if response.status != 206:
                start_bytes = 0
            length = response.headers.get("Content-Length", "")
            total_bytes = start_bytes + int(length) if length.isdecimal() else size_bytes
            if total_bytes is not None:
                require_space(part.parent, total_bytes - start_bytes, self.free_bytes(part.parent))
            shown.begin(total_bytes, start_bytes)
            with part.open("r+b" if start_bytes else "wb") as file:
                digest = hashlib.sha256()
                for chunk in read_chunks(file, self.stop) if start_bytes else ():
                    digest.update(chunk)
                for chunk in self._chunks(url, response):
                    file.write(chunk)
                    digest.update(chunk)
                    shown.advance(len(chunk))
                sync(file)
        received = part.stat().st_size
        if total_bytes is not None and received < total_bytes:
            raise PeerError(f"{redact(url)} broke off after {received} of {total_bytes} bytes", retryable=True)
        return digest.hexdigest()

    def _chunks(self, url: str, response: BinaryIO) -> Iterator[bytes]:
        """What the server sends; its failures become PeerErrors here, so that the disk's keep their own name."""
        while True:
            if self.stop.is_set():
                raise Stopped
            try:
                chunk = response.read(CHUNK_BYTES)
            except (OSError, HTTPException) as error:
                raise unreachable(url, error) from None
            if not chunk:
                return
            yield chunk


class _Shown:
    """One transfer on the display, however many tries it takes."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._name = name
        self._transfer: Transfer | None = None
        self._done_bytes = 0

    @property
    def has_begun(self) -> bool:
        return self._transfer is not None

    def begin(self, total_bytes: int | None, done_bytes: int) -> None:
        if self._transfer is None:
            self._transfer = self._progress.begin(self._name, total_bytes)
        self.advance(done_bytes - self._done_bytes)

    def advance(self, count_bytes: int) -> None:
        if self._transfer is not None and count_bytes:
            self._transfer.advance(count_bytes)
            self._done_bytes += count_bytes

    def end(self) -> None:
        if self._transfer is not None:
            self._transfer.end()


def install(chunks: Iterable[bytes], target: Path, *, size_bytes: int, sha256: str) -> None:
    """Make `target` of `chunks` in one step, if together they are the file that is expected.

    Raises:
        PeerError: they are not.
        OSError: the folder cannot be written to.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    digest = hashlib.sha256()
    count = 0
    try:
        with draft.open("wb") as file:
            for chunk in chunks:
                count += len(chunk)
                if count > size_bytes:
                    break
                digest.update(chunk)
                file.write(chunk)
            sync(file)
        if count != size_bytes:
            relation = "more than" if count > size_bytes else f"{count} bytes of"
            raise PeerError(f"{target.name} has not the expected size: {relation} {size_bytes} bytes")
        if digest.hexdigest() != sha256:
            raise PeerError(f"{target.name} has a wrong checksum: sha256 {digest.hexdigest()}, expected {sha256}")
        draft.replace(target)
        sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def read_chunks(file: BinaryIO, stop: threading.Event | None = None) -> Iterator[bytes]:
    """What is left of `file`, in pieces.

    Raises:
        Stopped: the stop event was set.
    """
    while chunk := file.read(CHUNK_BYTES):
        if stop is not None and stop.is_set():
            raise Stopped
        yield chunk


def hash_file(path: Path) -> str:
    """The file's sha256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_space(folder: Path, needed_bytes: int, free_bytes: int) -> None:
    """Refuse before a write that cannot end well.

    Raises:
        MachineError: `needed_bytes` do not fit.
    """
    if needed_bytes > free_bytes:
        raise MachineError(
            f"not enough room in {folder}: {needed_bytes} bytes needed, {free_bytes} free",
            hint="make room there, or move the cache with ANTIPHON_CACHE=/another/folder",
        )


def write_error(error: OSError, folder: Path) -> MachineError:
    """What to tell about a failed write."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return MachineError(
            f"no room left in {folder}: {error.strerror}",
            hint="make room there, or move the cache with ANTIPHON_CACHE=/another/folder",
        )
    return MachineError(
        f"cannot write to {folder}: {error.strerror or error}",
        hint="make the folder writable, or move the cache with ANTIPHON_CACHE=/another/folder",
    )


def sync(file: BinaryIO) -> None:
    """Put what was written where a power cut cannot take it."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """The same for a rename; where folders cannot be synced, the system orders them itself."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
