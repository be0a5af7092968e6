"""One conversation: sound in, events and sound out. It feeds the dialogue's machine and carries out its commands."""

from antiphon.session.conversation import Session, SessionSettings
from antiphon.session.engines import Engines

__all__ = ["Engines", "Session", "SessionSettings"]
