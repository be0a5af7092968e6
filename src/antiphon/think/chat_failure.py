"""What a language model's server did wrong in -> our error for it out, with a remedy and whether to try again.

A server's own words often quote the prompt, which is a caller's speech. So none of them gets into an error: they are
only looked through for things that are known by name. Threads: pure.
"""

from __future__ import annotations

import errno
import json
import re
import socket
import ssl
from typing import TYPE_CHECKING

from antiphon.core.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from antiphon.think.chat_address import ServerAddress

KEY_VARIABLE = "ANTIPHON_CHAT_SERVER_API_KEY"
INSTEAD = "max_completion_tokens"  # what some servers want instead of max_tokens
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})  # another try may help
_LONGEST_RETRY_AFTER_S = 3600.0

# Found in a server's message or code, in lower case: what is wrong, what to do.
_KNOWN = (
    ("insufficient_quota", "the account's quota is used up", "look at the account's plan and billing"),
    ("enable-auto-tool-choice", "the server was started without tools", "start it with --enable-auto-tool-choice"),
    ("tool-call-parser", "the server was started without tools", "start it with a --tool-call-parser for its model"),
    ("--jinja", "the server was started without tools", "start it with --jinja"),
    ("does not support tools", "the model knows no tools", "choose a model that does, or offer no tools"),
    ("context_length", "the conversation is too long for the model", "shorten the instructions, or raise its context"),
    ("context length", "the conversation is too long for the model", "shorten the instructions, or raise its context"),
    ("context size", "the conversation is too long for the model", "shorten the instructions, or raise its context"),
    ("exceed_context", "the conversation is too long for the model", "shorten the instructions, or raise its context"),
    ("model_not_found", "the server has no such model", "set chat_server.model to one that it lists at /models"),
    ("loading model", "the server is still loading its model", "wait until it is ready"),
)

_BY_STATUS = {  # a status, or the hundreds of it
    3: ("it sends us elsewhere, which is not followed", "name the final address in models.language_model"),
    4: ("it does not understand the request", "check chat_server.extra and chat_server.model"),
    5: ("it failed", "its log says why"),
    401: ("it does not accept the key", f"set {KEY_VARIABLE} to a key that it knows"),
    402: ("it wants to be paid", "look at the account's plan and billing"),
    403: ("it does not accept the key", f"set {KEY_VARIABLE} to a key that may do this"),
    404: ("there is no such path", "most servers want /v1 at the address's end"),
    405: ("there is something else at this path", "check the path in models.language_model"),
    413: ("the request is too large", "shorten the instructions"),
    429: ("it has too many requests", "ask for a higher limit, or set chat_server.read_ahead to off"),
}


class ServerFailure(PeerError):  # noqa: N818 - the error that a server's failure is
    """A request was not answered as it should be."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        retryable: bool = False,
        status: int = 0,
        field: str = "",
        pause_s: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.status = status  # of the response; 0 if there was none
        self.field = field  # of the request that the server does not like, if it says so; or that it wants instead
        self.pause_s = pause_s  # before another try, if the server says so


def refusal(status: int, headers: Mapping[str, str], body: bytes, *, asked: Mapping[str, object]) -> ServerFailure:
    """For a response with another status than 200; `asked` is the request's body."""
    told = _told(body)
    field = _field(told, asked)
    problem, hint = _meaning(status, told)
    quota = "insufficient_quota" in told.lower()
    return ServerFailure(
        f"the language model's server answers {status}: {problem}" + (f" (field {field})" if field else ""),
        hint=hint,
        retryable=status in PASSING and not quota,
        status=status,
        field=field,
        pause_s=_retry_after_s(headers.get("retry-after", "")),
    )


def in_stream(error: object) -> ServerFailure:
    """For an error that came in the middle of a response of status 200."""
    fields = error if isinstance(error, dict) else {}
    told = json.dumps(error)
    given = fields.get("code") or fields.get("status_code")
    status = int(given) if isinstance(given, int) or (isinstance(given, str) and given.isdecimal()) else 0
    problem, hint = _meaning(status, told)
    is_ours = "invalid_request" in told or "BadRequest" in told
    return ServerFailure(
        f"the language model's server failed in the middle of a reply: {problem}",
        hint=hint,
        retryable=status in PASSING or not (status or is_ours),
        status=status,
    )


def unreachable(error: Exception, address: ServerAddress) -> ServerFailure:
    """For no connection at all."""
    for cause in _causes(error):
        match cause:
            case socket.gaierror():
                passing = cause.errno == socket.EAI_AGAIN
                message, hint = f"the name {address.host} is unknown", "check the host in models.language_model"
                return ServerFailure(_at(address, message), hint=hint, retryable=passing)
            case ssl.SSLCertVerificationError():
                message = f"its certificate is not accepted: {cause.verify_message}"
                hint = "check the host, or let SSL_CERT_FILE name the authority that signed it"
                return ServerFailure(_at(address, message), hint=hint)
            case ssl.SSLError():
                hint = "check that the server speaks TLS at this port, or write http://"
                return ServerFailure(_at(address, "no TLS connection can be made"), hint=hint)
            case ConnectionRefusedError():
                hint = "start the server, or check host and port in models.language_model"
                return ServerFailure(_at(address, "nobody listens there"), hint=hint, retryable=True)
            case OSError() if cause.errno in {errno.EHOSTUNREACH, errno.ENETUNREACH}:
                hint = "check the network and the host in models.language_model"
                return ServerFailure(_at(address, "no way leads there"), hint=hint, retryable=True)
    hint = "check that the server is up, and host and port in models.language_model"
    return ServerFailure(_at(address, "no connection can be made"), hint=hint, retryable=True)


def cut_off(*, in_reply: bool) -> ServerFailure:
    """For a connection that ended too early."""
    when = "in the middle of a reply" if in_reply else "before it answered"
    return ServerFailure(
        f"the language model's server closed the connection {when}",
        hint="the server's log says why; one that was out of memory was perhaps restarted",
        retryable=True,
    )


def too_slow(what: str, limit_s: float, setting: str) -> ServerFailure:
    """For a limit of time that was passed."""
    return ServerFailure(
        f"the language model's server {what} for {limit_s:g} s",
        hint=f"see how busy the server is, or raise chat_server.{setting}",
        retryable=True,
    )


def _at(address: ServerAddress, message: str) -> str:
    return f"the language model's server {address.base} cannot be reached: {message}"


def _meaning(status: int, told: str) -> tuple[str, str]:
    """What is wrong and what to do: by what the server tells, else by the status."""
    lower = told.lower()
    for sign, problem, hint in _KNOWN:
        if sign in lower:
            return problem, hint
    if status == 404 and "model" in lower:
        return "it has no such model", "set chat_server.model to one that it lists at /models"
    return _BY_STATUS.get(status) or _BY_STATUS.get(status // 100) or _BY_STATUS[5]


def _told(body: bytes) -> str:
    """The body as text; only ever looked through."""
    return body.decode("utf-8", "ignore")


def _field(told: str, asked: Mapping[str, object]) -> str:
    """The field of the request that an answer is about: OpenAI's `param`, FastAPI's `loc`, or a name in quotes.

    One that the request lacks counts as well if we know what to do about it.
    """
    if INSTEAD in told:
        return INSTEAD
    try:
        answer = json.loads(told)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(answer, dict):
        return ""
    error = answer.get("error") if isinstance(answer.get("error"), dict) else answer
    param = error.get("param") if isinstance(error, dict) else None
    names = [re.split(r"[.\[]", param)[0]] if isinstance(param, str) else []
    details = answer.get("detail")
    for detail in details if isinstance(details, list) else []:
        place = detail.get("loc") if isinstance(detail, dict) else None
        names += [part for part in place if isinstance(part, str)] if isinstance(place, list) else []
    names += re.findall(r"['\"`\\]([a-z]+_[a-z_]+|temperature)['\"`\\]", told)
    return next((name for name in names if name in asked), "")


def _retry_after_s(text: str) -> float | None:
    """Seconds alone; a date would need a clock that agrees with the server's, and counts as long."""
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        return _LONGEST_RETRY_AFTER_S
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER_S) if seconds == seconds else None  # noqa: PLR0124 - not a NaN


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it came of, and so on; the attempts at several addresses among them."""
    waiting, seen = [error], 0
    while waiting and seen < 50:
        one = waiting.pop(0)
        seen += 1
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        if (before := one.__cause__ or one.__context__) is not None:
            waiting.append(before)
