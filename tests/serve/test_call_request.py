"""What a request for a call may hold, and what is said of what it may not."""

from __future__ import annotations

import pytest

from antiphon.core.errors import CallerError
from antiphon.serve.call_request import CallRequest, read_call
from antiphon.serve_settings import ServeSettings

pytestmark = pytest.mark.unit

FORM = "multipart/form-data; boundary=x"


def form(**fields: str) -> bytes:
    parts = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    return (parts + "--x--\r\n").encode()


def test_an_offer_alone() -> None:
    assert CallRequest("v=0\r\n") == read_call("application/sdp; charset=utf-8", b"v=0\r\n")


def test_a_form_of_offer_and_session() -> None:
    body = form(sdp="v=0\r\na=b\r\n", session='{"type": "realtime", "instructions": "Sing."}')
    read = read_call(FORM, body)
    assert "v=0\r\na=b" == read.sdp.strip()
    assert {"type": "realtime", "instructions": "Sing."} == read.session


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        ("", b"v=0", "content-type is missing"),
        ("application/json", b"{}", "content-type is application/json"),
        ("multipart/form-data", form(sdp="v=0"), "form cannot be read"),
        (FORM, form(session="{}"), "the form has no sdp"),
        (FORM, form(sdp="v=0", session="{"), "session is not JSON"),
        (FORM, form(sdp="v=0", session="[]"), "session is not an object"),
        (FORM, form(sdp="v=0", session='{"type": "transcription"}'), "session.type"),
        ("application/sdp", b"\xff", "sdp is not UTF-8"),
        ("application/sdp", b"v" * 70_000, "sdp has 70000 bytes"),
    ],
)
def test_what_is_wrong_is_named(kind: str, body: bytes, says: str) -> None:
    with pytest.raises(CallerError, match=says) as caught:
        read_call(kind, body)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("webrtc_ports", ports) for ports in ("x", "2-1", "0-5", "70000", "1-70000", "5-", "-5")),
        ("webrtc_stun", "example.org"),
        ("webrtc_turn", "stun:example.org"),
        ("webrtc_address", "example.org"),
    ],
)
def test_settings_that_cannot_be_are_refused(setting: str, value: str) -> None:
    with pytest.raises(CallerError, match=setting):
        ServeSettings(**{setting: value})


def test_ports_are_a_range() -> None:
    assert (range(1), range(40000, 40100), range(7, 8)) == tuple(
        ServeSettings(webrtc_ports=ports).ports_of_calls for ports in ("", "40000-40099", "7")
    )
