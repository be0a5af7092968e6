"""However a server cuts a call into pieces, the same call comes out."""

from __future__ import annotations

import pytest

from antiphon.core.errors import PeerError
from antiphon.core.flow import ToolCall
from antiphon.think.tool_assembly import MOST_CALLS, MOST_CHARS, ToolAssembly

pytestmark = pytest.mark.unit

ROOM = ToolCall("a1", "book_room", '{"beds": 2}')
CALL = ToolCall("b2", "call_taxi", '{"at": "8"}')


def piece(index=None, id=None, name=None, arguments=None) -> dict[str, object]:  # noqa: A002 - the protocol's word
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def built(*pieces: dict[str, object], used: tuple[str, ...] = ()) -> list[ToolCall]:
    assembly = ToolAssembly(used)
    done = [assembly.take(one) for one in pieces] + [assembly.finish()]
    return [call for call in done if call is not None]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "a1", "book_room", '{"beds": 2}'), piece(1, "b2", "call_taxi", '{"at": "8"}')],
        [piece(None, "a1", "book_room", '{"beds": 2}'), piece(None, "b2", "call_taxi", '{"at": "8"}')],
        [piece(0, "a1", "book_room", '{"beds": 2}'), piece(0, "b2", "call_taxi", '{"at": "8"}')],
        [
            piece(0, "a1", "book_room", ""),
            piece(0, None, None, '{"beds"'),
            piece(0, None, None, ": 2}"),
            piece(1, "b2", "call_taxi", ""),
            piece(1, None, None, '{"at": "8"}'),
        ],
        [
            piece(0, "a1", "book_", None),
            piece(0, None, "room", None),
            piece(0, None, None, '{"beds": 2}'),
            piece(1, "b2", "call_taxi", '{"at": "8"}'),
        ],
        [
            piece(0, "a1", "book_room", '{"be'),
            piece(0, "a1", "book_room", 'ds": 2}'),
            piece(1, "b2", "call_taxi", '{"at"'),
            piece(1, "b2", "call_taxi", ': "8"}'),
        ],
        [piece(0, "a1", "book_room", {"beds": 2}), piece(1, "b2", "call_taxi", {"at": "8"})],
    ],
    ids=["whole", "without numbers", "one number", "in pieces", "a name in two", "all repeated", "objects"],
)
def test_servers_differ_and_the_calls_do_not(pieces):
    assert [ROOM, CALL] == built(*pieces)


def test_a_call_is_out_once_the_next_begins():
    """Nobody waits for the reply's end to begin the first."""
    assembly = ToolAssembly()

    assert assembly.take(piece(0, "a1", "book_room", '{"beds": 2}')) is None
    assert ROOM == assembly.take(piece(1, "b2", "call_taxi", ""))
    assert ToolCall("b2", "call_taxi", "{}") == assembly.finish()
    assert assembly.finish() is None


def test_two_calls_of_one_tool_without_ids_are_two():
    """Where numbers and ids say nothing, arguments that are whole do."""
    calls = built(piece(0, None, "book_room", '{"beds": 2}'), piece(0, None, "book_room", '{"beds": 3}'))

    assert ['{"beds": 2}', '{"beds": 3}'] == [call.arguments for call in calls]
    assert 2 == len({call.id for call in calls})


def test_every_id_is_new_in_the_conversation():
    """One that is missing, or was used before, is replaced; nine letters and digits suit all templates."""
    calls = built(piece(0, "a1", "x", ""), piece(1, "a1", "x", ""), piece(2, "", "x", ""), used=("a1",))

    ids = {call.id for call in calls}
    assert (3, set()) == (len(ids), ids & {"a1"})
    assert all(len(one) == 9 and one.isalnum() for one in ids)


def test_odd_pieces_do_no_harm():
    """What has the wrong type counts as not said."""
    assert [ToolCall("a1", "x", "{}")] == built({"index": "0", "id": "a1", "function": {"name": "x", "arguments": 5}})
    assert [("", "{}")] == [(call.name, call.arguments) for call in built({"function": None, "id": 3})]


def test_calls_and_their_arguments_are_bounded():
    """Whatever a server sends."""
    with pytest.raises(PeerError, match="calls in one reply"):
        built(*(piece(index, str(index), "x", "") for index in range(MOST_CALLS + 1)))
    with pytest.raises(PeerError, match="characters of arguments"):
        built(piece(0, "a", "x", "y" * (MOST_CHARS + 1)))
