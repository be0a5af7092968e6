"""Whatever the client and the session do, in any order: events stay whole, and nothing breaks.

The session is a real one with scripted engines, in virtual time; the client's moves are drawn at random. A second test
leaves the session out and tells the call any events in any order, more than a session would ever say.
"""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serve.realtime.oracle import check
from tests.serve.realtime.talk import SETUP, Client, Talk
from tests.session.call import Call as Scene
from tests.session.doubles import ScriptedRecognizer
from tests.think.doubles import Piece, ScriptedModel

from antiphon.core.errors import EngineError
from antiphon.core.flow import AudioFrame, ToolCall, Transcript
from antiphon.core.stamps import Stage
from antiphon.dialogue.options import ReplyOptions
from antiphon.dialogue.state import Phase
from antiphon.dialogue.turn_end import Evidence
from antiphon.serve.realtime.call import Call
from antiphon.serve.realtime.client_events import KINDS
from antiphon.session import events

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.unit

SEARCH = {"type": "function", "name": "search", "description": "", "parameters": {"type": "object"}}
WORDS = tuple((at, f"word{at}.") for at in range(300, 60_000, 400))

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELD_NAMES = st.sampled_from(
    ["session", "audio", "item", "item_id", "response", "response_id", "content_index", "audio_end_ms", "event_id"]
)
STRAY = st.builds(
    lambda kind, fields: {"type": kind, **fields}, st.sampled_from(KINDS), st.dictionaries(FIELD_NAMES, JUNK)
)
TURN_DETECTION = st.sampled_from(
    [
        None,
        {"type": "server_vad", "silence_duration_ms": 300},
        {"type": "server_vad", "idle_timeout_ms": 600},
        {"type": "semantic_vad", "create_response": False},
        {"type": "semantic_vad", "interrupt_response": False},
        {"type": "semantic_vad"},
    ]
)
FORMATS = st.sampled_from([{"type": "audio/pcm", "rate": 24_000}, {"type": "audio/pcmu"}])
UPDATE = st.builds(
    lambda detection, sound, tools, modality: {
        "type": "session.update",
        "session": {
            "audio": {"input": {"turn_detection": detection}, "output": {"format": sound}},
            "tools": tools,
            "output_modalities": modality,
        },
    },
    TURN_DETECTION,
    FORMATS,
    st.sampled_from([[], [SEARCH]]),
    st.sampled_from([["audio"], ["text"]]),
)
SIMPLE = st.sampled_from(
    [
        {"type": "input_audio_buffer.commit"},
        {"type": "input_audio_buffer.clear"},
        {"type": "response.cancel"},
        {"type": "response.create"},
        {"type": "response.create", "response": {"output_modalities": ["text"]}},
        {"type": "response.create", "response": {"tools": [SEARCH], "tool_choice": "required"}},
        {
            "type": "conversation.item.create",
            "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]},
        },
    ]
)
# What a client does with an item it knows, by its place among all; and how long it speaks or is silent.
ABOUT = st.tuples(st.sampled_from(["delete", "retrieve", "truncate", "output", "after"]), st.integers(0, 9))
SOUND = st.tuples(st.sampled_from(["voice", "silence"]), st.sampled_from([100, 400, 1500, 3000]))
MOVES = st.lists(SOUND | SIMPLE | UPDATE | ABOUT | STRAY | st.sampled_from(["{", "[]", "null"]), max_size=25)


def mind(seed: int) -> ScriptedModel:
    """Speaks, calls, fails or says nothing, as it comes."""
    rng = np.random.default_rng(seed)

    def reply(_: object) -> list[Piece | EngineError]:
        calls = ToolCall(f"call_{rng.integers(1_000_000)}", "search", "{}")
        said = [Piece(f"{word} ", 0.02) for word in ["one", "two", "three", "four", "five."]]
        choices = (said, said, [*said, Piece(calls, 0.02)], [Piece(calls, 0.02)], [], [EngineError("broke")])
        return list(choices[rng.integers(len(choices))])

    return ScriptedModel(reply=reply)


async def make(client: Client, moves: Iterable[object]) -> None:
    for move in moves:
        match move:
            case str():
                client.call.take(move)
            case dict():
                client.call.take(json.dumps(move))
            case ("voice" | "silence" as what, int(length)):
                spoken = ((client.position_ms, client.position_ms + length),) if what == "voice" else ()
                await client.sound(*spoken, until_ms=client.position_ms + length, step_ms=50)
            case (str(what), int(place)):
                about_item(client, what, place)
    await client.sound(until_ms=client.position_ms + 3000, step_ms=50)
    client.update(audio={"input": {"turn_detection": None}})  # nobody is asked whether they are still there
    client.call.take(json.dumps({"type": "response.cancel"}))
    await client.wait(200)
    client.call.take(json.dumps({"type": "response.cancel"}))
    await client.wait(8000)


def about_item(client: Client, what: str, place: int) -> None:
    items = [event["item"] for event in client.of("conversation.item.added")]
    if not items:
        return
    item = items[-1 - place % len(items)]
    if what == "truncate":
        client.send("conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=place * 100)
    elif what == "output":
        output = {"type": "function_call_output", "call_id": item.get("call_id", "call_x"), "output": "x"}
        client.send("conversation.item.create", item=output)
    elif what == "after":
        new = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Hm."}]}
        client.send("conversation.item.create", item=new, previous_item_id=item["id"])
    else:
        client.send(f"conversation.item.{what}", item_id=item["id"])


def check_whole(got: list[dict], *, is_over: bool) -> None:
    """Each response ends once and alone, each delta belongs to a live item of it, each part and item is closed."""
    names = [event["event_id"] for event in got]
    assert names == sorted(set(names))
    ended = Counter(event["response"]["id"] for event in got if event["type"] == "response.done")
    begun = Counter(event["response"]["id"] for event in got if event["type"] == "response.created")
    assert set(begun.values()) <= {1}
    assert set(ended.values()) <= {1}
    assert set(ended) <= set(begun)
    if is_over:
        assert begun == ended
    active: str | None = None
    live: dict[str, int] = {}
    for event in got:
        kind = event["type"]
        if kind == "response.created":
            assert active is None
            active, live = event["response"]["id"], {}
        elif kind == "response.output_item.added":
            assert event["output_index"] == len(live)
            live[event["item"]["id"]] = event["output_index"]
        elif kind == "response.done":
            assert event["response"]["id"] == active
            assert [item["id"] for item in event["response"]["output"]] == list(live)
            assert all(item["status"] != "in_progress" for item in event["response"]["output"])
            active = None
        elif kind.startswith("response."):
            name = event["item_id"] if "item_id" in event else event["item"]["id"]
            assert (event["response_id"], event["output_index"]) == (active, live[name])
    for item in {event["item"]["id"] for event in got if event["type"] == "conversation.item.added"}:
        assert sum(e["type"] == "conversation.item.added" and e["item"]["id"] == item for e in got) == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(moves=MOVES, seed=st.integers(0, 1000), is_paced=st.booleans())
def test_any_client_meets_whole_responses(moves: list[object], seed: int, is_paced: bool) -> None:
    talk = Talk(mind=mind(seed), ears=ScriptedRecognizer(WORDS), is_paced=is_paced)
    client = talk.hold(lambda client: make(client, moves))
    check_whole(client.got, is_over=True)


NUMBER = st.integers(1, 3)
FRAME = AudioFrame(np.zeros(480, np.float32), 24_000, 0, 0)
ANY_EVENT = st.one_of(
    st.builds(lambda turn: events.TurnStarted(turn=turn, at_ns=0, start_samples=0), NUMBER),
    st.builds(
        lambda turn: events.WordsHeard(
            turn=turn, at_ns=0, transcript=Transcript(text="a b", heard_samples=0, stable_chars=1)
        ),
        NUMBER,
    ),
    st.builds(
        lambda turn: events.TurnConfirmed(
            turn=turn,
            at_ns=0,
            text="a b",
            posterior=1.0,
            evidence=Evidence(text="a b"),
            silence_ns=0,
            end_samples=0,
            forced=False,
        ),
        NUMBER,
    ),
    st.builds(lambda turn: events.TurnAbandoned(turn=turn, at_ns=0), NUMBER),
    st.builds(
        lambda reply, is_text: events.ReplyOpened(turn=1, reply=reply, at_ns=0, options=ReplyOptions(is_text=is_text)),
        NUMBER,
        st.booleans(),
    ),
    st.builds(lambda reply: events.ReplyAudio(turn=1, reply=reply, frame=FRAME), NUMBER),
    st.builds(lambda reply: events.ReplyText(turn=1, reply=reply, text="a "), NUMBER),
    st.builds(
        lambda reply, ending: events.ReplyFinished(
            turn=1,
            reply=reply,
            at_ns=0,
            heard="",
            interrupted=ending in {1, 2},
            failed=ending == 3,
            retracted=ending == 2,
            reached_limit=ending == 4,
        ),
        NUMBER,
        st.integers(0, 4),
    ),
    st.builds(
        lambda reply, resumed: events.ReplyPaused(turn=1, reply=reply, at_ns=0, resumed=resumed),
        NUMBER,
        st.booleans(),
    ),
    st.builds(
        lambda reply, call: events.ToolWanted(turn=1, reply=reply, call=ToolCall(f"c{call}", "f", "{}"), at_ns=0),
        NUMBER,
        NUMBER,
    ),
    st.builds(
        lambda reply, call: events.ToolUsed(
            turn=1,
            reply=reply,
            call=ToolCall(f"o{call}", "f", "{}"),
            output="x",
            failed=False,
            started_ns=0,
            at_ns=0,
        ),
        NUMBER,
        NUMBER,
    ),
    st.just(events.IdleTooLong(at_ns=0)),
    st.sampled_from([Stage.RECOGNISE, Stage.THINK]).map(
        lambda stage: events.StageFailed(stage=stage, error=EngineError("broke"))
    ),
    st.just(events.SessionEnded(at_ns=0)),
)


def idle_session() -> SimpleNamespace:
    """Takes everything and does nothing."""
    session = SimpleNamespace(settings=Scene([]).settings, messages=(), is_replying=False)
    session.dialogue = SimpleNamespace(phase=Phase.LISTENING, requested=None, turn=1, draft=None, held=None)
    for name in ("feed", "configure", "commit", "clear", "reply", "cancel_reply", "delete_item", "truncate_item"):
        setattr(session, name, lambda *_: None)
    session.add_item = lambda *_, **__: None
    session.return_tool = lambda *_: None
    return session


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(ANY_EVENT | SIMPLE | UPDATE | STRAY, max_size=40))
def test_any_session_is_told_of_in_whole_responses(steps: list[object]) -> None:
    got: list[dict] = []

    def send(event: dict) -> None:
        check(event)
        got.append(event)

    call = Call(idle_session(), SETUP, clock=SimpleNamespace(now_ns=lambda: 0), send=send)
    call.begin()
    for step in steps:
        if isinstance(step, dict):
            call.take(json.dumps(step))
        else:
            call.tell(step)
    check_whole(got, is_over=False)
    assert not [event for event in got if event["type"] == "error" and event["error"]["code"] == "internal_error"]
