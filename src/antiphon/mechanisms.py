"""What makes replies fast and turns right, by name, and the setting that turns each off: so that its worth shows.

`--without NAME[,NAME]` on the command line and in bench/ applies these; docs/latency.md and docs/scheduling.md say what
each is worth, and which are still without a figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """One thing that can be left out."""

    does: str
    off: str  # the setting, as `--set` takes it


MECHANISMS = {
    "speculation": Mechanism(
        does="the reply is written in the pause, before the turn is confirmed", off="turn.speculate=false"
    ),
    "prefill": Mechanism(
        does="the language model reads the stable words while the caller speaks", off="turn.read_ahead=false"
    ),
    "opening": Mechanism(
        does="a reply to the words so far is begun and voiced while the caller speaks, and played if it still fits",
        off="turn.open_ahead=false",
    ),
    "prosody": Mechanism(
        does="the tone of voice is judged, with the words or where they leave doubt", off="models.prosody="
    ),
    "doubt": Mechanism(
        does="opinions beyond the words are asked for only where these leave doubt, and the reply is written first",
        off="turn.doubt_ms=0",
    ),
    "foresight": Mechanism(
        does="a pause's words and tone are judged, and a reply begun, at its first silent frame, before it is one",
        off="turn.foresee=false",
    ),
    "two-pass": Mechanism(
        does="a quick recognizer's words begin the reply, a careful one's correct it as it goes on",
        off="models.quick_recognizer=",
    ),
    "small-first-chunk": Mechanism(
        does="the first chunk is a few words, not a sentence", off="chunker.small_first=false"
    ),
    "overlap-judging": Mechanism(
        does="what is said over a reply decides whether it stops, not how long alone", off="turn.judge_overlap=false"
    ),
    "ducking": Mechanism(does="a voice over the reply softens it for a moment", off="turn.duck_ms=0"),
    "retraction": Mechanism(
        does="a reply that has said nothing yet gives way at once to a caller who goes on", off="turn.retract_ms=0"
    ),
    "scheduling": Mechanism(
        does="engine calls wait for the cores in the order of a policy, not of the system",
        off="scheduling.enabled=false",
    ),
    "laxity": Mechanism(does="the more urgent, and who can wait least, goes first", off="scheduling.order=fifo"),
    "yielding": Mechanism(
        does="writing and reading ahead stop at a token for something more urgent", off="scheduling.yielding=false"
    ),
    "overtaking": Mechanism(
        does="an urgent job begins beside lesser ones, whose threads the system holds back",
        off="scheduling.overtaking=false",
    ),
    "batching": Mechanism(
        does="callers who wait for the same step of the recognizer take it together", off="scheduling.batching=false"
    ),
    "shares": Mechanism(does="neither hearing nor speaking starves the other of cores", off="scheduling.shares=false"),
    "admission": Mechanism(
        does="a caller whom the cores have no time for is turned away", off="scheduling.admission=false"
    ),
    "gpu-slicing": Mechanism(
        does="slices of the GPU's time begin in the scheduler's order, one ahead at most", off="gpu.slicing=false"
    ),
    "gpu-graphs": Mechanism(does="a slice is one replay of a captured graph", off="gpu.graphs=false"),
    "gpu-priorities": Mechanism(
        does="a slice is captured at the stream level of its class", off="gpu.priorities=false"
    ),
    "gpu-partitions": Mechanism(
        does="replies and the rest compute on multiprocessors of their own", off="gpu.partitions=false"
    ),
    "gpu-hold-back": Mechanism(
        does="what nobody waits for stays back while the GPU's memory is in pieces", off="gpu.hold_back=false"
    ),
    "gpu-batching": Mechanism(
        does="how many callers a step of writing takes follows from what steps take", off="gpu.adaptive_batch=false"
    ),
    "audio-process": Mechanism(
        does="sound is moved by a process of its own, which no model's lock delays", off="sound.own_process=false"
    ),
    "audio-policy": Mechanism(
        does="what moves sound runs before everything else, as the rights allow", off="cpu.audio_policy=normal"
    ),
    "audio-tuning": Mechanism(
        does="a card's period and what is worth waking for follow from lateness and loss", off="sound.adapt=false"
    ),
    "audio-mmap": Mechanism(
        does="samples are read and written in ALSA's own memory, not through PortAudio", off="sound.system=portaudio"
    ),
    "playout-wake": Mechanism(
        does="finished speech wakes the loudspeaker by eventfd, not by its next period", off="sound.wake=false"
    ),
    "spoken-form": Mechanism(does="markup is left out and figures are read out", off="spoken_form.enabled=false"),
}


def settings_without(names: Iterable[str]) -> tuple[str, ...]:
    """The settings that leave these mechanisms out; a name may be a comma-separated list.

    Raises:
        CallerError: there is no such mechanism.
    """
    settings = []
    for name in (part.strip() for each in names for part in each.split(",")):
        if name not in MECHANISMS:
            near = get_close_matches(name, MECHANISMS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(MECHANISMS)}"
            raise CallerError(f"there is no mechanism {name!r}", hint=hint)
        settings.append(MECHANISMS[name].off)
    return tuple(settings)
