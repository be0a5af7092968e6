"""A reply's characters in, as a model writes Markdown and HTML; out the characters that stand for words.

Each character comes out with how much of the written text lies behind it. Lines lose their headings', lists', quotes'
and tables' marks and end in a stop where they had only a line's end; links and pictures lose their targets; tags
and code in fences are left out. Marks of emphasis stay, for only a whole word shows whether a star is one.

Held back is what may still be markup: the marks at the beginning of a line, a link's target, a tag. What never
closes is let go at the line's end, or when it is too long. Threads: pure, one reply at a time.
What it does not know: words, figures and languages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_LEAD = 120
_LONGEST_TARGET = 2000
_LONGEST_TAG = 300
_LONGEST_COMMENT = 4000
_LONGEST_INFO = 120  # behind a fence
_LONGEST_SPACE = 200  # more of it in a row is let go on its own

_LEAD_MARKS = frozenset(" \t>#*-+=_|:•‣◦▪●–~`")
_BULLET = re.compile(r"[-*+–][ \t]+|[•‣◦▪●][ \t]*")
_HEADING = re.compile(r"#{1,6}[ \t]+")
_COUNTED = re.compile(r"(\d{1,3})[.)][ \t]+", re.ASCII)
_BAR = re.compile(r"\|[ \t]*")
_QUOTES = re.compile(r"(?:[ \t]*>)+[ \t]*")
_STOPS = frozenset(".,;:!?…。！？，；：、।॥۔؟،؛።፣")
_BACKDROP = frozenset("*_~`\"'”’»)]")  # may stand behind a stop
_TITLE_OPENERS = frozenset("\"'(")

_KNOWN_TAGS = (
    "a abbr article aside audio b blockquote br break button center cite code dd del details div dl dt em emphasis "
    "figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li "
    "main mark nav ol p phoneme pre prosody q s samp section small source span speak strike strong style sub "
    "summary sup table tbody td tfoot th thead title tr u ul var video voice wbr"
)
_TAG_NAMES = frozenset(_KNOWN_TAGS.split())
_TAG_PREFIXES = frozenset(name[:end] for name in _TAG_NAMES for end in range(len(name) + 1))
_STOPPING = frozenset(["li", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "dt", "dd", "summary"])  # closed, end in a stop
_PAUSING = frozenset(["td", "th"])
_BARE = frozenset("biqsu")  # written without attributes; with a space behind it, a name in a comparison
_BREAKING = frozenset(["br", "p", "div", "hr", "tr", "ul", "ol", "table"])


class Markup:
    """For one reply. `code_phrase` is what stands for code in a fence; nothing if it is empty."""

    def __init__(self, code_phrase: str = "") -> None:
        self._code_phrase = code_phrase
        self._state: Callable[[str], None] = self._lead
        self._end = 0  # of the written text, the newest character included
        self._held = ""  # all that lies just before the newest character and is not decided
        self._out: list[tuple[str, int]] = []
        self._space: list[tuple[str, int]] = []  # waits for what follows, for a stop may have to come before it
        self._last = ""  # solid character that came out
        self._last_end = 0
        self._stop_due = ""  # what ends the line if nothing else does
        self._line_has_text = False
        self._bar_due = False  # a table's cell may have ended
        self._brackets = 0  # open ones
        self._depth = 0  # of parentheses in a target
        self._closer = ""
        self._fence = ""
        self._tag_name = ""

    def take(self, char: str) -> list[tuple[str, int]]:
        """The next written character in; what is decided with it out, each character with its end."""
        self._end += 1
        self._state(char)
        return self._drain()

    def finish(self) -> list[tuple[str, int]]:
        """What was held back."""
        self._end += 1  # as if one more had come, for what is held lies before the newest
        if self._state == self._lead and self._held.strip() and not any(map(str.isalnum, self._held)):
            self._held = ""
        if self._state not in {self._info, self._code, self._comment}:
            self._release()
        self._out += self._space
        self._space = []
        return self._drain()

    def _drain(self) -> list[tuple[str, int]]:
        out, self._out = self._out, []
        return out

    # What comes out

    def _put(self, char: str, end: int) -> None:
        if char.isspace():
            if self._bar_due:
                return
            self._space.append((char, end))
            if len(self._space) > _LONGEST_SPACE:
                self._out += self._space
                self._space = []
            return
        if self._bar_due:
            self._bar_due = False
            self._stop(",")
        self._out += self._space
        self._out.append((char, end))
        self._space = []
        self._last_end = end
        if char not in _BACKDROP:
            self._last, self._line_has_text = char, True

    def _stop(self, mark: str) -> None:
        """`mark` behind the last word of the line unless one is there; it counts as part of that word."""
        if self._line_has_text and self._last not in _STOPS:
            self._out.append((mark, self._last_end))
            self._last = mark

    def _release(self) -> None:
        """Let go of what was held back, as plain text."""
        start = self._end - len(self._held)
        for place, char in enumerate(self._held):
            self._put(char, start + place)
        self._held = ""

    def _break(self) -> None:
        """The line is over; the newest character, its end, comes out as white space."""
        if self._bar_due:
            self._bar_due, self._space = False, []
        if self._stop_due:
            self._stop(self._stop_due)
        self._put("\n", self._end)
        self._stop_due, self._line_has_text, self._brackets = "", False, 0
        self._state = self._lead

    # Where a line begins

    def _lead(self, char: str) -> None:
        if char == "\n":
            self._end_lead()
        elif len(self._held) < _LONGEST_LEAD and self._may_lead(char):
            self._held += char
        else:
            lead, self._held = self._held, ""
            self._open_line(lead, char)

    def _may_lead(self, char: str) -> bool:
        if char in _LEAD_MARKS:
            return True
        count = self._held.strip(" \t>")
        if char in ".)":
            return count.isdecimal()
        return "0" <= char <= "9" and len(count) < 3 and (not count or (count + self._held[-1]).isdecimal())

    def _end_lead(self) -> None:
        """A line without words: white space stays, a rule or the line under a heading goes."""
        lead = self._held.strip()
        if lead.startswith(("```", "~~~")):
            self._open_fence(lead)
            return
        if not lead or any(map(str.isdigit, lead)):
            self._release()
        self._held = ""
        self._break()

    def _open_line(self, lead: str, char: str) -> None:
        """`char` is the line's first that is no mark of it."""
        start = self._end - len(lead)
        fence = lead.strip()
        if fence.startswith(("```", "~~~")):
            self._held, self._fence, self._state = lead, fence[:3], self._info
            self._info(char)
            return
        at = self._read_lead(lead, char, start)
        self._state = self._text
        for place in range(at, len(lead)):
            self._put(lead[place], start + place)
        self._text(char)

    def _read_lead(self, lead: str, char: str, start: int) -> int:
        """How much of `lead` is a line's mark; says a list's number."""
        at = 0
        if (quotes := _QUOTES.match(lead)) and not (quotes.end() == len(lead) and lead[-1] == ">" and char.isdigit()):
            at = quotes.end()
        indent = len(lead) - len(lead[at:].lstrip(" \t"))
        if counted := _COUNTED.match(lead, indent):
            for place in range(*counted.span(1)):
                self._put(lead[place], start + place)
            self._stop(",")
            self._put(" ", start + counted.end() - 1)
            self._stop_due = "."
            return counted.end()
        if mark := _BULLET.match(lead, indent) or _HEADING.match(lead, indent):
            self._stop_due = "."
            return mark.end()
        if bar := _BAR.match(lead, indent):
            self._stop_due = "."
            return bar.end()
        return at

    # Within a line

    def _text(self, char: str) -> None:
        if char == "\n":
            self._break()
        elif char in "![<\\":
            self._held = char
            self._state = {"!": self._bang, "[": self._bracket, "<": self._tag, "\\": self._escape}[char]
        elif char == "]" and self._brackets:
            self._brackets -= 1
            self._state = self._behind_bracket
        elif char == "|" and (self._space or self._bar_due or (self._stop_due and self._line_has_text)):
            self._bar_due, self._stop_due = True, "."
            self._space = [(" ", self._end)]
        else:
            self._put(char, self._end)

    def _resume(self, char: str) -> None:
        """Back to plain text: what was held goes out, `char` is looked at."""
        self._release()
        self._state = self._text
        self._text(char)

    def _bang(self, char: str) -> None:
        if char == "[":
            self._held = ""
        self._resume(char)

    def _escape(self, char: str) -> None:
        if not char.isascii() or char.isalnum() or char in " \t":
            self._resume(char)
            return
        self._held, self._state = "", self._text
        if char == "\n":
            self._break()
        elif char not in "*_`#":
            self._put(char, self._end)

    def _bracket(self, char: str) -> None:
        """Behind "[": a note's number and a task's box are left out, else the bracket alone."""
        held = self._held + char
        if held == "[^":
            self._held, self._closer, self._depth, self._state = held, "]", 0, self._target
        elif not self._line_has_text and held in {"[ ", "[x", "[X"}:
            self._held = held
        elif held in {"[ ]", "[x]", "[X]"}:
            self._held, self._state = "", self._behind_box
        else:
            start = self._end - len(self._held)
            inside, self._held = self._held[1:], ""
            self._brackets += 1
            for place, one in enumerate(inside, 1):
                self._put(one, start + place)
            self._resume(char)

    def _behind_box(self, char: str) -> None:
        if char not in " \t":
            self._resume(char)

    def _behind_bracket(self, char: str) -> None:
        if char in "([":
            self._held, self._closer, self._depth, self._state = char, ")" if char == "(" else "]", 0, self._target
        else:
            self._resume(char)

    def _target(self, char: str) -> None:
        quoted = self._held[1:2] == "<" or any(one in self._held for one in "\"'")
        titled = self._held[-1] not in " \t" or char in _TITLE_OPENERS or quoted
        if char == self._closer and self._depth == 0:
            self._held, self._state = "", self._text
        elif char == "\n" or len(self._held) >= _LONGEST_TARGET or not (titled or char in " \t"):
            self._resume(char)
        else:
            self._depth += (char == "(") - (char == ")")
            self._held += char

    # Tags

    def _tag(self, char: str) -> None:
        """Behind "<": a tag that we know is left out, anything else is text."""
        held = self._held + char
        name = held[1:].lstrip("/").lower()
        if held == "<!":
            self._held = held
        elif held.startswith("<!"):
            self._held = held
            if held == "<!--":
                self._state = self._comment
            elif not "<!--".startswith(held):
                self._held = held[:-1]
                self._resume(char)
        elif name in _TAG_PREFIXES and held[:3] != "<//":
            self._held = held
        elif name[:-1] in _TAG_NAMES and (char in "/>" or (char in " \t" and name[:-1] not in _BARE)):
            self._tag_name = name[:-1]
            self._state = self._attributes
            self._attributes(char)
        else:
            self._resume(char)

    def _attributes(self, char: str) -> None:
        if char == ">":
            closes = self._held.startswith("</")
            self._held, self._state = "", self._text
            self._mark_tag(self._tag_name, closes=closes)
        elif char in "\n<" or len(self._held) >= _LONGEST_TAG:
            self._resume(char)
        else:
            self._held += char

    def _mark_tag(self, name: str, *, closes: bool) -> None:
        """What is heard of a tag: a stop behind an item, a line's end."""
        mark = "." if name in _STOPPING else "," if name in _PAUSING else ""
        if closes and mark:
            self._stop(mark)
            self._put(" ", self._end)
        elif name in _BREAKING:
            self._put("\n", self._end)

    def _comment(self, char: str) -> None:
        self._held += char
        if self._held.endswith("-->") or len(self._held) >= _LONGEST_COMMENT:
            self._held, self._state = "", self._text

    # Code

    def _info(self, char: str) -> None:
        """Behind a fence: its language, or code that begins and ends on this line."""
        if char == "\n" or len(self._held) >= _LONGEST_INFO:
            self._open_fence(self._fence)
        elif char == "`":
            self._resume(char)
        else:
            self._held += char

    def _open_fence(self, fence: str) -> None:
        self._held, self._fence, self._state = "", fence[0], self._code
        for char in self._code_phrase:
            self._put(char, self._end)

    def _code(self, char: str) -> None:
        """Up to a line of the fence's marks alone."""
        if char != "\n":
            self._held = (self._held + char)[:_LONGEST_INFO]
            return
        line, self._held = self._held.strip(), ""
        if len(line) >= 3 and not line.strip(self._fence):
            self._break()
