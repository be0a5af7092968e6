"""What a response took, in tokens.

Text is counted by the language model, where its engine does, else by a `TokenCounter`, by default a token for every
four characters of the instructions, the history, and what came of it. Sound is counted as the
protocol's first server bills it: a token for each 100 ms of the caller's, one for each 50 ms of ours.
Units: tokens, seconds. Pure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from antiphon.core.flow import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

HEARD_TOKENS_PER_S = 10
SPOKEN_TOKENS_PER_S = 20
CHARS_PER_TOKEN = 4


class TokenCounter(Protocol):
    """How many tokens a language model makes of a text."""

    def __call__(self, text: str, /) -> int: ...


def estimate(text: str, /) -> int:
    """A token for every four characters, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def text_usage(count: TokenCounter, *, read: Iterable[str], written: Iterable[str]) -> Usage:
    """What a language model will have taken that does not say so itself."""
    return Usage(input_tokens=sum(map(count, read)), output_tokens=sum(map(count, written)))


def usage_wire(text: Usage, *, heard_s: float, spoken_s: float) -> dict[str, object]:
    """The `usage` of a response: text as the language model read and wrote it, and the sound both ways."""
    audio_in, audio_out = math.ceil(heard_s * HEARD_TOKENS_PER_S), math.ceil(spoken_s * SPOKEN_TOKENS_PER_S)
    input_tokens, output_tokens = text.input_tokens + audio_in, text.output_tokens + audio_out
    return {
        "total_tokens": input_tokens + output_tokens,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "input_token_details": {
            "text_tokens": text.input_tokens,
            "audio_tokens": audio_in,
            "image_tokens": 0,
            "cached_tokens": text.cached_tokens,
            "cached_tokens_details": {"text_tokens": text.cached_tokens, "audio_tokens": 0, "image_tokens": 0},
        },
        "output_token_details": {"text_tokens": text.output_tokens, "audio_tokens": audio_out},
    }
