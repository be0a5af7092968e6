"""A grammar in llama.cpp's notation in, the likeliest token that it allows out, one after the other.

The package llguidance follows the grammar; its mask of allowed tokens goes to the device, where the choice is made.
Threads: one choice belongs to one sequence; the vocabulary is read once, by whoever comes first.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from antiphon.core.errors import EngineError, MachineError

if TYPE_CHECKING:
    from torch import Tensor

    from antiphon.gpu.llama.tokens import LlamaTokens


class Grammars:
    """Makes choices for one model's vocabulary."""

    def __init__(self, tokens: LlamaTokens) -> None:
        self._tokens = tokens

    def begin(self, grammar: str) -> GrammarChoice:
        """The choice for one text.

        Raises:
            MachineError: the package llguidance is not installed.
            EngineError: the grammar cannot be read.
        """
        from llguidance.gbnf_to_lark import any_to_lark  # noqa: PLC0415 - of the extra

        matcher = self._library.LLMatcher(self._vocabulary, any_to_lark(grammar))
        if matcher.is_error():
            raise EngineError("the language model was given a grammar that cannot be read")
        return GrammarChoice(matcher, self._tokens.ends)

    @cached_property
    def _library(self) -> Any:
        try:
            import llguidance  # noqa: PLC0415 - of the extra
        except ImportError as error:
            raise MachineError(
                "tools on a GPU need the package llguidance", hint="install it: pip install 'antiphon[gpu]'"
            ) from error
        return llguidance

    @cached_property
    def _vocabulary(self) -> Any:
        return self._library.LLTokenizer(self._tokens.tokenizer.to_str(), eos_token=min(self._tokens.ends))


class GrammarChoice:
    """One text that is held to a grammar."""

    def __init__(self, matcher: Any, ends: frozenset[int]) -> None:
        self._matcher = matcher
        self._ends = ends

    def choose(self, logits: Tensor) -> int | None:
        """The likeliest allowed token of (vocabulary,); None when the grammar wants no more."""
        if self._matcher.is_stopped():
            return None
        allowed = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
        width = min(len(allowed), len(logits))
        barred = allowed[:width].to(logits.device) == 0
        token = int(logits[:width].float().masked_fill(barred, -torch.inf).argmax())
        if token in self._ends or not self._matcher.consume_token(token):
            return None
        return token
