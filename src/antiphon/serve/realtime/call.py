"""One client's conversation in the OpenAI Realtime protocol (GA): messages in, the session driven, events out.

`take` is for what the client sends, `tell` for what the session says; neither ever raises. What is sent is complete
and in order, and it is the app's to bring it to the client through one writer.
Threads: the event loop. What it does not know: sockets, HTTP, who the client is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.core.stamps import Stage
from antiphon.serve.realtime.answers import Answers
from antiphon.serve.realtime.call_state import CallState
from antiphon.serve.realtime.caller import Caller
from antiphon.serve.realtime.client_events import ClientEvent, event_id_of, read_event, read_object
from antiphon.serve.realtime.errors import INTERNAL, NOT_SUPPORTED, RefusedError, error_body
from antiphon.serve.realtime.extras import Extras
from antiphon.serve.realtime.ids import Ids
from antiphon.serve.realtime.item_edits import ItemEdits
from antiphon.serve.realtime.outbox import Outbox
from antiphon.serve.realtime.output_buffer import OutputBuffer
from antiphon.serve.realtime.session_fields import CallSetup, first_fields, session_settings, session_wire
from antiphon.serve.realtime.session_update import Update
from antiphon.session import events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antiphon.core.clock import Clock
    from antiphon.core.flow import AudioFrame
    from antiphon.serve.realtime.fields import Fields
    from antiphon.serve.realtime.outbox import Json
    from antiphon.serve.realtime.response import Response
    from antiphon.session import Session

__all__ = ["Call", "CallSetup"]


class Call:
    """One client's conversation."""

    def __init__(self, session: Session, setup: CallSetup, *, clock: Clock, send: Callable[[Json], None]) -> None:
        outbox = Outbox(Ids(setup.id.removeprefix("sess_")[:24]), send)
        self._state = CallState(
            session=session,
            agent=session.settings,
            setup=setup,
            clock=clock,
            outbox=outbox,
            fields=first_fields(setup, session.settings),
            track=OutputBuffer(outbox, setup.track) if setup.track is not None else None,
            conversation_id=outbox.ids.new("conv"),
        )
        self._caller = Caller(self._state)
        self._answers = Answers(self._state, self._caller.later)
        self._extras = Extras(self._state)
        self._edits = ItemEdits(self._state, self._answers, self._caller.later)
        self._latest: Response | None = None  # that was opened, over or not
        self._late_start: events.TurnStarted | None = None  # of a voice over the active response
        self._is_paused = False  # the response, until it is known what that voice says
        self._held: list[events.ReplyAudio | events.ReplyText] = []  # came nevertheless; the playout bounds it

    def begin(self) -> None:
        """Greet the client; call it once, before anything else."""
        session = session_wire(self._state.fields, self._state.setup)
        self._state.outbox.put("session.created", {"session": session})
        conversation = {"id": self._state.conversation_id, "object": "realtime.conversation"}
        self._state.outbox.put("conversation.created", {"conversation": conversation})

    def fail(self, code: str, message: str) -> None:
        """Tell the client of an error that is the server's own."""
        self._state.outbox.put("error", {"error": error_body("server_error", code, message)})

    # From the client.

    def take(self, message: str | bytes) -> None:
        """One message of the client's; whatever it holds, this never raises: it sends an `error` event."""
        for _ in self.take_gently(message):
            pass

    def take_gently(self, message: str | bytes) -> Iterator[None]:
        """As `take`, in steps of a few milliseconds; nothing else is to be taken before the last."""
        event_id: str | None = None
        try:
            values = read_object(message)
            event_id = event_id_of(values)
            self._carry_out(read_event(values))
            while self._caller.feed_a_slice():
                yield
            self._answers.settle()
        except RefusedError as refused:
            self._refuse(refused.code, refused.wire_message, refused.param, event_id)
        except AntiphonError as error:
            self._refuse("invalid_value", error.message, None, event_id)
        except Exception:  # noqa: BLE001 - one client's event must not end the call, and what it held is private
            self._refuse_ours(event_id)

    def hear(self, frame: AudioFrame) -> None:
        """Sound of the client's that came over a track; this never raises."""
        try:
            self._caller.hear(frame)
        except RefusedError as refused:
            self._refuse(refused.code, refused.wire_message, refused.param, None)
        except Exception:  # noqa: BLE001 - as with events
            self._refuse_ours(None)

    def _carry_out(self, event: ClientEvent) -> None:
        fields = event.fields
        match event.kind:
            case "session.update":
                self._update(fields)
            case "input_audio_buffer.append":
                self._refuse_beside_track()
                self._caller.append(fields)
            case "input_audio_buffer.commit":
                self._caller.commit()
            case "input_audio_buffer.clear":
                self._caller.clear()
            case "conversation.item.create":
                self._edits.create(fields)
            case "conversation.item.delete":
                self._edits.delete(fields)
            case "conversation.item.retrieve":
                self._edits.retrieve(fields)
            case "conversation.item.truncate":
                self._edits.truncate(fields)
            case "response.create":
                self._answers.create(fields)
            case "response.cancel":
                self._answers.cancel(fields)
            case _:  # "output_audio_buffer.clear"
                self._fall_silent()

    def _refuse_beside_track(self) -> None:
        if self._state.track is not None:
            raise RefusedError(
                "sound comes over this call's audio track",
                code=NOT_SUPPORTED,
                param="type",
                hint="send it there, or connect by WebSocket to append it",
            )

    def _fall_silent(self) -> None:
        """The client wants to hear no more of the present response."""
        track = self._state.track
        if track is None:
            raise RefusedError(
                "output_audio_buffer.clear is for WebRTC alone",
                code=NOT_SUPPORTED,
                param="type",
                hint="stop playing what was sent, and truncate the item",
            )
        track.clear()
        self._answers.cancel_active()

    def _update(self, event: Fields) -> None:
        event.require("session")
        wanted = event.nested("session")
        assert wanted is not None
        state, before = self._state, self._state.fields
        fields = Update(state.setup, state.own_tools, state.heard_voice).of(before, wanted)
        settings = session_settings(fields, state.setup, state.agent, state.lent_tools)
        if fields.input_format != before.input_format:
            self._caller.change_format(fields.input_format)
        state.fields = fields
        if settings != state.session.settings:
            state.session.configure(settings)
        if fields.turn_taking is None and before.turn_taking is not None:
            self._caller.now_by_hand()
        elif fields.turn_taking is not None and before.turn_taking is None:
            self._caller.now_by_voice()
        state.outbox.put("session.updated", {"session": session_wire(fields, state.setup)})

    # From the session.

    def tell(self, event: events.Event) -> None:
        """One event of the session's; this never raises."""
        try:
            self._hear(event)
            self._answers.settle()
        except Exception:  # noqa: BLE001 - the call goes on without what this event would have said
            self._refuse_ours(None)

    def _hear(self, event: events.Event) -> None:  # noqa: C901, PLR0912 - one case per event
        if not isinstance(event, events.ReplyOpened):
            self._answers.other_event()
        match event:
            case events.TurnStarted():
                self._turn_starts(event)
            case events.WordsHeard():
                self._caller.words(event)
            case events.TurnConfirmed():
                self._let_turn_start()
                self._answers.turn_known()
                self._caller.confirmed(event)
            case events.TurnCorrected():
                self._caller.corrected(event)
            case events.TurnAbandoned():
                if self._late_start is not None and self._late_start.turn == event.turn:
                    self._late_start = None  # as if nobody had said anything
                self._caller.abandoned(event)
            case events.ReplyOpened():
                self._let_turn_start()
                self._answers.opened(event)
                self._latest = self._answers.active
            case events.ReplyAudio() | events.ReplyText():
                self._sound(event)
            case events.ReplyPaused(resumed=resumed):
                self._pause(resumed=resumed)
            case events.ReplyFinished():
                self._reply_ends(event)
            case events.ToolWanted():
                self._answers.wants(event)
            case events.ToolUsed():
                self._answers.used(event)
            case events.IdleTooLong():
                self._caller.idled()
                self._answers.ask_as_usual()
            case events.StageFailed(stage=stage, error=error):
                self._answers.failed(event)
                if stage is Stage.RECOGNISE:
                    self._caller.recognition_failed(error.message)
            case events.TurnMeasured(timeline=timeline):
                self._extras.timeline(timeline, self._answers.active)
            case events.TurnEndJudged():
                self._extras.judged(event)
            case _:  # how a reply sounds softer, and when its first sound left, have no form here
                pass

    def _turn_starts(self, event: events.TurnStarted) -> None:
        if self._answers.active is not None:  # a client drops what it plays when it hears of a voice
            self._late_start = event
        else:
            self._caller.started(event)

    def _let_turn_start(self) -> None:
        """A voice over the response has the floor now: the response ends first."""
        started, self._late_start = self._late_start, None
        if started is not None:
            self._answers.break_off()
            self._caller.started(started)

    def _sound(self, event: events.ReplyAudio | events.ReplyText) -> None:
        response = self._answers.active
        if self._is_paused:
            self._held.append(event)
        elif response is not None and response.reply == event.reply:
            if isinstance(event, events.ReplyAudio):
                response.sound(event.frame)
            else:
                response.say(event.text)

    def _pause(self, *, resumed: bool) -> None:
        self._is_paused = not resumed
        held, self._held = self._held, []
        for event in held:
            self._sound(event)

    def _reply_ends(self, event: events.ReplyFinished) -> None:
        self._is_paused, self._held = False, []
        response = self._answers.active
        if response is not None and response.reply == event.reply:
            response.reached_limit = event.reached_limit
        self._answers.finished(event)
        latest = self._latest
        self._extras.unheard(event, latest if latest and latest.reply == event.reply else None)
        self._edits.reply_ended()
        self._caller.reply_ended()
        self._let_turn_start()

    # Errors.

    def _refuse(self, code: str, message: str, param: str | None, event_id: str | None) -> None:
        body = error_body("invalid_request_error", code, message, param=param, event_id=event_id)
        self._state.outbox.put("error", {"error": body})

    def _refuse_ours(self, event_id: str | None) -> None:
        body = error_body("server_error", INTERNAL, "the server failed on this; it goes on", event_id=event_id)
        self._state.outbox.put("error", {"error": body})
