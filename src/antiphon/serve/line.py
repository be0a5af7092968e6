"""What the server needs of whoever speaks the protocol, and what it tells them about a conversation.

`realtime` has the real one; tests put a small one in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.session import Session, SessionSettings
    from antiphon.session.events import Event

Send: TypeAlias = Callable[[dict[str, object]], None]


class Line(Protocol):
    """One client's side of a conversation."""

    def begin(self) -> None:
        """Greet the client; once, before anything else."""
        ...

    def take_gently(self, message: str | bytes) -> Iterator[None]:
        """One message of the client's, in steps of a few milliseconds; whatever it holds, this does not raise."""
        ...

    def tell(self, event: Event) -> None:
        """Something happened in the session."""
        ...

    def fail(self, code: str, message: str) -> None:
        """Something is wrong at the server's end: an `error` event."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Under what terms a client is served."""

    id: str  # of the session, "sess_..."
    model: str  # that the client asked for; empty: none
    models: tuple[str, ...]
    voices: tuple[str, ...]
    settings: SessionSettings  # that the conversation begins with
    expires_at_s: int  # epoch seconds
    language: str = ""  # that is heard, by its code; empty: nothing is said of it


PickUp: TypeAlias = "Callable[[Session, Terms, Send], Line]"
