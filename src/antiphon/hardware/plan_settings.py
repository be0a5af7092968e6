"""What a user may say about the plan: threads, cores, niceness, batches and callers -> values that were checked.

0, -1 and "" leave a choice to the plan (`antiphon plan` prints each with its reason). Whether a value fits the machine
is the plan's to say; here only its range and its form count. Threads: pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Annotated, Literal, TypeAlias

from antiphon.core.errors import CallerError, check_range

AudioPolicy: TypeAlias = Literal["auto", "fifo", "deadline", "rtkit", "nice", "normal"]
Device: TypeAlias = Literal["cpu", "cuda"]
RecognizerDevice: TypeAlias = Literal["auto", "cpu", "cuda"]

MOST_THREADS = 256
MOST_WIDTH = 64
MOST_BATCH = 64
MOST_CONVERSATIONS = 256
MOST_CORE = 4095  # the highest number that Linux gives
LEAST_NICE, MOST_NICE = -1, 19  # -1 leaves it to the plan: engines are never put before the event loop, which has 0
ALL_CORES = "all"
PLAN = "the plan decides"
_CORES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSettings:
    """How each engine computes. Threads, widths and batches of 0, niceness of -1 and cores of "" are the plan's choice.

    Niceness adds to the process's own; the event loop has none.

    Raises:
        CallerError: a value is out of its range, or cores are written as nothing that can be read.
    """

    recognizer_threads: Annotated[int, "speech recognition, for one call; 0: the plan decides"] = 0
    language_model_threads: Annotated[int, "writing replies; 0: the plan decides"] = 0
    quick_recognizer_threads: Annotated[int, "of the quick recognizer, for one call; 0: the plan decides"] = 0
    prosody_threads: Annotated[int, "judging the tone of voice, beside the recognizer"] = 1
    voice_threads: Annotated[int, "synthesis; hibari gains little from more"] = 1
    recognizer_cores: Annotated[str, "logical cores, 0-3,8; all: any of them; empty: the plan decides"] = ""
    language_model_cores: Annotated[str, "as recognizer_cores"] = ""
    quick_recognizer_cores: Annotated[str, "as recognizer_cores"] = ""
    prosody_cores: Annotated[str, "as recognizer_cores"] = ""
    voice_cores: Annotated[str, "as recognizer_cores"] = ""
    recognizer_nice: Annotated[int, "how far behind the event loop, 0 to 19; -1: the plan decides"] = -1
    language_model_nice: Annotated[int, "as recognizer_nice"] = -1
    quick_recognizer_nice: Annotated[int, "as recognizer_nice"] = -1
    prosody_nice: Annotated[int, "as recognizer_nice"] = -1
    voice_nice: Annotated[int, "as recognizer_nice"] = -1
    background_nice: Annotated[int, "of what nobody waits for; as recognizer_nice"] = -1
    recognizer_width: Annotated[int, "calls at once, each with recognizer_threads; 0: the plan decides"] = 0
    quick_recognizer_width: Annotated[int, "calls at once; 0: the plan decides"] = 0
    prosody_width: Annotated[int, "calls at once; 0: the plan decides"] = 0
    voice_width: Annotated[int, "calls at once; 0: the plan decides"] = 0
    recognizer_batch: Annotated[int, "most callers in one call; 0: the plan decides"] = 0
    language_model_batch: Annotated[int, "most callers in one step; 0: the plan decides"] = 0
    audio_policy: Annotated[AudioPolicy, "how the thread of a sound card is scheduled; auto: as the rights allow"] = (
        "auto"
    )

    def __post_init__(self) -> None:
        ranges = {
            "threads": (0, MOST_THREADS),
            "nice": (LEAST_NICE, MOST_NICE),
            "width": (0, MOST_WIDTH),
            "batch": (0, MOST_BATCH),
        }
        for item in fields(self):
            value, kind = getattr(self, item.name), item.name.rpartition("_")[2]
            if kind in ranges:
                check_range(item.name, value, *ranges[kind])
            elif kind == "cores" and value not in ("", ALL_CORES):
                read_cores(item.name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacitySettings:
    """How much is taken on at once.

    Raises:
        CallerError: a value is out of its range.
    """

    conversations: Annotated[int, "at the same time; each keeps a prompt cache of its own; 0: the plan decides"] = 0
    context_tokens: Annotated[int, "of the language model, for each conversation; what is older is forgotten"] = 2048

    def __post_init__(self) -> None:
        check_range("conversations", self.conversations, 0, MOST_CONVERSATIONS)
        check_range("context_tokens", self.context_tokens, 256, 2**20)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSettings:
    """How a GPU is shared, where there is one.

    Raises:
        CallerError: a value is out of its range.
    """

    device: Annotated[Device, "where speech is recognised and replies are written; without a GPU cuda means cpu"] = (
        "cpu"
    )
    recognizer: Annotated[RecognizerDevice, "where speech is recognised; auto: where gpu.device says"] = "auto"
    reply_multiprocessors: Annotated[
        int, "kept for writing replies; 0: the plan decides, -1: by the shares of scheduling"
    ] = 0
    context_mib: Annotated[int, "of its memory for conversations' contexts; 0: the plan decides"] = 0
    reply_batch: Annotated[int, "most callers in one step of writing; 0: the plan decides"] = 0
    slicing: Annotated[bool, "slices begin in the scheduler's order; without, as they come"] = True
    graphs: Annotated[bool, "what a slice does is captured once, and replayed"] = True
    priorities: Annotated[bool, "streams have levels, replies the first"] = True
    partitions: Annotated[bool, "replies and the rest compute on multiprocessors of their own"] = True
    hold_back: Annotated[bool, "what nobody waits for stays back while the memory is in pieces"] = True
    hold_back_above: Annotated[float, "1 - largest free block / all free memory: beyond, the memory is in pieces"] = (
        0.35
    )
    adaptive_batch: Annotated[bool, "how many callers a step takes follows from what steps take"] = True
    most_waiting: Annotated[int, "slices; beyond, the least urgent that came last makes room, or is refused"] = 256

    def __post_init__(self) -> None:
        check_range("reply_multiprocessors", self.reply_multiprocessors, -1, 1024)
        check_range("context_mib", self.context_mib, 0, 2**24)
        check_range("reply_batch", self.reply_batch, 0, MOST_BATCH)
        check_range("hold_back_above", self.hold_back_above, 0.05, 1)
        check_range("most_waiting", self.most_waiting, 1, 65_536)


def read_cores(name: str, text: str) -> tuple[int, ...]:
    """The logical cores of "0-3,8", rising, each once; `name` is the setting's, in errors.

    Raises:
        CallerError: the text is written in another way, or names a core that no machine has.
    """
    found: set[int] = set()
    plain = text.replace(" ", "")
    if not _CORES.fullmatch(plain):
        raise CallerError(f"{name} is {text!r}", hint="write logical cores as 0-3,8, or all, or nothing")
    for part in plain.split(","):
        first, _, last = part.partition("-")
        lowest, highest = int(first), int(last or first)
        check_range(name, highest, lowest, MOST_CORE)
        found.update(range(lowest, highest + 1))
    return tuple(sorted(found))
