"""An open sentence in -> the probability that it ends here, as a server's model sees it, out.

It takes a server that goes on with an open message and says how likely each next token was. Some do so with the
user's message, some with the assistant's alone, and some ignore what they do not know and answer the message. So
each form is tried once, on one sentence that is cut and one that is whole, and kept only if the model tells them
apart. Threads: everything on the event loop.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

from antiphon.core.errors import PeerError
from antiphon.core.flow import Message
from antiphon.think.chat_failure import ServerFailure
from antiphon.think.chat_messages import render_open, render_tools, swapped
from antiphon.think.chat_requests import COMPLETIONS, REFUSED
from antiphon.think.language_model import AUTO
from antiphon.think.sentence_end import end_mass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import ToolSpec
    from antiphon.think.chat_requests import ChatRequests

CANDIDATES = 20  # the most that vLLM and OpenAI tell
LATE_IN_A_ROW = 3  # answers that came too late; then the server is left alone for a while, for each costs its limit
REST_S = 60.0

_CUT = "Good morning, I would like a large cup of"
_WHOLE = "Good morning, I would like a large cup of coffee, please"
_BEFORE = Message("system", "You take the orders in a coffee shop.")
_FORMS = ("user", "assistant")


class EndOpinion:
    """Asks one server; knows nothing, and says so, until `probe` has found a form."""

    def __init__(self, requests: ChatRequests) -> None:
        self._requests = requests
        self._form = ""
        self._late = 0
        self._rests_until = 0.0

    @property
    def form(self) -> str:
        """Whose open message the server goes on with; empty if nobody's."""
        return self._form

    async def probe(self, deadline: float) -> None:
        """Find the form that this server takes; whatever fails leaves none. Raises nothing of the server's."""
        for form in _FORMS:
            try:
                cut, whole = [
                    await self._ask(form, (_BEFORE, Message("user", text)), deadline) for text in (_CUT, _WHOLE)
                ]
            except ServerFailure as failure:
                if failure.status not in REFUSED:
                    return
            except PeerError:
                return
            else:
                if cut is not None and whole is not None and cut < 0.2 and whole > cut + 0.1:
                    self._form = form
                    return

    async def mass(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> float | None:
        """The mass behind the last message; None where there is no form, or no answer in time.

        Raises:
            EngineError: the line is closed.
            PeerError: the server failed in a way that may pass.
        """
        loop = asyncio.get_running_loop()
        if not self._form or loop.time() < self._rests_until:
            return None
        limit_s = self._requests.settings.end_mass_ms / 1000
        try:
            async with asyncio.timeout(limit_s):
                mass = await self._ask(self._form, messages, loop.time() + 2 * limit_s, tools)
        except TimeoutError:
            self._late += 1
            if self._late >= LATE_IN_A_ROW:
                self._late, self._rests_until = 0, loop.time() + REST_S
            return None
        except ServerFailure as failure:
            if failure.status not in REFUSED:
                raise
            mass = None
        self._late = 0
        if mass is None:
            self._form = ""
        return mass

    async def _ask(
        self, form: str, messages: Sequence[Message], deadline: float, tools: Sequence[ToolSpec] = ()
    ) -> float | None:
        """None if the response tells no probabilities."""
        fields = {
            "messages": render_open(messages if form == "user" else swapped(messages)),
            **(render_tools(tools, AUTO) if form == "user" else {}),  # no calls are left to explain otherwise
            "continue_final_message": True,
            "add_generation_prompt": False,
            "logprobs": True,
            "top_logprobs": CANDIDATES,
        }
        body = await self._requests.body(fields, max_tokens=1, deadline=deadline)
        return _mass(await self._requests.line.whole(COMPLETIONS, body, deadline=deadline))


def _mass(answer: dict[str, object]) -> float | None:
    """The end mass of an answer's first token."""
    try:
        likely = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]  # type: ignore[index]
        candidates = [(_shown(one["token"]), math.exp(min(0.0, one["logprob"]))) for one in likely]
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    return end_mass(candidates) if candidates else None


def _shown(token: str) -> str:
    """The token as people would read it: nothing in place of a marker such as that of a message's end."""
    return "" if len(token) > 3 and token.startswith("<") and token.endswith(">") else token
