"""A small vocabulary of Whisper's make: every byte is a token, and a few characters and words are one."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from antiphon.hear.whisper_tokens import WhisperTokens

SPECIALS = ("startoftranscript", "startofprev", "en", "zh", "hi", "th", "de", "transcribe", "notimestamps")
WHOLE = ("你", "好", "一", "。", "、", " no")  # one token each; all else is spelled byte by byte


def byte_tokens(language: str = "zh", *, is_multilingual: bool = True) -> WhisperTokens:
    return WhisperTokens(_tokenizer(), language=language, is_multilingual=is_multilingual)


def _tokenizer() -> Tokenizer:
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    vocabulary = {sign: number for number, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = []
    for text in WHOLE:
        ((spelled, _),) = pieces.pre_tokenize_str(text)
        for end in range(2, len(spelled) + 1):
            pair = (spelled[: end - 1], spelled[end - 1])
            if pair not in merges:
                merges.append(pair)
            vocabulary.setdefault(spelled[:end], len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pieces
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in SPECIALS])
    return tokenizer
