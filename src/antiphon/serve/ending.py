"""Why a conversation over the network ends -> what its client is told: an error, a close code and a reason."""

from __future__ import annotations

from dataclasses import dataclass

NORMAL, GOING_AWAY, POLICY, INTERNAL, TRY_LATER = 1000, 1001, 1008, 1011, 1013
KEY_REFUSED = 3000  # as the protocol's hosted server closes on a wrong key


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One way to end."""

    label: str  # in metrics and logs; there are few
    close_code: int = NORMAL
    code: str = ""  # of the error event that goes before; empty: none
    message: str = ""  # of the error event, and the close's reason

    @property
    def reason(self) -> str:
        """What fits into a close frame."""
        return self.message.encode()[:120].decode(errors="ignore")


LEFT = Ending(label="client_left")
HUNG_UP = Ending(label="hung_up", message="the call was hung up")
OVER = Ending(label="conversation_over", message="the conversation is over")
SLOW = Ending(
    label="slow_client",
    close_code=POLICY,
    code="slow_client",
    message="too much waits to be read: read events faster, or ask for less",
)
BROKEN = Ending(
    label="internal_error", close_code=INTERNAL, code="internal_error", message="the server failed; connect again"
)
DRAINED = Ending(
    label="shutdown", close_code=GOING_AWAY, code="server_shutting_down", message="the server shuts down; connect again"
)
FULL = Ending(
    label="full",
    close_code=TRY_LATER,
    code="session_limit_reached",
    message="all places are taken; try again later",
)
BUSY = Ending(
    label="busy",
    close_code=TRY_LATER,
    code="session_limit_reached",
    message="the server is too busy for one more conversation; try again later",
)
WRONG_KEY = Ending(
    label="key", close_code=KEY_REFUSED, code="invalid_api_key", message="the key is missing, wrong, or has expired"
)


def expired(seconds: float) -> Ending:
    """The session has lasted as long as one may."""
    return Ending(
        label="expired",
        close_code=GOING_AWAY,
        code="session_expired",
        message=f"the session lasted {seconds:g} s, which is the longest; open a new one",
    )


def idle(seconds: float) -> Ending:
    """Nothing came from the client."""
    return Ending(
        label="idle",
        close_code=GOING_AWAY,
        code="session_idle",
        message=f"no message came for {seconds:g} s; open a new session",
    )
