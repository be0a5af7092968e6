"""What a language model writes in, as it streams; what a voice says out, word by word.

Markup, emoji and tags are left out; figures, signs and addresses become words. Each run says how much of the written
text has been said once it has been, so that heard words can be found again in what was written. Runs lie end to end;
white space belongs to the run that follows it. How the text was cut into pieces makes no difference.

A plain word is let go with its second letter, the rest of it with its end; held back are only a word that may
become an address, a unit or an abbreviation, a figure until the word behind it has come, and what may be markup.
Characters are those of the text as the model wrote it. Threads: pure, one reply at a time.
What it does not know: chunks, and how a voice reads plain words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from antiphon.core.errors import CallerError
from antiphon.think.borders import is_unspaced
from antiphon.think.markup import Markup
from antiphon.think.spoken_word import WordReader, extends, without_marks

if TYPE_CHECKING:
    from collections.abc import Iterable

CODE_PHRASE = "Code left out."
_LONGEST_WORD = 400  # characters; what is longer is no word, and is let go without being read
_LONGEST_GRAPHEME = 64  # so many more may hang on its last letter
_LONGEST_SPACE = 200
_EARLIEST = 2  # letters of a plain word that are known when its first ones are let go
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenFormSettings:
    """How written text is made ready for a voice.

    Raises:
        CallerError: the language is no code such as "en" or "pt-BR".
    """

    enabled: Annotated[bool, "leave out markup and emoji, and say figures and addresses in words"] = True
    language: Annotated[str, "of the replies; in any but en figures are left to the voice"] = "en"

    def __post_init__(self) -> None:
        if not _LANGUAGE.fullmatch(self.language):
            raise CallerError(f"language is {self.language!r}", hint='use a code such as "en" or "pt-BR"')


@dataclass(frozen=True, slots=True)
class Spoken:
    """A run of what is to be said."""

    text: str  # may be empty, where nothing is said of what was written
    end_chars: int  # of the written text: how much of it has been said once this run has


@dataclass(slots=True)
class _Word:
    space: str  # before it
    text: str = ""
    end: int = 0  # of the written text
    said: str = ""  # of its reading, let go early
    is_plain: bool = True  # letters alone so far, and no word that is read in a way of its own
    is_glued: bool = False  # to a script without spaces, which may read figures in its own way


class SpokenForm:
    """For one reply."""

    def __init__(self, settings: SpokenFormSettings | None = None) -> None:
        settings = settings or SpokenFormSettings()
        self._enabled = settings.enabled
        language = re.split("[-_]", settings.language)[0]
        self._markup = Markup(CODE_PHRASE if language == "en" else "")
        self._reader = WordReader(language)
        self._waiting: list[_Word] = []  # whole words; the first of them waits for the next
        self._word: _Word | None = None  # the one being written
        self._space = ""
        self._written = 0
        self._end = 0  # of the latest run
        self._out: list[Spoken] = []

    def feed(self, piece: str) -> list[Spoken]:
        """Take the reply's next characters; return the runs that are decided with them."""
        if not self._enabled:
            return self._pass(piece)
        for char in piece:
            self._written += 1
            self._take_all(self._markup.take(char))
        return self._drain()

    def finish(self) -> list[Spoken]:
        """The reply is complete: return the rest of it."""
        if not self._enabled:
            return []
        self._take_all(self._markup.finish())
        self._end_word()
        self._settle(is_final=True)
        if self._space or self._end < self._written:
            self._say(self._space, self._written)
            self._space = ""
        return self._drain()

    def _pass(self, piece: str) -> list[Spoken]:
        runs = []
        for run in re.findall(r"\s*\S+|\s+", piece):
            self._written += len(run)
            runs.append(Spoken(run, self._written))
        return runs

    def _drain(self) -> list[Spoken]:
        out, self._out = self._out, []
        return out

    def _say(self, text: str, end: int) -> None:
        self._end = max(self._end, end)
        self._out.append(Spoken(text, self._end))

    # Characters to words

    def _take_all(self, chars: Iterable[tuple[str, int]]) -> None:
        for char, end in chars:
            if char.isspace():
                self._take_space(char, end)
            else:
                self._take_solid(char, end)

    def _take_space(self, char: str, end: int) -> None:
        self._end_word()
        if char == "\n":
            self._settle(is_final=True)  # nothing is read across a line's end
        self._space += char
        if len(self._space) > _LONGEST_SPACE:
            self._settle(is_final=True)
            self._say(self._space, end)
            self._space = ""

    def _take_solid(self, char: str, end: int) -> None:
        word = self._word
        if word and word.text and not extends(word.text, char):
            unspaced = is_unspaced(char), is_unspaced(word.text[-1]) or is_unspaced(word.text[0])
            if any(unspaced):
                word.is_glued = True
                self._end_word()
                self._word = _Word(space="", is_glued=True)
            elif len(word.text) >= _LONGEST_WORD:
                self._break_word()
            else:
                self._let_go_early(word, char)
        elif word and len(word.text) >= _LONGEST_WORD + _LONGEST_GRAPHEME:
            self._break_word()
        if self._word is None:
            self._word = _Word(space=self._space)
            self._space = ""
        self._word.text += char
        self._word.end = end

    def _break_word(self) -> None:
        """Let go of what is too long to be a word, unread."""
        self._settle(is_final=True)
        word = self._word
        if word:
            said = without_marks(word.text)
            self._say(word.space * (not word.said) + said[len(word.said) :], word.end)
            self._reader.skip()
            self._word = _Word(space="", is_glued=True)

    def _let_go_early(self, word: _Word, char: str) -> None:
        """Say the first letters of a word that is nothing but a word; `char` is its next."""
        if not word.is_plain or word.said or self._waiting:
            return
        letters = self._reader.plain_letters(word.text + char)
        word.is_plain = letters is not None
        if letters and len(letters) >= _EARLIEST and not self._reader.may_be_special(letters):
            word.said = without_marks(word.text)
            self._say(word.space + word.said, word.end)

    # Words to runs

    def _end_word(self) -> None:
        word, self._word = self._word, None
        if word and word.text:
            self._waiting.append(word)
            self._settle(is_final=False)

    def _settle(self, *, is_final: bool) -> None:
        """Read the words that wait, as far as it is known what follows them."""
        while self._waiting:
            word, following = self._waiting[0], self._waiting[1] if len(self._waiting) > 1 else None
            if following is None and not is_final and not word.said and self._reader.needs_next(word.text):
                return
            following_text = following.text if following and not following.is_glued else ""
            reading = self._reader.read(word.text, following_text, is_glued=word.is_glued)
            if reading.takes_next and following:
                del self._waiting[0]
                word.end = following.end
            del self._waiting[0]
            self._say_word(word, reading.text, joins=reading.joins)

    def _say_word(self, word: _Word, text: str, *, joins: bool) -> None:
        if word.said:
            rest = text if text.startswith(word.said) else without_marks(word.text)
            self._say(rest[len(word.said) :], word.end)
        elif joins or not text:
            self._say("\n" * word.space.count("\n") + text, word.end)
        else:
            self._say(word.space + text, word.end)
