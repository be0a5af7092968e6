"""One pass of writing a reply: text as the model streams it in, chunks out, and what was made of them so far.

A reply has one pass, and one more after each round of tools. Threads: the event loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.core.flow import TextChunk, ToolCall
    from antiphon.think.chunker import Chunker
    from antiphon.think.reasoning import ReasoningFilter
    from antiphon.think.spoken_form import SpokenForm


@dataclass(slots=True)
class WrittenPass:
    """One pass of writing: from text as the model streams it to chunks."""

    reasoning: ReasoningFilter
    spoken: SpokenForm
    chunker: Chunker
    start_said: int  # of the reply, before this pass
    start_index: int
    is_unsure: bool  # its words may be corrected: only its first chunk is voiced until they are known
    calls: list[ToolCall] = field(default_factory=list)
    written: str = ""  # what counts as the reply's text
    raw: str = ""  # as the model wrote it
    pieces: int = 0
    held: list[TextChunk] = field(default_factory=list)  # its first chunk, once there is one
    leapt: int = 0  # tokens of the opening that were taken for its own before the model had written them

    def placed(self, chunk: TextChunk, *, is_last: bool) -> TextChunk:
        """A chunk of this pass as a chunk of the reply."""
        return replace(
            chunk,
            index=chunk.index + self.start_index,
            start_chars=chunk.start_chars + self.start_said,
            is_last=is_last,
        )
