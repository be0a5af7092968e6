"""What the server needs of whoever speaks the protocol, and what it tells them about a conversation.

`realtime` has the real one; tests put a small one in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.core.flow import AudioFrame
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

    def hear(self, frame: AudioFrame) -> None:
        """Sound of the client's that came beside its messages; never raises. None comes where `Terms.track` is None."""
        ...

    def tell(self, event: Event) -> None:
        """Something happened in the session."""
        ...

    def fail(self, code: str, message: str) -> None:
        """Something is wrong at the server's end: an `error` event."""
        ...


class Track(Protocol):
    """Where a reply's sound goes if it travels beside the messages; it is paced here, and never waits for long."""

    def play(self, frame: AudioFrame) -> None:
        """Send this behind what waits; it is due now."""
        ...

    def clear(self) -> None:
        """Send nothing of what waits; what left before is on its way and will be heard."""
        ...

    def when_sent(self, tell: Callable[[], None]) -> None:
        """Call this once, when all that waits now has left; `clear` forgets it."""
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
    track: Track | None = None  # beside the messages; None: sound travels inside them
    language: str = ""  # that is heard, by its code; empty: nothing is said of it


PickUp: TypeAlias = "Callable[[Session, Terms, Send], Line]"
