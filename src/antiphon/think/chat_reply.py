"""The events of a streamed chat completion in -> text and whole tool calls out.

Thoughts are left out. Text comes out in whole characters. A call comes out when it is whole and names an offered
tool; text behind a call is left out, for calls come last. Threads: pure; one response has one reader.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from antiphon.core.errors import PeerError
from antiphon.core.flow import Usage
from antiphon.think.chat_failure import cut_off, in_stream
from antiphon.think.tool_assembly import ToolAssembly, is_object

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from antiphon.core.flow import ToolCall
    from antiphon.think.language_model import Written

DONE = "[DONE]"
MOST_CHARS_OF_TOKEN = 32  # on average; a server that goes on beyond this pays no heed to max_tokens

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HIGH_HALF = re.compile(r"[\ud800-\udbff]\Z")
_HALF = re.compile(r"[\ud800-\udfff]")


class ReplyReader:
    """Reads one reply."""

    def __init__(self, *, offered: Collection[str] = (), used_ids: Iterable[str] = (), max_tokens: int) -> None:
        self.began = False  # a first word, thought or call was seen
        self.usage: Usage | None = None  # as the server counts, once it has said so
        self.is_over = False  # the server says that this was all, or it is more than was asked for
        self._offered = offered
        self._calls = ToolAssembly(used_ids)
        self._chars_left = max_tokens * MOST_CHARS_OF_TOKEN
        self._held = ""  # the first half of a character
        self._wrote = False
        self._thought = False
        self._calling = False
        self._unknown = ""  # the name of a call that was left out
        self._reason = ""

    @property
    def reached_limit(self) -> bool:
        """Whether the reply ended because it had all the tokens that it may have."""
        return self._reason == "length" or self._chars_left <= 0

    def take(self, data: str) -> list[Written]:
        """What one event adds to the reply.

        Raises:
            PeerError: it tells of a failure, or is nothing that an event can be.
        """
        if data.strip() == DONE:
            written = self._end_calls()
            self.is_over = True
            return written
        chunk = _object(data)
        if error := chunk.get("error") or (chunk if chunk.get("object") == "error" else None):
            raise in_stream(error)
        self.usage = _usage(chunk.get("usage")) or self.usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None  # usage comes without any
        if not isinstance(choice, dict) or choice.get("index") not in {0, None}:
            return []
        written = []
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            written += self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason
            written += self._end_calls()
            self.is_over = True
        return written

    def end(self) -> None:
        """Judge the reply when nothing more will come.

        Raises:
            PeerError: it is not whole, or there is nothing in it that could be used.
        """
        if not self.is_over:
            raise cut_off(in_reply=self.began)
        if self._reason == "content_filter":
            raise PeerError("the language model's server withheld the rest of a reply by its content filter")
        if self._wrote:
            return
        if self._unknown:
            raise PeerError(
                f"the language model called {self._unknown}, which is no tool that it was offered",
                hint="name the tools in the instructions as they are called, or use a larger model",
            )
        if self._thought:
            raise PeerError(
                "the language model thought for all of its tokens and said nothing",
                hint='switch thinking off by chat_server.extra, such as {"reasoning_effort": "low"}, '
                "or raise the agent's max_tokens",
            )

    def _delta(self, delta: dict[str, object]) -> list[Written]:
        written: list[Written] = []
        if any(delta.get(name) for name in _THOUGHTS):
            self.began = self._thought = True
        pieces = delta.get("tool_calls")
        legacy = delta.get("function_call")
        if not pieces and isinstance(legacy, dict):
            pieces = [{"index": 0, "function": legacy}]
        text = self._whole(_content(delta.get("content")))
        if text and not self._calling and self._chars_left > 0:
            self.began = self._wrote = True
            self._chars_left -= len(text)
            self.is_over = self.is_over or self._chars_left <= 0
            written.append(text)
        for piece in pieces if isinstance(pieces, list) else []:
            if isinstance(piece, dict):
                self.began = self._calling = True
                written += self._known(self._calls.take(piece))
        return written

    def _end_calls(self) -> list[Written]:
        call = self._calls.finish()
        if call is not None and self._reason == "length" and not is_object(call.arguments):
            raise PeerError("a tool call is longer than the reply may be", hint="raise the agent's max_tokens")
        return self._known(call)

    def _known(self, call: ToolCall | None) -> list[Written]:
        if call is None:
            return []
        if call.name in self._offered:
            self._wrote = True
            return [call]
        self._unknown = call.name if _NAME.fullmatch(call.name) else "something"
        return []

    def _whole(self, text: str) -> str:
        """`text` in whole characters: half of one is kept for the next piece, what is none is left out."""
        text = self._held + text
        self._held = ""
        if _HALF.search(text):
            if last := _HIGH_HALF.search(text):
                self._held = last.group()
                text = text[: last.start()]
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        return text.replace("\ufffd", "")


def _object(data: str) -> dict[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise PeerError(
            "the language model's server sent an event that is not a JSON object",
            hint="check that models.language_model is the address of an OpenAI-compatible server",
        )
    return found


def _content(content: object) -> str:
    """Plain text, or the text among typed parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _usage(told: object) -> Usage | None:
    """The `usage` of an event; None if it is none."""
    if not isinstance(told, dict):
        return None
    read, written = _count(told, "prompt_tokens"), _count(told, "completion_tokens")
    if read is None or written is None:
        return None
    cached = _count(told.get("prompt_tokens_details"), "cached_tokens") or 0
    return Usage(input_tokens=read, cached_tokens=min(cached, read), output_tokens=written)


def _count(told: object, name: str) -> int | None:
    value = told.get(name) if isinstance(told, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
