"""The bytes of a server's event stream in, split anywhere -> the events that are whole out.

An event is told by its data: the text of its `data:` lines, joined by line ends. Comments and other fields are left
out, save one: some servers tell of an error in a field of that name, and its value counts as data. Bytes that are no
UTF-8 are left out. Threads: pure; one stream has one reader.
"""

from __future__ import annotations

import codecs
import re

from antiphon.core.errors import PeerError

MOST_CHARS = 1 << 20  # of one event; a token's is some 300, a tool's arguments in one go perhaps 10 000

_LINE_END = re.compile(r"\r\n|\n|\r")
_BYTE_ORDER_MARK = "\ufeff"


class EventStream:
    """Reads one response."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._at_start = True
        self._after_return = False  # a line feed that comes next belongs to the line end before
        self._line: list[str] = []  # the parts of the line that has not ended
        self._data: list[str] = []  # of the event that has not ended
        self._held_chars = 0

    def feed(self, chunk: bytes) -> list[str]:
        """The data of each event that ends in `chunk`.

        Raises:
            PeerError: an event is longer than any can be; what had come of it is forgotten.
        """
        text = self._decoder.decode(chunk)
        if not text:
            return []
        if self._at_start:
            self._at_start = False
            text = text.removeprefix(_BYTE_ORDER_MARK)
        if self._after_return and text.startswith("\n"):
            text = text[1:]
        self._after_return = text.endswith("\r")
        *ended, rest = _LINE_END.split(text)
        events: list[str] = []
        for part in ended:
            self._hold(part)
            self._end_line(events)
        self._hold(rest)
        return events

    def finish(self) -> list[str]:
        """The event that the stream's end cut off or left without its empty line, if any data of it came."""
        events: list[str] = []
        self._end_line(events)
        self._end_line(events)
        return events

    def _hold(self, part: str) -> None:
        if not part:
            return
        self._line.append(part)
        self._held_chars += len(part)
        if self._held_chars > MOST_CHARS:
            self._line, self._data, self._held_chars = [], [], 0
            raise PeerError(f"the language model's server sent an event of more than {MOST_CHARS} characters")

    def _end_line(self, events: list[str]) -> None:
        line = "".join(self._line)
        self._line = []
        if line:
            name, _, value = line.partition(":")
            if name in {"data", "error"}:
                self._data.append(value.removeprefix(" "))
            else:
                self._held_chars -= len(line)
            return
        if self._data:
            events.append("\n".join(self._data))
        self._data, self._held_chars = [], 0


class SingleEvent:
    """Reads a response that is no stream but one event, as a server sends it that knows no streams."""

    def __init__(self) -> None:
        self._read = bytearray()

    def feed(self, chunk: bytes) -> list[str]:
        """Nothing yet.

        Raises:
            PeerError: it is longer than any event can be.
        """
        self._read += chunk
        if len(self._read) > MOST_CHARS:
            self._read.clear()
            raise PeerError(f"the language model's server sent a reply of more than {MOST_CHARS} bytes")
        return []

    def finish(self) -> list[str]:
        """The event."""
        return [self._read.decode("utf-8", "ignore")]
