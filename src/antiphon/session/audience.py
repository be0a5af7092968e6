"""Who hears how a reply comes along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from antiphon.core.flow import SpeechPiece
    from antiphon.session.draft import DraftWork


class Audience(Protocol):
    """Who hears how a reply comes along."""

    def voiced(self, draft: DraftWork, piece: SpeechPiece) -> None:
        """A piece of it was queued to be heard."""
        ...

    def written(self, draft: DraftWork) -> None:
        """There is more of a reply that is only written."""
        ...

    def complete(self, draft: DraftWork) -> None:
        """All of a reply that is only written is there."""
        ...
