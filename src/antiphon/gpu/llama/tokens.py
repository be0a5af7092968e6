"""Text in, a model's tokens out, and back: the vocabulary that its file or folder carries.

Threads: stateless after loading. It does not know conversations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from antiphon.gpu.weights.gguf_file import Vocabulary

_REPLACEMENT = "\ufffd"
# How families part a text before they merge bytes, by the names that llama.cpp gives them.
_LLAMA3_CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_CUT = _LLAMA3_CUT.replace(r"\p{N}{1,3}", r"\p{N}")
_CUTS = {"llama-bpe": _LLAMA3_CUT, "qwen2": _QWEN2_CUT}
_SINGLE_DIGITS = frozenset({"smollm"})
_PLAIN = frozenset({"default", "gpt-2"})


class LlamaTokens:
    """One model's vocabulary."""

    def __init__(
        self, tokenizer: Tokenizer, *, ends: Collection[int], begins: int | None, controls: Collection[int]
    ) -> None:
        self._tokenizer = tokenizer
        self.ends = frozenset(ends)
        self.begins = begins
        self._controls = frozenset(controls)
        self._texts: dict[int, str] = {}  # of tokens that were asked for alone

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary itself."""
        return self._tokenizer

    def encode(self, text: str) -> list[int]:
        """The text's tokens; control markers in it are read as such."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def text(self, token: int) -> str:
        """What one token writes; nothing for a control token, and a replacement for bytes that are no character."""
        known = self._texts.get(token)
        if known is None:
            known = "" if token in self._controls else self._tokenizer.decode([token], skip_special_tokens=False)
            self._texts[token] = known
        return known

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of several; control tokens come out as their markers."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=False))


class TextStream:
    """Tokens in, whole characters out: what a token completes is told with it."""

    def __init__(self, tokens: LlamaTokens) -> None:
        self._tokens = tokens
        self._held: list[int] = []

    def add(self, token: int) -> str:
        """What is new of the text; nothing while a character lacks bytes."""
        self._held.append(token)
        text = self._tokens.decode(self._held)
        if text.endswith(_REPLACEMENT) and len(self._held) < 5:
            return ""
        self._held.clear()
        return text


def tokens_of_vocabulary(vocabulary: Vocabulary) -> LlamaTokens:
    """What a .gguf file tells.

    Raises:
        CallerError: the vocabulary is of another kind, or parts its text in a way that is not known here.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415 - heavy

    known = {*_CUTS, *_SINGLE_DIGITS, *_PLAIN}
    if vocabulary.kind != "gpt2" or vocabulary.cut not in known:
        raise CallerError(
            f"the model file's vocabulary is of the kind {vocabulary.kind}/{vocabulary.cut}",
            hint="name the model's folder as Hugging Face lays it out instead of the .gguf file",
        )
    places = {token: place for place, token in enumerate(vocabulary.tokens)}
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in vocabulary.merges)]
    tokenizer = Tokenizer(models.BPE(vocab=places, merges=merges, ignore_merges=vocabulary.cut == "llama-bpe"))
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=vocabulary.cut not in _CUTS)
    before: list[pre_tokenizers.PreTokenizer] = []
    if vocabulary.cut in _SINGLE_DIGITS:
        before.append(pre_tokenizers.Digits(individual_digits=True))
    if vocabulary.cut in _CUTS:
        before.append(pre_tokenizers.Split(Regex(_CUTS[vocabulary.cut]), behavior="isolated"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, whole])
    tokenizer.decoder = decoders.ByteLevel()
    marks = [vocabulary.tokens[place] for place in vocabulary.controls]
    tokenizer.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    return LlamaTokens(
        tokenizer,
        ends=_ends(tokenizer, vocabulary.ends),
        begins=vocabulary.begins,
        controls=vocabulary.controls,
    )


def tokens_of_folder(folder: Path, config: dict[str, object]) -> LlamaTokens:
    """What tokenizer.json of a folder tells.

    Raises:
        CallerError: it is missing or broken.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:
        raise CallerError(
            f"{folder / 'tokenizer.json'} cannot be read", hint="name a folder as Hugging Face lays it out"
        ) from error
    controls = [place for place, added in tokenizer.get_added_tokens_decoder().items() if added.special]
    ends, begins = config.get("eos_token_id"), config.get("bos_token_id")
    first = tokenizer.encode("a").ids[:1]
    return LlamaTokens(
        tokenizer,
        ends=_ends(tokenizer, *(ends if isinstance(ends, list) else [ends])),
        begins=begins if isinstance(begins, int) and first == [begins] else None,
        controls=controls,
    )


def _ends(tokenizer: Tokenizer, *told: object) -> set[int]:
    """The tokens that end a reply: those told, and those that end a message in the families we know."""
    marks = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>", "</s>")
    found = {tokenizer.token_to_id(mark) for mark in marks}
    return {token for token in (*told, *found) if isinstance(token, int)}
