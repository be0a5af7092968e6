"""The values that flow through a conversation: sound in, words, text to speak, sound out.

    AudioFrame -> Transcript -> Message -> TextChunk -> SpeechPiece -> AudioFrame
                                Message -> ToolCall -> Message

Units: positions are int samples since the stream opened, moments are int ns of the monotonic clock, text
positions are int characters of the reply's text as the model generated it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.core.clock import samples_to_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    Pcm: TypeAlias = npt.NDArray[np.float32]  # (samples,) mono in [-1, 1]

HEARING_RATE_HZ = 16_000  # everything in hear/ works at this rate; sound is brought to it once, at the door


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """A run of samples with its place in the stream and the moment it was heard."""

    pcm: Pcm  # (samples,) float32 mono in [-1, 1]; a view, not to be kept or written to
    rate_hz: int
    pos_samples: int  # index of pcm[0] since the stream opened
    captured_ns: int  # when pcm[0] met the microphone, not when we received it

    @property
    def end_samples(self) -> int:
        """The position just after the last sample."""
        return self.pos_samples + len(self.pcm)

    @property
    def end_ns(self) -> int:
        """When the last sample had been captured."""
        return self.captured_ns + samples_to_ns(len(self.pcm), self.rate_hz)


@dataclass(frozen=True, slots=True)
class Certainty:
    """How likely a recognizer finds the words that it wrote, as log probabilities in nats, at most 0."""

    last: float  # of the last word's last token
    least: float  # of the token that it is least sure of


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What a turn is believed to say, as far as it was heard."""

    text: str  # of the whole turn, from its first word
    heard_samples: int  # position at HEARING_RATE_HZ up to which the sound was decoded
    stable_chars: int = 0  # text[:stable_chars] stays while the caller speaks; after a pause it may be corrected
    is_final: bool = False  # decoded after a pause rather than while the caller speaks
    end_probability: float | None = None  # the recognizer's own belief that the sentence ended, where it has one
    certainty: Certainty | None = None  # of the words of the window that was heard last, where the recognizer tells


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a language model knows of a tool."""

    name: str  # letters, digits, "_" and "-", at most 64 of them
    description: str  # what it does and when to use it
    parameters: Mapping[str, object]  # a JSON schema of type "object"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a language model wants done."""

    id: str  # its own within a conversation
    name: str
    arguments: str  # a JSON object as the model wrote it, which may be none


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation, as a language model reads it.

    With a `call`, an assistant's message made that call and holds no text, and a tool's message says what came of it.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    call: ToolCall | None = None
    item: str = field(default="", compare=False)  # what the conversation's owner knows it by; the same words are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a language model read and wrote, in its own tokens."""

    input_tokens: int = 0  # the whole prompt, whether it was read for this or cached
    cached_tokens: int = 0  # of these, those that had not to be read again
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChunk:
    """A run of reply text that is synthesised in one go."""

    text: str  # exactly as generated, the white space around it included
    index: int  # 0 for the first chunk of a reply
    start_chars: int  # where the text begins in the reply; chunks lie end to end
    is_last: bool = False

    @property
    def end_chars(self) -> int:
        return self.start_chars + len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPiece:
    """Synthesised sound, and which text it says by when."""

    pcm: Pcm  # (samples,) float32 mono in [-1, 1], edges trimmed and faded
    rate_hz: int
    chunk: TextChunk
    marks: tuple[tuple[int, int], ...] = ()  # (sample of pcm, chars of the reply heard by then), both rising

    def chars_heard(self, samples: int) -> int:
        """How many characters of the reply have been said once `samples` of this piece were played.

        Whole at the borders; inside, the latest mark at or before `samples`.
        """
        if samples >= len(self.pcm):
            return self.chunk.end_chars
        heard = self.chunk.start_chars
        for at_samples, chars in self.marks:
            if at_samples > samples:
                break
            heard = chars
        return heard
