"""A session and the terms of its client -> the wire layer's end of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.clock import MonotonicClock
from antiphon.serve.realtime.call import Call, CallSetup

if TYPE_CHECKING:
    from antiphon.serve.line import Line, Send, Terms
    from antiphon.session import Session


def pick_up(session: Session, terms: Terms, send: Send) -> Line:
    """A call in the Realtime protocol."""
    setup = CallSetup(
        id=terms.id,
        model=terms.model or terms.models[0],
        models=terms.models,
        voices=terms.voices,
        language=terms.language,
        track=terms.track,
        instructions=terms.settings.instructions,
        max_tokens=terms.settings.max_tokens,
        expires_at_s=terms.expires_at_s,
    )
    return Call(session, setup, clock=MonotonicClock(), send=send)
