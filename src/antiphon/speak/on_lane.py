"""Pieces that a voice makes one by one in, the same made on its lane out.

Threads: the pieces are made on the lane, one at a time; all else happens on the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import EngineError
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Job

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from antiphon.core.flow import SpeechPiece, TextChunk
    from antiphon.scheduling.lanes import Lane


async def speak_on(
    lane: Lane, pieces: Iterator[SpeechPiece], chunk: TextChunk, *, name: str, estimate_ns: int
) -> AsyncGenerator[SpeechPiece, None]:
    """The pieces of `chunk`, each made when it is asked for. `name` is the voice's, in errors.

    Raises:
        EngineError: the voice cannot read the text, or the model failed.
    """
    job = Job(stage=Stage.SPEAK, estimate_ns=estimate_ns)
    while True:
        try:
            piece = await lane.run(job, lambda: next(pieces, None))
        except EngineError:
            raise
        except Exception as error:  # the reading rules fail in as many ways as there are texts
            message = f"{name} failed on a chunk of {len(chunk.text)} characters: {type(error).__name__}"
            raise EngineError(message, hint="leave the chunk out; the next one is not affected") from error
        if piece is None:
            return
        yield piece
