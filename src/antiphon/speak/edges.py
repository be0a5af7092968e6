"""The sound of a piece as a model gave it in, the piece as it is played out: trimmed, faded, its pause behind it.

A model leaves silence around what it says, of a length that nobody asked for. It goes, and the pause that the text's
last mark deserves takes its place. What the sound dies away in is kept where there is room for it.
Units: samples at the voice's rate. Threads: any, pure. What it does not know: models, and how text is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.level import fade
from antiphon.core.flow import SpeechPiece
from antiphon.speak.alignment import rising
from antiphon.speak.pauses import pause_after_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.core.flow import Pcm, TextChunk

FADE_IN_MS = 2  # silence to the first audible sample: short, or the burst of a "t" or "k" is lost
FADE_OUT_MS = 5
DECAY_MS = 60  # of the sound's own dying away that a pause begins with


def trimmed_piece(
    pcm: Pcm, rate_hz: int, part: TextChunk, *, span: tuple[int, int], ends: Iterable[tuple[float, int]]
) -> SpeechPiece:
    """The piece that says `part`, whose audible samples are those of `span`.

    `ends` are words in order: the sample of `pcm` at which one ends, and the characters of the reply said by then.
    """
    start, end = span
    marks = [(min(max(round(at) - start, 0), end - start), chars) for at, chars in ends]
    marks.append((end - start, part.start_chars + len(part.text.rstrip())))  # nothing sounds after this
    pause_samples = 0 if part.is_last else rate_hz * pause_after_ms(part.text) // 1000
    decay_samples = rate_hz * DECAY_MS // 1000
    last = min(end + (decay_samples if part.is_last else min(decay_samples, pause_samples)), len(pcm))
    sound = fade(pcm[start:last], rate_hz, in_ms=FADE_IN_MS, out_ms=FADE_OUT_MS)
    silence = np.zeros(max(end + pause_samples - last, 0), np.float32)
    return SpeechPiece(
        pcm=np.concatenate([sound, silence]).clip(-1.0, 1.0), rate_hz=rate_hz, chunk=part, marks=rising(marks)
    )
