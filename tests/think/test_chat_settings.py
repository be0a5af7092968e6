"""What can be set for a server of others, and that its keys stay secret."""

from __future__ import annotations

import json

import pytest
from tests.think.chat_server_double import (
    reply,
    said,
)
from tests.think.chat_server_talk import (
    HOSTED,
    KEY,
    OWN,
    chat,
    read,
    scripted,
)

from antiphon.config import load
from antiphon.core.errors import CallerError
from antiphon.think.chat_settings import ChatServerSettings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "field",
    [
        {"temperature": 3.0}, {"retries": -1}, {"stall_s": 0.0}, {"end_mass_ms": 0}, {"connect_s": float("nan")},
        {"extra": "{"}, {"extra": "[]"}, {"extra": '{"stream": false}'}, {"api_key": f"{KEY} x"},
        {"api_key": f"{KEY}ä"},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(field):
    """By name, and a key is not shown."""
    with pytest.raises(CallerError) as caught:
        ChatServerSettings(**field)
    assert next(iter(field)) in caught.value.message
    assert KEY not in str(caught.value)


def test_a_key_does_not_travel_in_the_clear():
    """To one's own machines it may."""
    with pytest.raises(CallerError, match="in the clear") as caught:
        chat(scripted(), "http://llm.example.com", api_key=KEY)
    assert KEY not in str(caught.value)
    chat(scripted(), OWN, api_key=KEY)


def test_openais_own_variable_goes_to_openai_alone():
    """A key for one service is not shown to another."""
    for address, sent in (("https://api.openai.com/v1", f"Bearer {KEY}"), (HOSTED, None), (OWN, None)):
        server = scripted(reply(*said("x")))
        read(server, address, model="m", openai_key=KEY)
        assert sent == server.asked[0].headers.get("authorization")


def test_keys_come_from_their_variables_alone_and_are_not_shown(tmp_path):
    """Not in what was resolved, not in a repr, not in an error."""
    resolved = load(folders=(), environment={"ANTIPHON_CHAT_SERVER_API_KEY": KEY, "OPENAI_API_KEY": f"{KEY}2"})
    settings = resolved.config.chat_server

    assert (KEY, f"{KEY}2") == (settings.api_key, settings.openai_key)
    assert KEY not in repr(resolved)
    origins = {setting.key.dotted: str(setting.origin) for setting in resolved.settings}
    assert "OPENAI_API_KEY" == origins["chat_server.openai_key"]
    (tmp_path / "antiphon.toml").write_text(f"[chat_server]\napi_key = {json.dumps(KEY)}\n", encoding="utf-8")
    for given in ({"folders": (tmp_path,)}, {"folders": (), "sets": (f"chat_server.api_key={KEY}",)}):
        with pytest.raises(CallerError, match="ANTIPHON_CHAT_SERVER_API_KEY") as caught:
            load(environment={}, **given)
        assert KEY not in str(caught.value)
