"""A tokenizer's file in, the numbers that Whisper's decoder is addressed with out, and its numbers back to text.

Threads: stateless after loading. What it does not know: sound, and the model that speaks these numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError, MachineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

_WORD_START = "Ġ"  # how the byte-level vocabulary writes the space that a word begins with


class WhisperTokens:
    """One model's vocabulary."""

    def __init__(self, tokenizer: Tokenizer, *, language: str, is_multilingual: bool) -> None:
        self._tokenizer = tokenizer
        self.start = self._id("<|startoftranscript|>")
        self._previous = self._id("<|startofprev|>")
        self.closing_marks = [self._id(mark) for mark in ".?!,"]
        self.opening = [self.start]
        if is_multilingual:
            self.opening += [self._language(language), self._id("<|transcribe|>")]
        elif language != "en":
            raise CallerError(
                f"the model knows English only, but the language is {language!r}", hint="choose a multilingual model"
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
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens)))

    def begins_word(self, token: int) -> bool:
        return (self._tokenizer.id_to_token(token) or "").startswith(_WORD_START)

    def hints(self, vocabulary: Sequence[str], *, limit_tokens: int) -> list[int]:
        """The phrases as a prompt that mentions them; those named first are kept whole where not all fit."""
        kept: list[int] = []
        phrases: list[str] = []
        for phrase in (" ".join(phrase.split()) for phrase in vocabulary):
            if not phrase:
                continue
            phrases.append(phrase)
            tokens = self.encode(f" {', '.join(phrases)}.")
            if len(tokens) > limit_tokens:
                break
            kept = tokens
        return kept

    def prompt(self, before: Sequence[int]) -> list[int]:
        """What the decoder reads first: text that may have come before, then the task."""
        return [self._previous, *before, *self.task] if before else list(self.task)

    def _language(self, language: str) -> int:
        token = self._tokenizer.token_to_id(f"<|{language}|>")
        if token is None:
            raise CallerError(f"the model knows no language {language!r}", hint="name it by two letters, such as en")
        return int(token)

    def _id(self, name: str) -> int:
        token = self._tokenizer.token_to_id(name)
        if token is None:
            raise MachineError(
                f"the tokenizer has no {name}", hint="point to the folder of a Whisper model, tokenizer.json included"
            )
        return int(token)
