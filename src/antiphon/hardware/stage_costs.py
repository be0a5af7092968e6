"""A machine and the chosen models -> what each stage costs there, until it is measured.

The reference is a 2-core AMD EPYC (Zen 3, AVX2) without other load, its figures those of the engines' own benches (P95
with some). Elsewhere they follow a rough rule, good to about a factor of two: time falls with instructions by SPEED,
with threads by their number to the power of THREAD_GAIN up to MOST_USEFUL_THREADS, and rises with a model's weights.
Who needs to know measures. Units: ns and bytes. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, Protocol

from antiphon.core.clock import MILLISECOND_NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.hardware.facts import MachineFacts

MIB = 2**20
_MICROSECOND_NS = 1000
THREAD_GAIN = 0.85  # two threads take 0.55 of the time of one: smart-turn 37 of 69 ms
QUICK_THREAD_GAIN = 0.44  # Moonshine 62 of 84 ms: its decoder computes a token at a time
MOST_USEFUL_THREADS = 16
SPEED = (  # time against AVX2 for 8-bit weights: the first that all are there
    (frozenset({"amx_int8"}), 0.6),
    (frozenset({"avx512_vnni"}), 0.75),
    (frozenset({"avx_vnni"}), 0.85),
    (frozenset({"avx512f"}), 0.9),
    (frozenset({"avx2"}), 1.0),
    (frozenset({"i8mm"}), 1.0),
    (frozenset({"asimddp"}), 1.5),
    (frozenset({"asimd"}), 3.0),
)
UNKNOWN_SPEED = 1.5
SLOW_SPEED = 3.0  # flags are known, and none of these is among them
TINY_RECOGNIZER_BYTES = 78_090_594
TINY_MOONSHINE_BYTES = 43_943_830
MOONSHINE_COST = 0.6  # of Whisper's time, for each byte of weights: 62 ms with 44 MB, 178 with 78
MOONSHINE_MEMORY = 2.7  # times its files: 113 MiB
SMALL_LANGUAGE_MODEL_BYTES = 98_362_432
PIPER_COST = 6.0  # times the default voice: 0.26 against 0.03 s for a first chunk, 0.17 against 0.04 s for a second
BASE_BYTES = 480 * MIB  # of the process: 705 MiB with the default models, less five contexts
CALLER_BYTES = 3 * MIB  # of a conversation beside its context: 0.6 idle, 2 of sound and features in a turn
CONTEXT_BYTES_A_TOKEN = ((100_000_000, 23_040), (2 * 10**9, 28_700), (6 * 10**9, 57_300))  # up to so large a model
LARGE_CONTEXT_BYTES_A_TOKEN = 197_000
UNKNOWN_MODEL_BYTES = 10**9


class Choice(Protocol):
    """Which model does what, by name; `antiphon.config.ModelChoice` is one."""

    @property
    def voice_detector(self) -> str: ...
    @property
    def prosody(self) -> str: ...
    @property
    def recognizer(self) -> str: ...
    @property
    def quick_name(self) -> str: ...
    @property
    def language_model(self) -> str: ...
    @property
    def voice(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call takes, by itself on the machine."""

    median_ns: int
    p95_ns: int

    def times(self, factor: float) -> Cost:
        return Cost(median_ns=max(1, round(self.median_ns * factor)), p95_ns=max(1, round(self.p95_ns * factor)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """What the stages take, and where these figures come from."""

    voice_frame: Cost  # voice detection, 32 ms of sound
    prosody: Cost  # one judgement, one thread
    encode: Cost  # what the recognizer makes of a short turn
    decode: Cost  # and its words, about twelve
    quick_recognition: (
        Cost  # of a short turn by a quick recognizer that has looked before; where there is none, a guess
    )
    prompt_token: Cost  # of the language model, one token read
    generated_token: Cost  # and one written
    first_chunk: Cost  # three to six words voiced, one thread
    voice_second: Cost  # a second of speech voiced, one thread
    recognizer_threads: int  # that encode and decode were measured with
    quick_recognizer_threads: int  # that quick_recognition was
    language_model_threads: int  # that tokens were
    base_bytes: int  # of the process without conversations
    caller_bytes: int = CALLER_BYTES
    context_bytes_a_token: int
    origin: Literal["reference", "measured"]
    taken: str = ""  # when it was measured, ISO 8601
    waited: float = 0.0  # share of the measuring threads' time that other programs kept them from a core

    def recognition_ns(self, threads: int) -> float:
        """One short turn heard, with so many threads."""
        return (self.encode.median_ns + self.decode.median_ns) * _by_threads(self.recognizer_threads, threads)

    def quick_recognition_ns(self, threads: int) -> float:
        """A short turn's end heard by the quick recognizer, with so many threads."""
        gain = QUICK_THREAD_GAIN
        return self.quick_recognition.median_ns * _by_threads(self.quick_recognizer_threads, threads, gain=gain)

    def tokens_ns(self, prompt: float, generated: float, threads: int) -> float:
        """So many tokens read and written, with so many threads."""
        alone = prompt * self.prompt_token.median_ns + generated * self.generated_token.median_ns
        return alone * _by_threads(self.language_model_threads, threads)


REFERENCE = StageCosts(
    voice_frame=Cost(median_ns=150 * _MICROSECOND_NS, p95_ns=220 * _MICROSECOND_NS),
    prosody=Cost(median_ns=80 * MILLISECOND_NS, p95_ns=110 * MILLISECOND_NS),
    encode=Cost(median_ns=83 * MILLISECOND_NS, p95_ns=130 * MILLISECOND_NS),
    decode=Cost(median_ns=95 * MILLISECOND_NS, p95_ns=120 * MILLISECOND_NS),
    quick_recognition=Cost(median_ns=62 * MILLISECOND_NS, p95_ns=80 * MILLISECOND_NS),
    prompt_token=Cost(median_ns=4_000 * _MICROSECOND_NS, p95_ns=5_000 * _MICROSECOND_NS),
    generated_token=Cost(median_ns=7_300 * _MICROSECOND_NS, p95_ns=10_000 * _MICROSECOND_NS),
    first_chunk=Cost(median_ns=25 * MILLISECOND_NS, p95_ns=44 * MILLISECOND_NS),
    voice_second=Cost(median_ns=15 * MILLISECOND_NS, p95_ns=40 * MILLISECOND_NS),
    recognizer_threads=2,
    quick_recognizer_threads=2,
    language_model_threads=2,
    base_bytes=BASE_BYTES,
    context_bytes_a_token=CONTEXT_BYTES_A_TOKEN[0][1],
    origin="reference",
)
QUICK_FIELDS = ("quick_recognition", "quick_recognizer_threads")  # of no account where there is no quick recognizer
TIMES = tuple(item.name for item in fields(StageCosts) if isinstance(getattr(REFERENCE, item.name), Cost))


def is_served(language_model: str) -> bool:
    """Whether the language model computes elsewhere, behind an address."""
    return "://" in language_model


def is_moonshine(recognizer: str) -> bool:
    """Whether it is Moonshine, not Whisper, as far as a catalogue's or a folder's name tells."""
    return PurePath(recognizer).name.startswith("moonshine")


def reference_costs(facts: MachineFacts, choice: Choice, sizes: Mapping[str, int]) -> StageCosts:
    """The reference's figures, brought to this machine and these models by the rule above.

    `sizes` are the models' files in bytes, by name; a model that is not among them is taken for UNKNOWN_MODEL_BYTES,
    except that the default ones are known.
    """
    speed, _ = speed_of(facts)
    heard_bytes = _size(choice.recognizer, sizes, TINY_RECOGNIZER_BYTES, default="whisper-tiny.en")
    heard = heard_bytes / TINY_RECOGNIZER_BYTES * (MOONSHINE_COST if is_moonshine(choice.recognizer) else 1.0)
    quick_bytes, quick = _quick(choice.quick_name, sizes)
    model_bytes = _size(choice.language_model, sizes, SMALL_LANGUAGE_MODEL_BYTES, default="smollm2-135m")
    written = model_bytes / SMALL_LANGUAGE_MODEL_BYTES
    voiced = PIPER_COST if choice.voice.startswith("piper") else 1.0
    factors = dict.fromkeys(TIMES, 1.0) | {"encode": heard, "decode": heard}
    factors |= {"quick_recognition": quick}
    factors |= {"prompt_token": written, "generated_token": written, "first_chunk": voiced, "voice_second": voiced}
    times = {name: getattr(REFERENCE, name).times(speed * factor) for name, factor in factors.items()}
    served = is_served(choice.language_model)
    more_bytes = _in_memory(choice.recognizer, heard_bytes) - TINY_RECOGNIZER_BYTES
    more_bytes += _in_memory(choice.quick_name, quick_bytes)
    more_bytes += (0 if served else model_bytes) - SMALL_LANGUAGE_MODEL_BYTES
    return replace(
        REFERENCE,
        **times,
        base_bytes=max(64 * MIB, BASE_BYTES + more_bytes),
        context_bytes_a_token=0 if served else context_bytes_a_token(model_bytes),
    )


def speed_of(facts: MachineFacts) -> tuple[float, str]:
    """(time against the reference, which instructions that is for)."""
    flags = facts.cpu.flags
    if flags is None:
        return UNKNOWN_SPEED, "unknown instructions"
    for wanted, factor in SPEED:
        if wanted <= flags:
            return factor, " ".join(sorted(wanted))
    return SLOW_SPEED, "no fast 8-bit instructions"


def context_bytes_a_token(model_bytes: int) -> int:
    """What one token of a conversation's context takes, by the size of the model; rough, for heads differ."""
    for largest, size in CONTEXT_BYTES_A_TOKEN:
        if model_bytes <= largest:
            return size
    return LARGE_CONTEXT_BYTES_A_TOKEN


def _quick(name: str, sizes: Mapping[str, int]) -> tuple[int, float]:
    """(bytes of the quick recognizer, its time against the reference's); (0, 1) for none."""
    if not name:
        return 0, 1.0
    size = _size(name, sizes, TINY_MOONSHINE_BYTES, default="moonshine-tiny")
    return size, size / TINY_MOONSHINE_BYTES / (1.0 if is_moonshine(name) else MOONSHINE_COST)


def _in_memory(recognizer: str, size_bytes: int) -> int:
    return round(size_bytes * MOONSHINE_MEMORY) if is_moonshine(recognizer) else size_bytes


def _size(name: str, sizes: Mapping[str, int], default_bytes: int, *, default: str) -> int:
    return sizes.get(name) or (default_bytes if name.startswith(default) else UNKNOWN_MODEL_BYTES)


def _by_threads(measured: int, threads: int, *, gain: float = THREAD_GAIN) -> float:
    most = min(threads, MOST_USEFUL_THREADS)
    return float((min(measured, MOST_USEFUL_THREADS) / max(1, most)) ** gain)
