"""Secrets that live shortly."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from antiphon.core.errors import CallerError, MachineError
from antiphon.serve.client_secrets import ClientSecrets, read_request

pytestmark = pytest.mark.unit


@dataclass
class Watch:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_secret_is_valid_until_it_expires() -> None:
    """It opens, with its session, as often as one likes; then no more, and nothing else ever does."""
    watch = Watch()
    secrets = ClientSecrets(10, now_s=watch)
    value, grant = secrets.make({"type": "realtime"}, seconds=10)

    assert value.startswith("ek_")
    assert grant.expires_at_s == 1010
    assert [grant, grant] == [secrets.find(value), secrets.find(value)]
    assert [None, None, None] == [secrets.find(wrong) for wrong in ("", "ek_", value[3:])]
    watch.now_s = 1010
    assert secrets.find(value) is None


def test_secrets_are_bounded() -> None:
    """One too many is refused, until another has expired."""
    watch = Watch()
    secrets = ClientSecrets(2, now_s=watch)
    secrets.make({}, seconds=10)
    secrets.make({}, seconds=7200)
    with pytest.raises(MachineError, match="2 client secrets"):
        secrets.make({})
    watch.now_s += 10

    secrets.make({})
    assert len(secrets) == 2


@pytest.mark.parametrize("seconds", [9, 7201, -1])
def test_a_life_is_bounded(seconds: int) -> None:
    """The protocol's own range."""
    with pytest.raises(CallerError, match=r"expires_after\.seconds"):
        ClientSecrets(2, now_s=Watch()).make({}, seconds=seconds)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ({}, 600)),
        ({"session": None, "expires_after": None}, ({}, 600)),
        (
            {"session": {"type": "realtime", "model": "m"}, "expires_after": {"anchor": "created_at", "seconds": 60}},
            ({"type": "realtime", "model": "m"}, 60),
        ),
        ({"unknown": 1}, ({}, 600)),
    ],
)
def test_a_request_is_read(body: object, expected: object) -> None:
    """Everything may be left out, and what is unknown is tolerated."""
    assert expected == read_request(body)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({"session": "x"}, "session"),
        ({"session": {"type": "transcription"}}, r"session\.type"),
        ({"expires_after": 60}, "expires_after"),
        ({"expires_after": {"anchor": "now"}}, r"expires_after\.anchor"),
        ({"expires_after": {"seconds": "60"}}, r"expires_after\.seconds"),
        ({"expires_after": {"seconds": True}}, r"expires_after\.seconds"),
    ],
)
def test_a_wrong_request_names_the_field(body: object, field: str) -> None:
    """So that whoever sent it can mend it."""
    with pytest.raises(CallerError, match=field):
        read_request(body)
