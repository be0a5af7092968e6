"""What a model writes in, the same without what it thinks aloud out, as it streams.

Thoughts stand between tags such as `<think>` and `</think>`, or in a channel that is not the final one:
`<|channel|>analysis<|message|>...<|end|>`. How the text was cut into pieces makes no difference, and no more is held
back than what may be the beginning of a tag. Threads: pure, one reply at a time.
What it does not know: markup, and whether the thoughts were any good.
"""

from __future__ import annotations

from enum import Enum, auto

_NAMES = ("think", "thinking", "thought", "reasoning", "reflection")
_OPENERS = frozenset([*(f"<{name}>" for name in _NAMES), "[think]", "◁think▷", "<|channel>"])
_CLOSERS = frozenset([*(f"</{name}>" for name in _NAMES), "[/think]", "◁/think▷", "<channel|>"])
_CHANNEL, _MESSAGE = "<|channel|>", "<|message|>"
_ENDS = frozenset(["<|end|>", "<|return|>", "<|call|>"])
_HEADS = frozenset([_CHANNEL, "<|start|>"])
_TAGS = _OPENERS | _CLOSERS | _ENDS | _HEADS | {_MESSAGE}
_PREFIXES = frozenset(tag[:end] for tag in _TAGS for end in range(1, len(tag) + 1))
_FINAL = "final"
_LONGEST_HEAD = 200  # characters of a channel's head that are looked at; a longer one is no final channel's


class _Place(Enum):
    REPLY = auto()
    THOUGHT = auto()  # up to a closing tag
    HEAD = auto()  # between `<|start|>` or `<|channel|>` and `<|message|>`
    CHANNEL = auto()  # inside a message that is not the final one
    BETWEEN = auto()  # after such a message: another head or the reply may follow


class ReasoningFilter:
    """For one reply. With `starts_inside` it begins in a thought that the prompt has opened."""

    def __init__(self, starts_inside: bool = False) -> None:
        self._place = _Place.THOUGHT if starts_inside else _Place.REPLY
        self._held = ""  # may be the beginning of a tag
        self._head = ""
        self._trims = starts_inside  # white space behind a thought is not the reply's

    def feed(self, piece: str) -> str:
        """Take what the model wrote next; return what of it is known to be the reply's."""
        said: list[str] = []
        for char in piece:
            self._held += char
            while self._held and self._held.lower() not in _PREFIXES:
                said.append(self._pass(self._held[0]))
                self._held = self._held[1:]
            if self._held.lower() in _TAGS:
                self._turn(self._held.lower())
                self._held = ""
        return "".join(said)

    def finish(self) -> str:
        """The reply is complete: return what was held back of it."""
        said = "".join(map(self._pass, self._held))
        self._held = ""
        return said

    def _pass(self, char: str) -> str:
        if self._place is _Place.HEAD:
            self._head = (self._head + char)[:_LONGEST_HEAD]
        if self._place not in {_Place.REPLY, _Place.BETWEEN} or (self._trims and char.isspace()):
            return ""
        self._trims, self._place = False, _Place.REPLY
        return char

    def _turn(self, tag: str) -> None:
        """Go where `tag` leads; the tag itself is never said."""
        if self._place is _Place.THOUGHT:
            if tag in _CLOSERS:
                self._place, self._trims = _Place.REPLY, True
        elif tag in _OPENERS:
            if self._place is not _Place.CHANNEL:
                self._place = _Place.THOUGHT
        elif tag in _HEADS:
            self._place, self._head = _Place.HEAD, ""
        elif tag == _MESSAGE:
            self._open_message()
        elif tag in _ENDS:
            self._place, self._trims = _Place.BETWEEN, True

    def _open_message(self) -> None:
        if self._place is not _Place.HEAD:
            return
        head = self._head.strip().lower()
        is_reply = head.startswith(_FINAL) or head in {"", "assistant"}
        self._place, self._trims = (_Place.REPLY, True) if is_reply else (_Place.CHANNEL, False)
