"""Responses of a call: asked for by the client or made by the session, one at a time, each of which ends once.

A response that the client asks for waits until the session can begin it: until a turn that was committed before is
known, until the caller has finished speaking, and until the present response is over, if that asked the client for a
tool or was cancelled. Any other while one is active is refused.
Threads: the event loop. What it does not know: whose voice interrupts.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from antiphon.dialogue.history import call_item
from antiphon.serve.realtime.errors import RefusedError
from antiphon.serve.realtime.fields import Fields
from antiphon.serve.realtime.items import Item
from antiphon.serve.realtime.response import Plan, Response
from antiphon.serve.realtime.response_create import plan_as_usual, read_plan
from antiphon.serve.realtime.session_fields import session_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.flow import ToolSpec
    from antiphon.serve.realtime.call_state import CallState
    from antiphon.serve.realtime.outbox import Json
    from antiphon.session import events

_MOST_RETRACTED = 16
_NO_FIELDS = Fields({})
ONE_AT_A_TIME = "not run: one tool at a time, ask for it again"


class Answers:
    """Of one call."""

    def __init__(self, state: CallState, later: Callable[[Callable[[], None]], None]) -> None:
        self._state = state
        self._later = later  # do something once the turns that were committed before are known
        self.active: Response | None = None
        self._asked: Plan | None = None  # by the client, and not begun
        self._lent: tuple[ToolSpec, ...] = ()  # tools of what was asked for
        self._is_in_doubt = False  # the turn that it waited for is over: the next event tells whether it begins
        self._unwanted: set[str] = set()  # cancelled when the session had just begun them
        self._failure: events.StageFailed | None = None
        self._retracted: deque[str] = deque(maxlen=_MOST_RETRACTED)  # items that were taken back

    # From the client.

    def create(self, event: Fields) -> None:
        """`response.create`.

        Raises:
            RefusedError: a field is wrong, or another response is active.
        """
        if self._is_in_doubt and self._asked and not self._is_begun_inside():
            self._give_up(self._asked)
        if self._asked is not None or not self._may_ask():
            raise RefusedError(
                "a response is active already",
                code="conversation_already_has_active_response",
                hint="wait for its response.done, or cancel it",
            )
        self.ask(*read_plan(self._state, event))

    def ask(self, plan: Plan, lent: tuple[ToolSpec, ...] = ()) -> None:
        """Have a response begun as soon as it can be."""
        self._asked, self._lent = plan, lent
        self._later(lambda: self._give(plan))

    def ask_as_usual(self) -> None:
        """Have one begun that nobody asked for, unless there is one."""
        if self._asked is None and self.active is None and not self._state.session.is_replying:
            plan, lent = read_plan(self._state, _NO_FIELDS)
            self.ask(plan, lent)

    def cancel(self, event: Fields) -> None:
        """`response.cancel`.

        Raises:
            RefusedError: no response is active, or another one.
        """
        name = event.name("response_id")
        present = self.active.plan if self.active else self._asked
        if present is None or (name is not None and name != present.id):
            problem = "no response is active" if present is None else "another response is active"
            raise RefusedError(problem, code="response_cancel_not_active", param="response_id" if name else None)
        if self.active is None:
            self._cancel_asked(present)
        else:
            self.cancel_active()

    def cancel_active(self) -> None:
        """End the active response, if there is one and the session has not ended it."""
        if self.active is not None and not self.active.plan.is_cancelled and self._is_under_way(self.active):
            self.active.plan.is_cancelled = True
            self._state.session.cancel_reply()

    def was_retracted(self, item: str) -> bool:
        """Whether there was such an item, of which nothing had been heard when it was taken back."""
        return item in self._retracted

    def settle(self) -> None:
        """Begin what waits, if it can begin now."""
        if self._asked and self._asked.stage == "waiting":
            self._give(self._asked)

    # From the session.

    def turn_known(self) -> None:
        """A turn of the caller's is over; a response that waited for it begins with the next event, or never."""
        self._is_in_doubt = self._asked is not None and self._asked.stage == "given"

    def other_event(self) -> None:
        """It was not a reply's beginning."""
        if self._is_in_doubt and self._asked and not self._is_begun_inside():
            self._give_up(self._asked)

    def opened(self, event: events.ReplyOpened) -> None:
        if self.active is not None:  # the session never does that
            self._end(self.active)
        if event.options.label in self._unwanted:
            self._unwanted.discard(event.options.label)
            return
        asked, self._is_in_doubt, self._failure = self._asked, False, None
        is_asked = asked is not None and asked.stage == "given" and event.options.label in {"", asked.id}
        if asked is not None and is_asked:
            plan, self._asked = asked, None
        else:
            plan = plan_as_usual(self._state, event.options)
        self.active = Response(plan, event.reply, self._state, event.turn)
        self.active.open()

    def finished(self, event: events.ReplyFinished) -> None:
        if self.active is not None and self.active.reply == event.reply:
            self._end(self.active, event)

    def break_off(self) -> None:
        """The caller has taken the turn, and the session said so before it said that the reply is over."""
        if self.active is not None:
            self._end(self.active)

    def failed(self, event: events.StageFailed) -> None:
        """In case a response fails because of it."""
        self._failure = event

    def wants(self, event: events.ToolWanted) -> None:
        """The client is to run a tool."""
        response = self.active
        if response is None or response.reply != event.reply:
            return
        if response.has_calls and not response.plan.parallel_tool_calls:
            self._state.session.return_tool(event.call, ONE_AT_A_TIME)
            return
        response.call(event.call)

    def used(self, event: events.ToolUsed) -> None:
        """The agent has used a tool of its own: two items, and no event that makes a client run anything."""
        state, call = self._state, event.call
        item, history = state.outbox.ids.new("item"), (call_item(call),)
        state.add_item(Item(id=item, kind="function_call", call=call, call_id=call.id, history=history, is_ours=True))
        item = state.outbox.ids.new("item")
        state.add_item(Item(id=item, kind="function_call_output", text=event.output, call_id=call.id, is_ours=True))

    # Inside.

    def _may_ask(self) -> bool:
        if self.active is not None:
            return self.active.has_calls or self.active.plan.is_cancelled
        return not self._state.session.is_replying

    def _give(self, plan: Plan) -> None:
        if plan.stage == "dropped":
            return
        state = self._state
        if self.active is not None or state.session.is_replying:
            plan.stage = "waiting"
            return
        if self._lent or state.lent_tools:
            state.lent_tools = self._lent
            state.session.configure(session_settings(state.fields, state.setup, state.agent, self._lent))
        plan.stage = "given"
        state.session.reply(plan.options)

    def _is_begun_inside(self) -> bool:
        """Whether the session has begun what was asked for, or still will."""
        session = self._state.session
        return session.is_replying or session.dialogue.requested is not None

    def _is_under_way(self, response: Response) -> bool:
        dialogue = self._state.session.dialogue
        return any(draft is not None and draft.number == response.reply for draft in (dialogue.draft, dialogue.held))

    def _cancel_asked(self, plan: Plan) -> None:
        """It has not begun for the client; if the session has begun it, nobody needs to know."""
        if plan.stage == "given":
            if self._state.session.is_replying:
                self._unwanted.add(plan.id)
            self._state.session.cancel_reply()
        plan.is_cancelled = True
        self._give_up(plan)

    def _give_up(self, plan: Plan) -> None:
        """It ends before it has begun."""
        self._asked, self._is_in_doubt, plan.stage = None, False, "dropped"
        self._end(self._opened_for_nothing(plan), failed=not plan.is_cancelled)

    def _opened_for_nothing(self, plan: Plan) -> Response:
        response = Response(plan, 0, self._state)
        response.open()
        return response

    def _end(self, response: Response, event: events.ReplyFinished | None = None, *, failed: bool = False) -> None:
        """Without an event it was broken off, or failed before it began."""
        by_client, measured = response.plan.is_cancelled, event.usage if event else None
        if failed or (event is not None and event.failed):
            response.finish("failed", error=self._error(), measured=measured)
        elif event is None or event.interrupted:
            reason = "client_cancelled" if by_client else "turn_detected"
            response.finish("cancelled", reason=reason, measured=measured)
        else:
            response.finish("completed", measured=measured)
        if self.active is response:
            self.active = None
        if event is not None and event.retracted and not by_client and response.message is not None:
            self._retracted.append(response.message.id)
            self._state.remove_item(response.message)

    def _error(self) -> Json:
        failure, self._failure = self._failure, None
        if failure is None:
            return {"type": "server_error", "code": "no_reply", "message": "no reply came"}
        return {
            "type": "server_error",
            "code": f"{failure.stage.value}_failed",
            "message": failure.error.message,
        }
