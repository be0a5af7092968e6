"""Transcripts of a run in; how often a reply to all words has the first chunk of the opening to its first words out.

For each order of more than MOST_MISSING words the model writes the first chunk of a reply to all of its words, and to
them without the last one, two, .. MOST_MISSING. Of those that share their first 0, 1, 2 or 3 tokens, how many have the
same chunk?

    python bench/opening_alike.py results/barista/RUN.json --out results/opening_alike.json

What would prove the rule of `session/opening.py` wrong: a share that rises by more than a few points with the second
token, which costs a caller another 10 ms on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.agent import read_agent
from antiphon.config import Config
from antiphon.dialogue.history import prompt
from antiphon.lab.machine import fingerprint
from antiphon.runtime import Runtime
from antiphon.think.chunker import Chunker

if TYPE_CHECKING:
    from antiphon.core.flow import Message
    from antiphon.think.language_model import Thinking

MOST_MISSING = 4  # words
MOST_TOKENS = 24


async def first_chunk(thinking: Thinking, messages: tuple[Message, ...]) -> list[str]:
    """The tokens of a reply as far as to the one that completes its first chunk."""
    chunker, tokens = Chunker(), list[str]()
    writing = thinking.write(messages, max_tokens=MOST_TOKENS)
    async for piece in writing:
        tokens.append(str(piece))
        if chunker.feed(str(piece)):
            break
    await writing.aclose()
    return tokens


def alike(one: list[str], other: list[str]) -> int:
    """How many tokens they share at the start."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


async def measure(transcripts: list[str], agent: Path) -> list[dict[str, Any]]:
    """A row for each number of missing words and of tokens that must be alike."""
    runtime = await Runtime.load(Config())
    thinking, about = runtime.engines.language_model.open(), read_agent(agent)
    pairs = {missing: list[tuple[int, bool]]() for missing in range(1, MOST_MISSING + 1)}
    for text in transcripts:
        words = text.split()
        whole = await first_chunk(thinking, prompt(about.instructions, (), text))
        for missing, found in pairs.items():
            part = await first_chunk(thinking, prompt(about.instructions, (), " ".join(words[:-missing]).rstrip(",.")))
            found.append((alike(whole, part), whole == part))
    thinking.close()
    runtime.close()
    rows = []
    for missing, found in pairs.items():
        for tokens in range(4):
            same = [is_same for shared, is_same in found if shared >= tokens]
            rows.append({"missing_words": missing, "alike_tokens": tokens, "openings": len(same), "same": sum(same)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--agent", type=Path, default=Path("examples/barista.py"))
    parser.add_argument("--limit", type=int, default=80)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    turns = json.loads(asked.run.read_text())["turns"]
    transcripts = [turn["transcript"] for turn in turns if len((turn["transcript"] or "").split()) > MOST_MISSING]
    rows = asyncio.run(measure(transcripts[: asked.limit], asked.agent))
    told = {
        "schema": "antiphon.opening_alike/1",
        "machine": fingerprint(),
        "transcripts_of": asked.run.name,
        "rows": rows,
    }
    asked.out.write_text(json.dumps(told, indent=1) + "\n")
    for tokens in range(4):
        openings = sum(row["openings"] for row in rows if row["alike_tokens"] == tokens)
        same = sum(row["same"] for row in rows if row["alike_tokens"] == tokens)
        print(
            f"{tokens} tokens alike: {same} of {openings} openings are the reply's first chunk, {same / openings:.0%}"
        )


if __name__ == "__main__":
    main()
