"""Who may come in."""

from __future__ import annotations

import pytest

from antiphon.core.errors import CallerError
from antiphon.serve.keys import Keys, Origins, Presented, presented, refuse_open_door
from antiphon.serve_settings import ServeSettings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("headers", "subprotocols", "expected"),
    [
        ({"authorization": "Bearer abc"}, [], Presented("abc")),
        ({"authorization": "bearer abc"}, ["realtime"], Presented("abc")),
        ({}, ["realtime", "openai-insecure-api-key.abc"], Presented("abc", by_browser=True)),
        ({"authorization": "Bearer abc"}, ["openai-insecure-api-key.xyz"], Presented("abc")),
        ({"authorization": "Basic abc"}, [], Presented("")),
        ({"authorization": "Bearer "}, [], Presented("")),
        ({}, [], Presented("")),
    ],
)
def test_a_key_comes_in_a_header_or_a_subprotocol(
    headers: dict[str, str], subprotocols: list[str], expected: Presented
) -> None:
    """Both ways are read, the header first, and anything else is no key."""
    assert expected == presented(headers, subprotocols)


def test_any_of_the_keys_opens() -> None:
    """Each key is known, and nothing else: no prefix, no empty one, no endless one, no odd characters."""
    keys = Keys(("first-key", "second-key"))

    assert keys.are_needed
    assert [True, True] == [keys.know("first-key"), keys.know("second-key")]
    assert not any(keys.know(key) for key in ("", "first-ke", "first-key2", "k" * 100_000, "\udcff", "é"))


def test_without_keys_nobody_is_known() -> None:
    """No key means that none is needed, not that an empty one fits."""
    assert not Keys(()).are_needed
    assert not Keys(()).know("")


@pytest.mark.parametrize(
    ("origin", "host", "keys_are_needed", "expected"),
    [
        (None, "localhost:8000", False, True),  # no browser
        ("https://shop.example", "voice.example", True, True),  # listed
        ("https://SHOP.example/", "voice.example", True, True),
        ("https://evil.example", "localhost:8000", False, False),
        ("http://localhost:8000", "localhost:8000", False, True),  # a page of our own
        ("http://127.0.0.1:8000", "127.0.0.1:8000", False, True),
        ("http://localhost:3000", "localhost:8000", False, False),  # another program's page
        ("http://evil.example:8000", "evil.example:8000", False, False),  # a name that was pointed here
        ("https://voice.example", "voice.example", True, True),  # there the key decides
        ("null", "localhost:8000", False, False),
        ("http://[::1", "[::1", False, False),
    ],
)
def test_a_page_may_connect(origin: str | None, host: str, keys_are_needed: bool, expected: bool) -> None:
    """Listed pages and our own; other pages that the user's browser happens to show may not."""
    origins = Origins(("https://shop.example",), keys_are_needed=keys_are_needed)

    assert expected == origins.allow(origin, host)


def test_a_star_lets_every_page_in() -> None:
    """Who wants it open says so."""
    assert Origins(("*",), keys_are_needed=False).allow("https://evil.example", "localhost:8000")


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.1", "::"])
def test_an_open_door_is_refused(host: str) -> None:
    """Reachable from elsewhere and without keys: the start is refused, and the message says what to do."""
    with pytest.raises(CallerError, match="no key is set") as refused:
        refuse_open_door(ServeSettings(host=host))

    assert "ANTIPHON_SERVE_KEYS" in refused.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        ServeSettings(),
        ServeSettings(host="127.0.0.5"),
        ServeSettings(host="::1"),
        ServeSettings(host="localhost"),
        ServeSettings(host="0.0.0.0", keys=("a-long-key",)),
        ServeSettings(host="0.0.0.0", allow_anyone=True),
    ],
)
def test_a_closed_door_is_fine(settings: ServeSettings) -> None:
    """The machine itself, a key, or an explicit wish."""
    refuse_open_door(settings)


@pytest.mark.parametrize("key", ["short", "with space", "with,comma", "with\nline", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    """Such a key could never be shown by a client."""
    with pytest.raises(CallerError) as refused:
        ServeSettings(keys=(key,))

    assert key not in str(refused.value)


def test_keys_do_not_show() -> None:
    """A setting that is printed, or fails elsewhere, does not give its keys away."""
    assert "a-long-key" not in repr(ServeSettings(keys=("a-long-key",)))
