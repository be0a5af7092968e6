"""A request's body as it trickles in -> all of it, within bounds of size and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from starlette.requests import Request

BODY_S = 10.0  # for a request's body to come
LARGEST_BODY_BYTES = 256 * 1024  # tools with long schemas fit


async def read_body(request: Request) -> bytes:
    """All of it.

    Raises:
        CallerError: it is too large or too slow.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST_BODY_BYTES:
                    hint = "send a smaller session"
                    raise CallerError(f"the body has more than {LARGEST_BODY_BYTES} bytes", hint=hint)
    except TimeoutError:
        raise CallerError(f"the body did not come within {BODY_S:g} s", hint="send it at once") from None
    return bytes(body)
