"""However a stream is cut into pieces and lines, the same events come out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.errors import PeerError
from antiphon.think.event_stream import MOST_CHARS, EventStream, SingleEvent

pytestmark = pytest.mark.unit

PLAIN = 'data: {"text": "ä 模型 😀"}\n\ndata: [DONE]\n\n'.encode()
EVENTS = ['{"text": "ä 模型 😀"}', "[DONE]"]


def read(*chunks: bytes) -> list[str]:
    stream = EventStream()
    return [data for chunk in chunks for data in stream.feed(chunk)] + stream.finish()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_any_line_end_ends_a_line(end):
    """Line feed, carriage return, or both; also with each byte in a piece of its own."""
    text = PLAIN.replace(b"\n", end)

    assert EVENTS == read(text)
    assert EVENTS == read(*(text[at : at + 1] for at in range(len(text))))


@given(cuts=st.lists(st.integers(0, len(PLAIN) + 2), max_size=8), end=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_cuts_make_no_difference(cuts, end):
    """Not even inside a character or between the two halves of a line end."""
    text = PLAIN.replace(b"\n", end)
    edges = [0, *sorted(cuts), len(text)]

    assert EVENTS == read(*(text[start:stop] for start, stop in pairwise(edges)))


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"data:a\n\n", ["a"]),
        (b"data:  a\n\n", [" a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data\n\n", [""]),
        (b": ping\n\ndata: a\n\n: ping\n\n", ["a"]),
        (b"event: delta\nid: 7\nretry: 10\ndata: a\n\n", ["a"]),
        (b'error: {"code": 500}\n\n', ['{"code": 500}']),
        (b"\n\n\ndata: a\n\n\n\n", ["a"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: a\n", ["a"]),
        (b"data: a", ["a"]),
        (b"data: a\xff\xfeb\n\n", ["ab"]),
        (b"data: a\xe6\xa8", ["a"]),
        (b"nonsense\n\n", []),
        (b"", []),
    ],
)
def test_fields(text, events):
    """One space after the colon, several lines, comments, other fields, no end, and bytes that are no text."""
    assert events == read(text)
    assert events == read(*(text[at : at + 1] for at in range(len(text))))


def test_an_event_comes_out_with_the_line_end_that_ends_it():
    """Nothing waits for what follows, even where a line feed might."""
    stream = EventStream()

    assert ["a"] == stream.feed(b"data: a\r\n\r")
    assert ["b"] == stream.feed(b"\ndata: b\r\n\r\n")


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 9000, b"data: " + b"x" * 9000 + b"\n"])
def test_an_event_has_a_largest_size(chunk):
    """In one line or in many, memory is bounded."""
    stream = EventStream()
    for _ in range(MOST_CHARS // 9000):
        stream.feed(chunk)
    with pytest.raises(PeerError, match="more than"):
        stream.feed(chunk)


def test_many_events_together_may_be_larger():
    """The bound is for each; comments count for nothing."""
    chunk = b"data: " + b"x" * 9000 + b"\n\n: " + b"y" * 9000 + b"\n"

    assert 1000 == len(read(*[chunk] * 1000))


def test_a_response_without_a_stream_is_one_event():
    """Bounded as well."""
    single = SingleEvent()

    assert ([], [], ["{}"]) == (single.feed(b"{"), single.feed(b"}"), single.finish())
    with pytest.raises(PeerError, match="more than"):
        single.feed(b"x" * (MOST_CHARS + 1))
