"""What a user may say about the machine's own microphone and loudspeaker -> values that were checked. Threads: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from antiphon.core.errors import check_range

SoundSystem: TypeAlias = Literal["auto", "alsa", "portaudio", "paced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundSettings:
    """How `antiphon talk` hears and is heard.

    Raises:
        CallerError: a value is out of its range.
    """

    system: Annotated[
        SoundSystem, "through which sound goes; auto: alsa, else portaudio; paced: no device, a clock alone"
    ] = "auto"
    input: Annotated[str, "the microphone, by its name there; empty: the default; of paced: a file that it says"] = ""
    output: Annotated[str, "the loudspeaker; as input"] = ""
    deadline_ms: Annotated[float, "how old a captured sample may be when the audio process hands it on"] = 8.0
    cushion_ms: Annotated[float, "how late a reply's frames may come without a gap; it begins so much later"] = 20.0
    adapt: Annotated[bool, "periods and wake-ups follow from how late and how well it went"] = True
    own_process: Annotated[bool, "sound is moved by a process of its own; without, by a thread of this one"] = True
    wake: Annotated[bool, "a reply's frame wakes the loudspeaker; without, it waits for the next period"] = True

    def __post_init__(self) -> None:
        check_range("deadline_ms", self.deadline_ms, 1, 1000)
        check_range("cushion_ms", self.cushion_ms, 0, 500)
