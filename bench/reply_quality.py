"""Whether a language model's replies could be said to a caller at all: thirty questions, and checks that need no judge.

Regime: each question begins a conversation of its own, greedy, through the same engine and limits as a call's. What a
check means is said beside it; none of them tells whether a reply is good, all together tell nonsense from sense. The
shares are of replies that pass. They are lenient: a wrong sentence that holds the right word passes.

What would falsify it: a model that people find useful below the floor, or one that they find useless far above it.

Usage: python bench/reply_quality.py [--set models.language_model=NAME_OR_GGUF] [--floor SHARE] [--out FILE]
Exits with 1 if the share of replies that pass every check is below the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.agent import INSTRUCTIONS, Agent
from antiphon.config import load
from antiphon.core.flow import Message
from antiphon.lab.machine import Load, fingerprint
from antiphon.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[1]
BARISTA = "You are the barista of a coffee shop. Answer in one short sentence."
# Twenty of the default model's thirty replies passed; two fewer are let through, since another processor rounds
# otherwise.
DEFAULT_FLOOR = 0.6


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    key_words: tuple[str, ...] = ()  # a right reply has one of them
    instructions: str = INSTRUCTIONS


QUESTIONS = (
    Question("What is the capital of France?", ("paris",)),
    Question("What is two plus two?", ("four", "4")),
    Question("How many days are in a week?", ("seven", "7")),
    Question("What colour is the sky on a clear day?", ("blue",)),
    Question("Which planet do we live on?", ("earth",)),
    Question("What do bees make?", ("honey",)),
    Question("What is frozen water called?", ("ice",)),
    Question("Who wrote Romeo and Juliet?", ("shakespeare",)),
    Question("What is the opposite of hot?", ("cold", "cool")),
    Question("In which country is Rome?", ("italy",)),
    Question("What animal says meow?", ("cat",)),
    Question("What is the largest ocean?", ("pacific",)),
    Question("What language do people speak in Spain?", ("spanish",)),
    Question("How many legs does a dog have?", ("four", "4")),
    Question("Hello, how are you?", ("fine", "well", "good", "great", "help", "thanks", "thank")),
    Question("Can you help me with something?", ("yes", "sure", "course", "help", "happy")),
    Question("I feel a bit tired today.", ("rest", "sleep", "tired", "break", "relax", "nap")),
    Question("What should I cook for dinner?", ("cook", "dinner", "dish", "make", "try")),
    Question("Give me a tip for better sleep.", ("sleep", "bed", "bedtime")),
    Question("Why is exercise good for me?", ("exercise", "health", "heart", "body")),
    Question("I am moving to a new city next month.", ("city", "move", "moving", "exciting")),
    Question("Tell me something interesting about the moon.", ("moon",)),
    Question("How do I make a cup of tea?", ("tea", "water")),
    Question("Thank you, that is all for today.", ("welcome", "goodbye", "bye", "pleasure", "glad", "day")),
    Question("Sorry, could you say that again?", ("said", "say", "again", "sure", "repeat", "course")),
    Question(
        "Hi, I would like a large latte, please.", ("latte", "coming", "sure", "course", "right"), instructions=BARISTA
    ),
    Question(
        "What do you recommend for somebody who does not like coffee?",
        ("tea", "chocolate", "juice", "water", "lemonade", "matcha", "chai", "smoothie"),
        instructions=BARISTA,
    ),
    Question("Do you have oat milk?", ("milk",), instructions=BARISTA),
    Question("Is this seat taken?", ("seat", "no", "yes", "free", "taken"), instructions=BARISTA),
    Question("Could I pay by card?", ("card", "cards", "yes", "pay"), instructions=BARISTA),
)

# What models say when they have nothing to say, and no caller wants to hear.
_STOCK = re.compile(
    r"\bas an ai\b|language model|sorry for your lo[sc]\w*|real-time data|my (knowledge|training)\b", re.IGNORECASE
)
_MARKUP = re.compile(r"<\||\|>|</?[a-z]+>|\*\*|```|^\s*[#>*-]\s|^\s*\d+[.)]\s|\[[^\]]*\]\(|\\[a-z(\[]", re.MULTILINE)
_ENDS = re.compile(r"[.!?…。！？]['\")\]”’]*$")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# fmt: off
_COMMON = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "can", "do", "for", "i", "in", "is", "it", "me", "my", "no", "not",
    "of", "on", "or", "so", "that", "the", "this", "to", "we", "what", "with", "yes", "you", "your", "i'm", "it's",
})
# fmt: on
_MOST_WORDS = 60  # half a minute of speech
_LOOP = 3  # times that four words in a row may not come


def words_of(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORDS.findall(text.lower())]


def has_loop(text: str) -> bool:
    """Four words in a row, or one sentence, come again and again."""
    words = words_of(text)
    runs = [tuple(words[at : at + 4]) for at in range(len(words) - 3)]
    sentences = [each for each in re.split(r"[.!?]\s*", text.lower()) if each.strip()]
    return any(runs.count(run) >= _LOOP for run in runs) or len(set(sentences)) < len(sentences)


def is_english(text: str) -> bool:
    """Latin letters, and in all but the shortest replies one word in eight among the commonest."""
    letters = [char for char in text if char.isalpha()]
    words = words_of(text)
    latin = sum(char.isascii() or "\u00c0" <= char <= "\u024f" for char in letters)
    common = sum(word in _COMMON for word in words)
    return bool(letters) and latin >= 0.95 * len(letters) and (len(words) < 6 or common >= len(words) / 8)


def is_copy(reply: str, question: str) -> bool:
    """Nothing but the question's own words."""
    own = words_of(reply)
    return bool(own) and len(own) > 1 and set(own) <= set(words_of(question))


def has_key_word(reply: str, question: Question) -> bool:
    return not question.key_words or bool(set(words_of(reply)) & set(question.key_words))


CHECKS: Mapping[str, Callable[[str, Question], bool]] = {
    "not empty": lambda reply, _: bool(words_of(reply)),
    "ends as a sentence": lambda reply, _: bool(_ENDS.search(reply.strip())),
    "no markup": lambda reply, _: not _MARKUP.search(reply),
    "no loop": lambda reply, _: not has_loop(reply),
    "in the question's language": lambda reply, _: is_english(reply),
    "no stock phrase": lambda reply, _: not _STOCK.search(reply.replace("\u2019", "'")),
    "no copy of the question": lambda reply, question: not is_copy(reply, question.text),
    "short enough to be said": lambda reply, _: len(words_of(reply)) <= _MOST_WORDS,
    "key word": has_key_word,
}


async def replies_of(sets: list[str]) -> tuple[str, list[str]]:
    """The model's name and its reply to each of QUESTIONS."""
    config = load(sets=sets).config
    replies = []
    async with await Runtime.load(config) as runtime:
        model = runtime.engines.language_model
        for question in QUESTIONS:
            messages = [Message("system", question.instructions), Message("user", question.text)]
            thinking = model.open()
            async with aclosing(thinking.write(messages, max_tokens=Agent().max_tokens)) as pieces:
                replies.append("".join([piece async for piece in pieces if isinstance(piece, str)]).strip())
            thinking.close()
        return model.name, replies


def judge(replies: list[str]) -> dict[str, object]:
    """Shares of replies that pass, by check and of all checks, and every reply with what it failed."""
    pairs = list(zip(QUESTIONS, replies, strict=True))
    rows = [
        {
            "question": question.text,
            "reply": reply,
            "failed": [name for name, passes in CHECKS.items() if not passes(reply, question)],
        }
        for question, reply in pairs
    ]
    count = len(rows)
    asked = sum(bool(question.key_words) for question in QUESTIONS)
    shares = {name: round(1 - sum(name in row["failed"] for row in rows) / count, 3) for name in CHECKS}
    shares["key word"] = round(1 - sum("key word" in row["failed"] for row in rows) / asked, 3)  # of those with one
    return {"pass_all": round(sum(not row["failed"] for row in rows) / count, 3), "pass": shares, "replies": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", dest="sets")
    parser.add_argument("--floor", type=float, default=DEFAULT_FLOOR, help="least share of replies that pass all")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "reply_quality.json")
    arguments = parser.parse_args()
    machine_load = Load()
    name, replies = asyncio.run(replies_of(arguments.sets))
    judged = judge(replies)
    result = {
        "schema": "antiphon.reply_quality/1",
        "machine": fingerprint(),
        "load": machine_load.report(),
        "model": name,
        "floor": arguments.floor,
        **judged,
    }
    arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(name, json.dumps({"pass_all": judged["pass_all"], "pass": judged["pass"]}))
    return 0 if float(str(judged["pass_all"])) >= arguments.floor else 1


if __name__ == "__main__":
    sys.exit(main())
