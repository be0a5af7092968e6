"""How a language model's server is spoken to, as values that a user may change.

Apart from the engine that uses them, so that reading settings loads no HTTP client.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from antiphon.core.errors import CallerError, check_range

Switch: TypeAlias = Literal["auto", "on", "off"]

# What a request says already; another value would break the reading of what comes back.
OURS = ("messages", "model", "n", "stream", "tool_choice", "tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServerSettings:
    """The server that models.language_model names by its http:// or https:// address.

    Raises:
        CallerError: a value is out of its range, a key cannot be sent, or `extra` is no JSON object.
    """

    model: Annotated[str, "the model's name at the server; empty: the server is asked"] = ""
    api_key: Annotated[str, "secret: taken from its variable alone and never shown"] = field(default="", repr=False)
    openai_key: Annotated[str, "secret: the same, for https://api.openai.com alone"] = field(default="", repr=False)
    connect_s: Annotated[float, "until there is a connection"] = 2.0
    first_token_s: Annotated[float, "until the reply begins, all tries together"] = 8.0
    stall_s: Annotated[float, "without a byte, once a reply has begun"] = 5.0
    retries: Annotated[int, "after a failure that may pass, as long as the reply has not begun"] = 2
    temperature: Annotated[float, "0: the likeliest token"] = 0.0
    read_ahead: Annotated[Switch, "read stable words ahead; auto: unless the server is a hosted one"] = "auto"
    end_mass: Annotated[Switch, "ask whether the sentence ends; auto: unless the server is a hosted one"] = "auto"
    end_mass_ms: Annotated[int, "the answer must come within, for the reply waits for it"] = 150
    extra: Annotated[str, "a JSON object that each request contains as well"] = ""

    def __post_init__(self) -> None:
        check_range("connect_s", self.connect_s, 0.05, 60)
        check_range("first_token_s", self.first_token_s, 0.1, 600)
        check_range("stall_s", self.stall_s, 0.1, 600)
        check_range("retries", self.retries, 0, 10)
        check_range("temperature", self.temperature, 0, 2)
        check_range("end_mass_ms", self.end_mass_ms, 1, 5000)
        check_key("api_key", self.api_key)  # the other may be for other programs, and is checked where it is used
        self.extra_fields()

    def extra_fields(self) -> dict[str, object]:
        """`extra` as an object."""
        if not self.extra.strip():
            return {}
        try:
            fields = json.loads(self.extra)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise CallerError("extra is not a JSON object", hint='write it as {"top_p": 0.9}')
        if taken := [name for name in OURS if name in fields]:
            raise CallerError(f"extra sets {taken[0]}, which each request says itself", hint="leave it out")
        return fields


def check_key(name: str, key: str) -> None:
    """Raises CallerError for a key that no header can hold, without showing it."""
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CallerError(f"{name} holds characters that cannot be sent", hint="set its variable to the key alone")
