"""What is wrong with a client's event, as the protocol's `error` says it.

A refusal names the field (`param`) and a code that programs may act on; the session lives on, unchanged by the event.
"""

from __future__ import annotations

from antiphon.core.errors import CallerError

INVALID = "invalid_value"
MISSING = "missing_required_parameter"
NOT_SUPPORTED = "not_supported"
NOT_FOUND = "item_not_found"
NOT_RETRIEVED = "item_retrieve_invalid_item_id"  # clients forgive this code of a retrieve, and no other
INTERNAL = "internal_error"


class RefusedError(CallerError):
    """A client's event is not carried out."""

    def __init__(self, message: str, *, code: str = INVALID, param: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.param = param

    @property
    def wire_message(self) -> str:
        """One line for the client."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


def error_body(
    kind: str, code: str, message: str, *, param: str | None = None, event_id: str | None = None
) -> dict[str, object]:
    """The `error` field of an `error` event; `kind` is invalid_request_error or server_error."""
    return {"type": kind, "code": code, "message": message, "param": param, "event_id": event_id}
