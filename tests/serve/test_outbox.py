"""What waits for one client, and how it is written."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.virtual_time import VirtualClock, run

from antiphon.serve.encoding import encode
from antiphon.serve.outbox import LONGEST_EVENT_BYTES, Bounds, Outbox

pytestmark = pytest.mark.unit


class Box:
    """An outbox and all that it said."""

    def __init__(self, events: int = 100, bytes_: int = 10_000) -> None:
        self.full = 0
        self.ages: list[int] = []
        self.too_long: list[str] = []
        self.sent: list[str] = []
        self.box = Outbox(
            Bounds(events=events, bytes=bytes_),
            clock=VirtualClock(),
            on_full=self._is_full,
            on_sent=self.ages.append,
            on_too_long=self.too_long.append,
        )

    def _is_full(self) -> None:
        self.full += 1

    async def send(self, text: str) -> None:
        await asyncio.sleep(0.1)
        self.sent.append(json.loads(text)["type"])


def test_events_are_written_in_order_by_one_writer() -> None:
    """Two bursts, the second while the first is written: one after the other, and the age of each is told."""

    async def main() -> Box:
        box = Box()
        writing = asyncio.create_task(box.box.write(box.send))
        for number in range(3):
            box.box.put({"type": str(number)})
        await asyncio.sleep(0.15)
        box.box.put({"type": "3"})
        box.box.close({"type": "last"})
        box.box.put({"type": "late"})
        await writing
        return box

    box = run(main())
    assert ["0", "1", "2", "3", "last"] == box.sent
    assert [100, 200, 300] == [age // 1_000_000 for age in box.ages[:3]]
    assert (0, 0) == box.box.waiting


@pytest.mark.parametrize("bounds", [{"events": 3}, {"bytes_": 60}])
def test_a_full_box_takes_only_the_last_word(bounds: dict[str, int]) -> None:
    """It says once that it is full, forgets what waited, and stays empty but for the parting."""

    async def main() -> Box:
        box = Box(**bounds)
        for number in range(50):
            box.box.put({"type": "event", "number": number})
        assert (0, 0) == box.box.waiting
        box.box.close({"type": "error"})
        await box.box.write(box.send)
        return box

    box = run(main())
    assert 1 == box.full
    assert ["error"] == box.sent


def test_an_event_that_no_client_would_take_is_left_out() -> None:
    """Common clients close the connection over a message of more than 1 MiB."""

    async def main() -> Box:
        box = Box(bytes_=2**24)
        box.box.put({"type": "huge", "text": "x" * LONGEST_EVENT_BYTES})
        box.box.put({"type": "fits"})
        box.box.close()
        await box.box.write(box.send)
        return box

    box = run(main())
    assert ["fits"] == box.sent
    assert ["huge"] == box.too_long


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_audio.delta", "event_id": "e", "delta": "QUJD+/=="},
        {"type": "response.output_audio.delta", "delta": ""},
        {"type": "response.output_text.delta", "delta": 'quoted "é" \u2028 \U0001f600 \x00'},
        {"type": "x", "nested": {"list": [1, 2.5, None, True]}},
    ],
)
def test_the_short_way_says_the_same(event: dict[str, object]) -> None:
    """Whatever way an event is encoded, it reads back as it was, in ASCII alone."""
    assert event == json.loads(encode(event))
    assert encode(event).isascii()
