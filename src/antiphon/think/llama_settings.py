"""How a Llama-family model chooses its replies, wherever it computes: values that were checked. Threads: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from antiphon.core.errors import check_range
from antiphon.think.chat_template import template_named

# A model file below this copies: SmolLM2 of 135 million parameters has 0.1 GB, and cannot do without; the next
# larger ones that are in use, of half a billion, have 0.4 GB.
_COPYING_BELOW_BYTES = 300_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSettings:
    """How replies are chosen.

    Raises:
        CallerError: a value is out of its range; the message names the field.
    """

    temperature: Annotated[float, "0: the likeliest token, the same reply every time"] = 0.0
    seed: Annotated[int, "of the draw, with a temperature"] = 0
    repeat_penalty: Annotated[float, "1: none; small models tend to go in circles without"] = 1.1
    repeat_last_tokens: Annotated[int, "how far back repetition is looked for"] = 64
    template: Annotated[str, "a name of chat_template.TEMPLATES; empty: what the model file says"] = ""
    # Read in one go: a stop takes effect after it, and other conversations wait for it. For 215 tokens 16, 32, 64,
    # 128 and 512 took 2.18, 2.44, 2.26, 2.39 and 2.22 s of one thread's time on a busy machine: no cost beyond noise.
    batch_tokens: Annotated[int, "of a prompt, read in one go; a stop takes effect after it"] = 32
    end_candidates: Annotated[int, "tokens looked at for the end of a sentence"] = 40
    reply_reserve_tokens: Annotated[int, "kept free for the reply when a prompt is read ahead"] = 256
    tool_words: Annotated[
        Literal["auto", "copied", "free"],
        "copied: a tool's arguments are words of the caller and its result is the reply, which small models need; "
        "free: the model's own words; auto: by the model file's size",
    ] = "auto"

    def __post_init__(self) -> None:
        check_range("temperature", self.temperature, 0, 2)
        check_range("seed", self.seed, 0, 2**32 - 2)
        check_range("repeat_penalty", self.repeat_penalty, 1, 2)
        check_range("repeat_last_tokens", self.repeat_last_tokens, 0, 4096)
        check_range("batch_tokens", self.batch_tokens, 1, 4096)
        check_range("end_candidates", self.end_candidates, 1, 1000)
        check_range("reply_reserve_tokens", self.reply_reserve_tokens, 1, 65536)
        if self.template:
            template_named(self.template)


def copies_words(settings: LlamaSettings, model_bytes: int) -> bool:
    """Whether a model of this size is held to its caller's words, see LlamaSettings.tool_words."""
    return settings.tool_words == "copied" or (settings.tool_words == "auto" and model_bytes < _COPYING_BELOW_BYTES)
