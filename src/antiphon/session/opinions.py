"""A turn's words or sound in, an engine's opinion on whether it is over out; one that fails is told and is no opinion.

Asked for in the pause, and before that where the voice falters. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.core.stamps import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import Message, Pcm, ToolSpec
    from antiphon.session.record import TurnRecord
    from antiphon.session.workshop import Workshop


async def end_mass(
    shop: Workshop, record: TurnRecord, messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> float | None:
    """How likely the last message's words end a sentence, 0 to 1, by the language model; it has read them then."""
    try:
        with record.span(Stage.JUDGE, shop.engines.language_model.name):
            return await shop.thinking.sentence_end_mass(messages, tools=tools)
    except AntiphonError as error:  # the other evidence decides, and a reply may still come
        shop.report(Stage.JUDGE, error)
        return None


async def tone(shop: Workshop, record: TurnRecord, pcm: Pcm) -> float | None:
    """How finished the voice sounds, 0 to 1, by the prosody judge; None where there is none."""
    judge = shop.engines.prosody
    if judge is None:
        return None
    try:
        with record.span(Stage.PROSODY, judge.name):
            return await judge.probability(pcm)
    except AntiphonError as error:
        shop.report(Stage.PROSODY, error)
        return None
