"""A sentence and tools in, the prompts that ask a model which tool it needs out, and what its answer means.

A small model cannot be trusted to ask for a tool in a syntax of its own, but it can weigh a few names against each
other. It sees lines that pair sentences with tools, a tool's own description serving as the example for it, and at
the end the caller's sentence. How likely each name is there says little by itself: models prefer some names whatever
was said. So the same is asked for a few sentences that need no tool, and only what goes beyond their mean counts. A
word that the sentence shares with a tool's description adds to that.

Units: evidence is in nats, the log of a ratio of probabilities. Threads: pure. It does not know how a model is run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.think.language_model import AUTO, NONE, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from antiphon.core.flow import Message, ToolSpec

NO_TOOL = "none"
# Of the 62 sentences of bench/tool_choice.py that are for this, 53 came out right with 6.5 and with 7, 52 with 6 and 51
# with 7.5; 7 is the least without a false call. Without shared words at best 40 came out right.
LEAST_EVIDENCE = 7.0
SHARED_WORD_EVIDENCE = 4.0
MOST_SHARED_WORDS = 2

# Sentences that no tool is for. The first stand in the prompt, the others are asked to learn the model's leanings.
EXAMPLES = ("Hello.", "Thank you.", "Who invented the telephone?", "I had a long day.")
IDLE_SENTENCES = (
    "Good evening.",
    "That sounds nice.",
    "Why is the sky blue?",
    "I am not sure yet.",
    "Do you like it here?",
    "How do birds fly?",
)
# How arguments are written: in the sentence's own words, numbers as digits.
CALLS = (
    ("Book a table for four at Luigi's.", "book_table", {"restaurant": "Luigi's", "people": 4}),
    ("Could you call my brother, please?", "call", {"who": "my brother"}),
)

_MOST_CHARS = 300  # of a sentence that is asked about: its end, where the request is
_STEM_CHARS = 5  # closes, closing -> close
# fmt: off
_IDLE_WORDS = frozenset({
    "what", "when", "where", "with", "this", "that", "have", "from", "your", "some", "into", "onto", "does", "tell",
    "look", "them", "they", "than",
})
# fmt: on


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The tools that one reply is offered."""

    specs: tuple[ToolSpec, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """What the model chooses from, as it would write it; the last one is for no tool."""
        return (*(f" {spec.name}" for spec in self.specs), f" {NO_TOOL}")

    @property
    def head(self) -> str:
        """The part of the prompts that is the same for all sentences."""
        calls = (f"Sentence: {said}\nTool: {name}\nArguments: {json.dumps(given)}\n\n" for said, name, given in CALLS)
        idle = (f"Sentence: {said}\nTool: {NO_TOOL}\n\n" for said in EXAMPLES)
        own = (f"Sentence: {_one_line(spec.description)}\nTool: {spec.name}\n\n" for spec in self.specs)
        return "".join([*calls, *idle, *own])

    def begun(self, sentence: str) -> str:
        """The beginning of the prompt for a sentence that begins so."""
        return f"{self.head}Sentence: {_one_line(sentence)}"

    def question(self, sentence: str) -> str:
        """The prompt at whose end one of `options` follows."""
        return f"{self.begun(sentence)}\nTool:"

    def arguments(self, sentence: str, name: str) -> str:
        """The prompt at whose end the arguments of a call of `name` follow."""
        return f"{self.question(sentence)} {name}\nArguments:"

    def evidence(self, sentence: str, odds: Sequence[float], leanings: Sequence[float]) -> tuple[float, ...]:
        """For each tool, how much speaks for it.

        `odds` are the log-probabilities of `options` behind the sentence, `leanings` what `leanings_of` gave.
        """
        return tuple(
            odds[index]
            - odds[-1]
            - leanings[index]
            + SHARED_WORD_EVIDENCE * min(MOST_SHARED_WORDS, shared_words(sentence, spec))
            for index, spec in enumerate(self.specs)
        )


def check_choice(specs: Sequence[ToolSpec], tool_choice: str) -> None:
    """Raises CallerError for a `tool_choice` that `specs` cannot meet, or a tool named like one of those."""
    names = [spec.name for spec in specs]
    if taken := {AUTO, NONE, REQUIRED}.intersection(names):
        raise CallerError(f"a tool is called {min(taken)!r}, which means something else here", hint="rename it")
    if tool_choice in {AUTO, NONE} or (tool_choice == REQUIRED and names) or tool_choice in names:
        return
    known = ", ".join([AUTO, NONE, *([REQUIRED] if names else []), *names])
    raise CallerError(f"tool_choice is {tool_choice!r}", hint=f"use one of {known}")


def leanings_of(idle_odds: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """How much more likely each tool is than none behind IDLE_SENTENCES, on average, from the odds for each."""
    tools = len(idle_odds[0]) - 1
    return tuple(sum(odds[index] - odds[-1] for odds in idle_odds) / len(idle_odds) for index in range(tools))


def shared_words(sentence: str, spec: ToolSpec) -> int:
    """How many words of `sentence` also describe the tool, its parameters or their choices."""
    return len(_stems(sentence) & _stems(" ".join([spec.name, spec.description, *_texts_in(spec.parameters)])))


def sentence_to_judge(messages: Sequence[Message]) -> str:
    """What the caller asks for: the last words, with the ones before where these only answer our question.

    "What is the weather like?" "Where?" "In Paris." -> "What is the weather like? In Paris."
    """
    last = [message.text for message in messages if message.role == "user"][-2:]
    said = [message for message in messages if message.role in {"user", "assistant"} and message.text.strip()]
    answers = len(said) >= 3 and said[-2].role == "assistant" and said[-2].text.rstrip().endswith("?")
    return _one_line(" ".join(last if answers else last[-1:]))[-_MOST_CHARS:]


def _texts_in(schema: Mapping[str, object]) -> Iterable[str]:
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        yield name
        yield str(inner.get("description", ""))
        yield from map(str, inner.get("enum", ()))


def _stems(text: str) -> set[str]:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {word[:_STEM_CHARS].rstrip("s") for word in words if len(word) > 3 and word not in _IDLE_WORDS}


def _one_line(text: str) -> str:
    return " ".join(text.split())
