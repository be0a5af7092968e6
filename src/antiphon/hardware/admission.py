"""What the stages cost, and what a machine has -> how many callers it is to hold at once, and why.

An open estimate with three bounds, of which the least counts: all work of all callers keeps the cores, the event loop,
the recognizers' workers and the language model busy for BUSIEST of the time; a pause meets another one at work with a
probability of COINCIDENCE at most, if callers pause independently of each other; and contexts fit into memory.
Units: ns of one core, bytes. Threads: pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.hardware.plan_settings import MOST_CONVERSATIONS
from antiphon.hardware.reasons import decide, plural

if TYPE_CHECKING:
    from antiphon.hardware.reasons import Reason
    from antiphon.hardware.stage_costs import StageCosts

BUSIEST = 0.7  # of the usable cores' time: beyond it queues, and so the waits of single pauses, grow without measure
COINCIDENCE = 0.3  # of the pauses may have to share: three in ten then wait for about half of another's work
USABLE_MEMORY = 0.8  # the rest is the system's

# A caller's turn, as it is taken: 4 s of speech, 4 s of reply, 2 s of pauses. While they speak the recognizer looks
# once a second (turn.hop_ms); one pause in three turns out to be none, and was heard in vain.
TURN_S = 10.0
LOOKS = 4
PAUSES = 1.5
JUDGEMENTS = 0.5  # of tone, only where words leave doubt
JUDGEMENTS_AHEAD = 2.5  # and with a quick recognizer, wherever the voice falters for long enough
CORRECTION_TOKENS = 20  # read again behind a quick recognizer: half of the turns turn out to have said something else
PROMPT_TOKENS = 40  # the caller's words and what surrounds them; all before is cached
REPLY_TOKENS = 30
REPLY_S = 4.0
PAUSE_PROMPT_TOKENS = 20  # that were not read ahead
PAUSE_REPLY_TOKENS = 8  # of the first chunk
VOICE_FRAMES_A_SECOND = 1 / 0.032
# Of a conversation on the event loop, voice detection aside: 0.2 ms for 20 ms of sound that comes in, and as little
# again for what goes out. It is Python, so that instruction sets and further cores do not make it faster.
HANDLING_NS_A_SECOND = 15 * MILLISECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What there is for callers."""

    computing_cores: float
    memory_bytes: int | None
    context_tokens: int
    recognizer_threads: int
    recognizer_width: int
    language_model_threads: int
    has_prosody: bool
    quick_threads: int = 0  # of the quick recognizer; 0: there is none
    quick_width: int = 1
    recognises_here: bool = True  # on the processor
    writes_here: bool = True


def work_ns(means: Means, costs: StageCosts) -> float:
    """What one caller's turn of TURN_S takes, in ns of one core."""
    work = handling_ns(costs)
    work += hearing_ns(means, costs) * means.recognizer_threads
    work += quick_hearing_ns(means, costs) * means.quick_threads
    work += writing_ns(means, costs) * means.language_model_threads
    if means.has_prosody:
        work += (JUDGEMENTS_AHEAD if means.quick_threads else JUDGEMENTS) * costs.prosody.median_ns
    return work + REPLY_S * costs.voice_second.median_ns


def handling_ns(costs: StageCosts) -> float:
    """For how long one caller's turn occupies the event loop, which is one thread of one core."""
    return TURN_S * (VOICE_FRAMES_A_SECOND * costs.voice_frame.median_ns + HANDLING_NS_A_SECOND)


def hearing_ns(means: Means, costs: StageCosts) -> float:
    """For how long one caller's turn occupies a worker of the recognizer, which a quick one spares the looks."""
    calls = PAUSES if means.quick_threads else LOOKS + PAUSES
    return calls * costs.recognition_ns(means.recognizer_threads) if means.recognises_here else 0.0


def quick_hearing_ns(means: Means, costs: StageCosts) -> float:
    """For how long one caller's turn occupies a worker of the quick recognizer."""
    return (LOOKS + PAUSES) * costs.quick_recognition_ns(means.quick_threads) if means.quick_threads else 0.0


def writing_ns(means: Means, costs: StageCosts) -> float:
    """For how long one caller's turn occupies the language model, if it serves nobody else meanwhile."""
    read = PROMPT_TOKENS + (CORRECTION_TOKENS if means.quick_threads else 0)
    return costs.tokens_ns(read, REPLY_TOKENS, means.language_model_threads) if means.writes_here else 0.0


def pause_ns(means: Means, costs: StageCosts) -> float:
    """How long the machine works on one pause: the words' end, the reply's first words, their sound.

    Behind a quick recognizer the other one is no part of it: it hears the turn while the reply's beginning is played.
    """
    if means.quick_threads:
        heard = costs.quick_recognition_ns(means.quick_threads)
    else:
        heard = costs.recognition_ns(means.recognizer_threads) if means.recognises_here else 0.0
    written = (
        costs.tokens_ns(PAUSE_PROMPT_TOKENS, PAUSE_REPLY_TOKENS, means.language_model_threads)
        if means.writes_here
        else 0.0
    )
    return heard + written + costs.first_chunk.median_ns


def by_work(means: Means, costs: StageCosts) -> tuple[int, str]:
    """How many callers keep the cores, the recognizers' workers and the language model busy for BUSIEST of the time."""
    turn_ns = TURN_S * SECOND_NS
    cores = plural(means.computing_cores, "whole core")
    workers = plural(means.recognizer_width, "worker")
    loads = [  # (share of it that one caller takes, what there is, in words)
        (work_ns(means, costs) / turn_ns / means.computing_cores, cores),
        (handling_ns(costs) / turn_ns, "the event loop's one thread"),
        (hearing_ns(means, costs) / turn_ns / means.recognizer_width, f"the recognizer's {workers}"),
        (
            quick_hearing_ns(means, costs) / turn_ns / means.quick_width,
            f"the quick recognizer's {plural(means.quick_width, 'worker')}",
        ),
        (writing_ns(means, costs) / turn_ns, "the language model"),
    ]
    load, what = max(loads)
    count = int(BUSIEST / load)
    return count, f"a turn every {TURN_S:g} s takes {load:.1%} of {what}, and {BUSIEST:.0%} carry {count}"


def by_pauses(means: Means, costs: StageCosts) -> tuple[int, str]:
    """How many callers' pauses coincide no more often than COINCIDENCE."""
    work = pause_ns(means, costs)
    workers = means.quick_width if means.quick_threads else means.recognizer_width
    share = min(0.99, work / (TURN_S * SECOND_NS * workers))
    others = math.log(1 - COINCIDENCE) / math.log(1 - share) if share > 0 else MOST_CONVERSATIONS
    count = 1 + min(MOST_CONVERSATIONS, int(others))
    places = f" on {workers} workers" if workers > 1 else ""
    text = (
        f"a pause is {work / MILLISECOND_NS:.0f} ms of work{places}, and with {count} at most {COINCIDENCE:.0%} of "
        f"pauses meet another"
    )
    return count, text


def by_memory(means: Means, costs: StageCosts) -> tuple[int, str]:
    """How many callers' contexts fit."""
    if means.memory_bytes is None:
        return MOST_CONVERSATIONS, "how much memory there is could not be found out"
    each = costs.caller_bytes + costs.context_bytes_a_token * means.context_tokens
    free = USABLE_MEMORY * means.memory_bytes - costs.base_bytes
    count = max(0, min(MOST_CONVERSATIONS, int(free / each)))
    many = f"{count} or more" if count == MOST_CONVERSATIONS else str(count)
    text = (
        f"{each / 1e6:.0f} MB for each in {USABLE_MEMORY:.0%} of {means.memory_bytes / 1e9:.1f} GB, less "
        f"{costs.base_bytes / 1e6:.0f} MB of models, hold {many}"
    )
    return count, text


def admit(means: Means, costs: StageCosts, *, given: int) -> tuple[int, Reason]:
    """How many callers to hold; `given` is the setting's number, 0 for none."""
    counts, texts = zip(*(bound(means, costs) for bound in (by_work, by_pauses, by_memory)), strict=True)
    planned = max(1, min(MOST_CONVERSATIONS, *counts))
    text = f"The least of three, 1 at least: {texts[0]}; {texts[1]}; {texts[2]}."
    return decide("callers", planned, text, setting="capacity.conversations", given=given or None)
