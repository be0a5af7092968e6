"""A URL -> an open response, through the proxies, certificates and credentials that pip or uv is configured for.

Credentials go only to the host they belong to, and never into an error: URLs are shown without user, password and
query. Threads: one transport may be used by several at once; `open` blocks.
"""

from __future__ import annotations

import base64
import functools
import http.client
import netrc
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from antiphon.core.errors import CallerError, PeerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO

    from antiphon.models.index_settings import IndexSettings

USER_AGENT = "antiphon"
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}


class NotThere(PeerError):  # noqa: N818 - it is an answer, and often an expected one
    """The server answers, and has no such page."""


class Transport:
    """Opens URLs."""

    def __init__(self, settings: IndexSettings, environ: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._environ = os.environ if environ is None else environ
        proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler(proxies), _Https(settings), _Redirects(self._authorization)
        )

    def open(
        self, url: str, *, accept: str = "*/*", start_bytes: int = 0, timeout_s: float | None = None
    ) -> http.client.HTTPResponse:
        """The response to a GET of `url`, from byte `start_bytes` on if the server can do that (status 206).

        Raises:
            NotThere: 404 or 410.
            PeerError: no connection, or any other status; `retryable` says whether another try may help.
        """
        headers = {"Accept": accept, "User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        if start_bytes:
            headers["Range"] = f"bytes={start_bytes}-"
        try:
            request = urllib.request.Request(_bare(url), headers=headers)  # noqa: S310 - the scheme is checked below
            if request.type not in {"http", "https"}:
                raise PeerError(f"{redact(url)}: only http and https can be fetched")
            if credentials := self._authorization(url):
                request.add_unredirected_header("Authorization", credentials)
            timeout_s = self._settings.timeout_s if timeout_s is None else timeout_s
            return cast("http.client.HTTPResponse", self._opener.open(request, timeout=timeout_s))
        except urllib.error.HTTPError as error:
            error.close()
            kind = NotThere if error.code in {404, 410} else PeerError
            hint = "check the user and password of the index" if error.code in {401, 403, 407} else ""
            message = f"{redact(url)} answers {error.code} {error.reason}"
            raise kind(message, hint=hint, retryable=error.code in TRANSIENT) from None
        except urllib.error.URLError as error:
            raise unreachable(url, error.reason, retryable=False) from None  # no connection: fail at once
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise unreachable(url, error) from None

    def _authorization(self, url: str) -> str | None:
        """The Authorization header for `url`: its own, that of an index on the same host, or ~/.netrc's."""
        for candidate in (url, *self._settings.indexes, *self._settings.find_links):
            parts = urlsplit(candidate)
            if "@" in parts.netloc and _origin(candidate) == _origin(url):
                user, password = unquote(parts.username or ""), unquote(parts.password or "")
                return _basic(user, password)
        return self._from_netrc(urlsplit(url).hostname or "")

    def _from_netrc(self, host: str) -> str | None:
        name = "_netrc" if sys.platform == "win32" else ".netrc"
        home = Path(self._environ.get("HOME") or Path("~").expanduser())
        try:
            entry = netrc.netrc(self._environ.get("NETRC") or str(home / name)).hosts.get(host)
        except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
            return None  # pip too goes on without; a `default` entry is left out, since it would go to every host
        return _basic(entry[0], entry[2]) if entry else None


class _Https(urllib.request.HTTPSHandler):
    """Checks certificates, except those of trusted hosts."""

    def __init__(self, settings: IndexSettings) -> None:
        super().__init__()
        self._trusted_hosts = settings.trusted_hosts
        # made when first needed: reading all authorities takes some 50 ms, and a mirror on http needs none of them
        self._checked = functools.cache(lambda: _tls_context(settings))

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        parts = urlsplit(req.full_url)
        if parts.hostname in self._trusted_hosts or parts.netloc in self._trusted_hosts:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # what its owner asked for; the file's sha256 is checked all the same
        else:
            context = self._checked()
        return self.do_open(http.client.HTTPSConnection, req, context=context)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, neither out of TLS nor with credentials to where they do not belong."""

    def __init__(self, authorization: Callable[[str], str | None]) -> None:
        self._authorization = authorization

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise PeerError(f"{redact(req.full_url)} redirects to an unencrypted address")
        request = super().redirect_request(req, fp, code, msg, headers, _bare(newurl))
        if request is not None and (credentials := self._authorization(newurl)):
            request.add_unredirected_header("Authorization", credentials)
        return request


def redact(url: str) -> str:
    """`url` as it may be shown: without user, password, query and fragment, any of which may be a secret."""
    try:
        parts = urlsplit(url)
        netloc = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "a malformed URL"
    return urlunsplit((parts.scheme, netloc, parts.path, "", ""))


def unreachable(url: str, reason: object, *, retryable: bool = True) -> PeerError:
    """The error for a connection that failed, its reason in words that hold no secret."""
    server = urlunsplit((*urlsplit(redact(url))[:2], "", "", ""))
    if isinstance(reason, ssl.SSLCertVerificationError):
        return PeerError(
            f"{server} shows a certificate that is not trusted: {reason.verify_message}",
            hint="set PIP_CERT (or SSL_CERT_FILE) to your network's certificate authority",
        )
    if isinstance(reason, TimeoutError):
        text = "no answer in time"
    elif isinstance(reason, OSError):
        text = reason.strerror or type(reason).__name__
    elif isinstance(reason, str):
        text = reason
    else:  # texts of HTTPException and ValueError may quote the address
        text = type(reason).__name__
    return PeerError(f"{server} cannot be reached: {text}", retryable=retryable)


def _tls_context(settings: IndexSettings) -> ssl.SSLContext:
    path = settings.certificate
    is_folder = bool(path) and Path(path).is_dir()
    try:
        context = ssl.create_default_context(
            cafile=path if path and not is_folder else None, capath=path if is_folder else None
        )
        if settings.client_certificate:
            context.load_cert_chain(settings.client_certificate)
    except (OSError, ssl.SSLError) as error:
        raise CallerError(
            f"the configured certificates cannot be loaded: {path or settings.client_certificate}",
            hint="correct PIP_CERT, REQUESTS_CA_BUNDLE or cert in pip.conf",
        ) from error
    return context


def _bare(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _basic(user: str, password: str | None) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()
