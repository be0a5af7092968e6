"""What counts as a server's address, and what is said of one that does not."""

from __future__ import annotations

import pytest

from antiphon.config import ModelChoice
from antiphon.core.errors import CallerError
from antiphon.think.chat_address import is_address, read_address

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        (" HTTP://Box:8000/ ", "http://box:8000/v1"),
        ("http://box/v1/chat/completions", "http://box/v1"),
        ("http://box/chat/completions/", "http://box/v1"),
        ("https://api.example.com/openai/v1", "https://api.example.com/openai/v1"),
        ("http://[::1]:11434", "http://[::1]:11434/v1"),
    ],
)
def test_addresses_are_brought_to_one_form(text, base):
    assert is_address(text)
    assert base == read_address(text).base


@pytest.mark.parametrize(
    "text",
    [
        "http://",
        "http:///v1",
        "http://box:port/v1",
        "http://box:99999/v1",
        "http://box/v1?key=hunter2",
        "http://box/v1#hunter2",
        "http://me:hunter2@box/v1",
        "http://hunter2@box/v1",
        "http://[::1/v1",
        "http://a b/v1",
        "ftp://box/v1",
    ],
)
def test_what_is_no_address_is_refused_without_showing_it(text):
    """It may hold a password."""
    with pytest.raises(CallerError) as caught:
        read_address(text)
    assert caught.value.hint
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True), ("127.0.0.1", True), ("[::1]", True), ("10.1.2.3", True), ("192.168.0.7", True),
        ("100.100.1.1", True), ("169.254.1.1", True), ("vllm", True), ("box.local", True), ("llm.default.svc", True),
        ("8.8.8.8", False), ("api.openai.com", False), ("localhost.example.com", False),
        ("[2001:4860:4860::8888]", False),
    ],
)  # fmt: skip
def test_hosted_and_own_servers_are_told_apart(host, is_own):
    """By the name alone."""
    assert is_own is read_address(f"https://{host}/v1").is_own


def test_names_and_files_are_no_addresses():
    assert not any(map(is_address, ("smollm2-135m-instruct-q4_1", "~/models/http.gguf", "httpx.gguf", "")))


def test_a_wrong_address_is_refused_with_the_settings():
    """At once, and not when the first conversation begins."""
    with pytest.raises(CallerError, match="user or a password"):
        ModelChoice(language_model="http://me:hunter2@box/v1")
