"""A tokenizer's file in, the numbers that Whisper's decoder is addressed with out, and its numbers back to text.

The vocabulary is one of bytes: a Chinese character may be three tokens, and a token may end in mid-character.
Threads: stateless after loading. What it does not know: sound, and the model that speaks these numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError, MachineError
from antiphon.hear.words import is_spelled, needs_no_space, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

_WORD_START = "Ġ"  # how the byte-level vocabulary writes the space that a word begins with
_NO_TEXT = "\ufffd"  # what is left of a character that lacks bytes

_ENGLISH_MARKS = ".?!,"
_MARKS = ".?!,…。、！？，؟،۔।॥။។༎།።։"
_WITHOUT_MARKS = frozenset({"th", "lo"})  # languages whose writing has none at a sentence's end
# What is often written instead of a language's code: mostly its country's.
_SLIPS = {"cn": "zh", "cmn": "zh", "jp": "ja", "kr": "ko", "gr": "el", "cz": "cs", "dk": "da", "se": "sv", "ua": "uk"}
_WIDE_MARK = 0xEF  # the first byte of ！？，; of what Whisper writes, hardly anything else begins with it


def _byte_of() -> dict[str, int]:
    """The byte that each sign of the vocabulary stands for: itself if it can be printed, else a sign from 256 on."""
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printed)
    return {chr(byte): byte for byte in printed} | {chr(256 + index): byte for index, byte in enumerate(others)}


_BYTE_OF = _byte_of()


class WhisperTokens:
    """One model's vocabulary, and the language that it is to write."""

    def __init__(self, tokenizer: Tokenizer, *, language: str, is_multilingual: bool) -> None:
        self._tokenizer = tokenizer
        self.start = self._id("<|startoftranscript|>")
        self._previous = self._id("<|startofprev|>")
        self.closing_marks = self._closing_marks(language)
        self.opening = [self.start]
        if is_multilingual:
            self.opening += [self._language(language), self._id("<|transcribe|>")]
        elif language != "en":
            raise CallerError(
                f"whisper.language is {language}, but this model knows English only",
                hint='set models.recognizer to one for many languages, such as "whisper-base"',
            )
        self.task = [*self.opening, self._id("<|notimestamps|>")]  # what every transcription is asked with

    @classmethod
    def load(cls, path: Path, *, language: str, is_multilingual: bool) -> WhisperTokens:
        """Read the vocabulary from tokenizer.json.

        Raises:
            MachineError: the file is missing or is no tokenizer of Whisper.
            CallerError: the model does not know the language.
        """
        from tokenizers import Tokenizer  # noqa: PLC0415 - heavy: who loads no model does not pay for it

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise MachineError(
                f"{path} cannot be read as a tokenizer", hint="verify the models: antiphon models verify"
            ) from error
        return cls(tokenizer, language=language, is_multilingual=is_multilingual)

    def encode(self, text: str) -> list[int]:
        """The text's tokens as the decoder writes them: words begin with a space, where their script has any."""
        text = text if needs_no_space(text) or not text else f" {text}"
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text, without characters of which bytes are missing."""
        return str(self._tokenizer.decode(list(tokens))).replace(_NO_TEXT, "")

    def begins_character(self, token: int) -> bool:
        """Whether the token's first byte is the first of a character."""
        return self._first_byte(token) & 0xC0 != 0x80

    def word_starts(self, tokens: Sequence[int]) -> list[bool]:
        """Of each token, whether a word begins with it; in scripts without spaces, whether a character does."""
        starts = [(self._tokenizer.id_to_token(token) or "").startswith(_WORD_START) for token in tokens]
        text = self.decode(tokens)
        if text.isascii():
            return starts
        begins = {word.start for word in words(text) if not text[: word.start][-1:].isspace()}
        borders = [place for place, token in enumerate(tokens) if self.begins_character(token)]
        chars = 0
        for place, after in zip(borders, [*borders[1:], len(tokens)], strict=True):
            starts[place] = starts[place] or chars in begins
            chars += len(self.decode(tokens[place:after]))
        return starts

    def spelled(self, tokens: Sequence[int]) -> int:
        """How many tokens there are up to the end of the last word, the marks behind it left out."""
        end = len(tokens)
        for place in range(len(tokens) - 1, -1, -1):
            if not self.begins_character(tokens[place]):
                continue
            if is_spelled(self.decode(tokens[place:end])):
                return end
            end = place
        return 0

    def hints(self, vocabulary: Sequence[str], *, limit_tokens: int) -> list[int]:
        """The phrases as a prompt that mentions them; those named first are kept whole where not all fit."""
        kept: list[int] = []
        phrases: list[str] = []
        for phrase in (" ".join(phrase.split()) for phrase in vocabulary):
            if not phrase:
                continue
            phrases.append(phrase)
            comma, stop = ("、", "。") if any(map(needs_no_space, phrases)) else (", ", ".")
            tokens = self.encode(comma.join(phrases) + stop)
            if len(tokens) > limit_tokens:
                break
            kept = tokens
        return kept

    def prompt(self, before: Sequence[int]) -> list[int]:
        """What the decoder reads first: text that may have come before, then the task."""
        return [self._previous, *before, *self.task] if before else list(self.task)

    def _closing_marks(self, language: str) -> list[list[int]]:
        """The tokens of each mark that closes a sentence or a phrase; where no letter begins with the first, just that.

        English keeps to its own four, by which the posterior of turn ends was fitted.
        """
        if language in _WITHOUT_MARKS:
            return []
        if language == "en":
            return [[self._id(mark)] for mark in _ENGLISH_MARKS]
        spelled = [
            list(self._tokenizer.encode(before + mark, add_special_tokens=False).ids)
            for mark in _MARKS
            for before in ("", " ")  # French puts a space in front
        ]
        cut = [tokens[:1] if self._first_byte(tokens[0]) == _WIDE_MARK else tokens for tokens in spelled]
        return [list(tokens) for tokens in dict.fromkeys(map(tuple, cut)) if self._is_mark(tokens)]

    def _is_mark(self, tokens: Sequence[int]) -> bool:
        """Whether no lone space stands in front: what follows that could be a word as well."""
        return (self._tokenizer.id_to_token(tokens[0]) or "") != _WORD_START

    def _first_byte(self, token: int) -> int:
        spelling = self._tokenizer.id_to_token(token) or "?"
        return _BYTE_OF.get(spelling[0], ord("?"))

    def _language(self, language: str) -> int:
        token = self._tokenizer.token_to_id(f"<|{language}|>")
        if token is None:
            meant = _SLIPS.get(language)
            raise CallerError(
                f"whisper.language is {language}, which this model does not know",
                hint=f"did you mean {meant}?" if meant else "write a code of ISO 639, as en, zh or de",
            )
        return int(token)

    def _id(self, name: str) -> int:
        token = self._tokenizer.token_to_id(name)
        if token is None:
            raise MachineError(
                f"the tokenizer has no {name}", hint="point to the folder of a Whisper model, tokenizer.json included"
            )
        return int(token)
