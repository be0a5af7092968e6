"""Pieces whose every sample can be told from every other and from silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.flow import SpeechPiece, TextChunk

if TYPE_CHECKING:
    from antiphon.core.flow import AudioFrame
    from antiphon.speak.playout import Playout

RATE_HZ = 24_000


def counting_piece(
    samples: int, *, first: int = 0, chars: tuple[int, int] = (0, 10), rate_hz: int = RATE_HZ
) -> SpeechPiece:
    """Sample k holds (first + k + 1) / 2**23, exact in float32; silent to an ear, but never zero.

    The piece says the reply's characters from chars[0] to chars[1], one mark per tenth of its length.
    """
    start, end = chars
    marks = {samples * tenth // 10: start + (end - start) * tenth // 10 for tenth in range(1, 10)}
    return SpeechPiece(
        pcm=((np.arange(samples) + first + 1) / 2**23).astype(np.float32),
        rate_hz=rate_hz,
        chunk=TextChunk(text="x" * (end - start), index=0, start_chars=start),
        marks=tuple((at, said) for at, said in marks.items() if at > 0),
    )


def tone_piece(samples: int, *, lead: int = 0, chars: tuple[int, int] = (0, 10), rate_hz: int = RATE_HZ) -> SpeechPiece:
    """`lead` samples of silence, then a square wave that can be heard from its first sample."""
    pcm = np.where(np.arange(samples) % 48 < 24, 0.5, -0.5).astype(np.float32)
    pcm[:lead] = 0.0
    start, end = chars
    return SpeechPiece(pcm=pcm, rate_hz=rate_hz, chunk=TextChunk(text="x" * (end - start), index=0, start_chars=start))


def drain(playout: Playout, now_ns: int) -> list[AudioFrame]:
    """All that is due by then."""
    frames = []
    while frame := playout.take(now_ns):
        frames.append(frame)
    return frames
