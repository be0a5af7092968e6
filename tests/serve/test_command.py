"""`antiphon serve` as a command: flags over settings, and refusals before anything is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.serve.doubles import house

from antiphon.cli import main, parser
from antiphon.cli.serve import greeting, page, with_flags
from antiphon.config import load
from antiphon.core.errors import CallerError
from antiphon.serve_settings import ServeSettings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def test_flags_go_over_settings() -> None:
    """What is given counts, keys and origins add up, what is not given stays."""
    settings = ServeSettings(keys=("from-the-variable",), port=9000, origins=("https://a.example",))
    flags = parser().parse_args(
        ["serve", "--host", "::1", "--key", "first-key", "--key", "second-key", "--origin", "https://b.example"]
    )

    assert ServeSettings(
        host="::1",
        port=9000,
        keys=("from-the-variable", "first-key", "second-key"),
        origins=("https://a.example", "https://b.example"),
    ) == with_flags(settings, flags)


def test_keys_come_from_the_variable() -> None:
    """A comma list; not from a file, where they would be read by whoever reads it."""
    resolved = load(environment={"ANTIPHON_SERVE_KEYS": "first-key,second-key"}, folders=())

    assert ("first-key", "second-key") == resolved.config.serve.keys
    assert "first-key" not in repr(resolved)
    with pytest.raises(CallerError, match=r"serve\.keys is a secret"):
        load(environment={}, folders=(), sets=("serve.keys=first-key",))


def test_what_kubernetes_sets_is_no_setting() -> None:
    """A service called "antiphon" puts its own variables into each pod, some of them like ours."""
    address = "tcp://10.0.0.1:8000"
    environment = {
        "ANTIPHON_SERVICE_HOST": "10.0.0.1",
        "ANTIPHON_SERVICE_PORT": "8000",
        "ANTIPHON_SERVICE_PORT_HTTP": "8000",
        "ANTIPHON_PORT": address,
        "ANTIPHON_PORT_8000_TCP": address,
        "ANTIPHON_PORT_8000_TCP_ADDR": "10.0.0.1",
    }

    assert ServeSettings() == load(environment=environment, folders=()).config.serve
    with pytest.raises(CallerError, match="ANTIPHON_SERVE_HOTS"):
        load(environment={"ANTIPHON_SERVE_HOTS": "x"}, folders=())


def test_an_open_door_is_refused_before_models_load(capsys: pytest.CaptureFixture[str]) -> None:
    """The remedy stands in the message."""
    assert 2 == main(["serve", "--host", "0.0.0.0"])

    printed = capsys.readouterr()
    assert "no key is set" in printed.err
    assert "ANTIPHON_SERVE_KEYS" in printed.err
    assert "" == printed.out


def test_two_agents_are_one_too_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rather than one of them being ignored."""
    assert 2 == main(["serve", str(tmp_path / "a.py"), "--agent", str(tmp_path / "b.py")])
    assert "two agents are named" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "conversations", "expected"),
    [
        (ServeSettings(), 1, "1 conversation at once; no key is needed"),
        (ServeSettings(keys=("secret-key",)), 4, "4 conversations at once; a key is needed"),
    ],
)
def test_the_line_that_says_it_is_ready(settings: ServeSettings, conversations: int, expected: str) -> None:
    """Where, what, how many, and whether a key is needed; never the key."""
    line = greeting(house(settings), "ws://127.0.0.1:8000/v1/realtime", conversations)

    assert line.splitlines() == [
        f"Ready: ws://127.0.0.1:8000/v1/realtime  models: barista, scripted; {expected}",
        "Open http://127.0.0.1:8000/ to talk to it",
    ]
    assert "secret-key" not in line


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("ws://127.0.0.1:8000/v1/realtime", "http://127.0.0.1:8000/"),
        ("wss://shop.example:443/v1/realtime", "https://shop.example:443/"),
        ("ws://0.0.0.0:8000/v1/realtime", "http://localhost:8000/"),
        ("ws://[::]:8000/v1/realtime", "http://localhost:8000/"),
        ("ws://[::1]:8000/v1/realtime", "http://[::1]:8000/"),
    ],
)
def test_where_the_page_is(address: str, expected: str) -> None:
    """A name of this machine where the address stands for all of them: browsers let no other use a microphone."""
    assert expected == page(address)


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 65536},
        {"message_bytes": 10},
        {"idle_s": 0.0},
        {"longest_session_s": 1e9},
        {"send_queue_events": 1},
        {"keyfile": "key.pem"},
    ],
)
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    """A value out of its range is refused by name."""
    (name,) = wrong
    with pytest.raises(CallerError, match=name):
        ServeSettings(**wrong)  # type: ignore[arg-type]
