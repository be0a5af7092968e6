"""A sound server that ends amid a conversation and comes back: the audio process sees both, and the stream goes on."""

from __future__ import annotations

import asyncio
import os
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from tests.sound.server import missing, pipewire

from antiphon.audio.card.link import SoundLink
from antiphon.audio.card.process import Order
from antiphon.audio.card.settings import SoundSettings
from antiphon.hardware.audio_plan import plan_audio
from antiphon.hardware.facts import Rights

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.sound,
    pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()}; scripts/sound tells how"),
]


async def until(is_so, said=(), within_s: float = 12.0) -> None:
    for _ in range(round(within_s / 0.05)):
        if is_so():
            return
        await asyncio.sleep(0.05)
    raise AssertionError([(note.what, note.side, note.text, note.numbers) for note in said][-12:])


def test_both_ways_go_and_return(monkeypatch):
    """Each is told once, and positions have a gap as long as it was away."""
    frames, notes = [], []
    order = Order(sound=SoundSettings(system="alsa"), plan=plan_audio(Rights(), "auto"), voice_hz=24_000)

    def told(what):
        return {note.side for note in notes if note.what == what}

    async def main(folder: Path) -> None:
        first = pipewire(folder)
        server = await asyncio.to_thread(first.__enter__)
        for name in ("XDG_RUNTIME_DIR", "PIPEWIRE_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"):
            monkeypatch.setitem(os.environ, name, server.environment[name])
        try:
            link = SoundLink(order, hear=frames.append, tell=notes.append)
            await link.__aenter__()
        finally:
            running = len(frames)
            if not frames:
                await asyncio.sleep(1)
            await asyncio.to_thread(first.__exit__, None, None, None)
        try:
            await until(lambda: told("gone") == {"in", "out"}, notes)
            away = len(frames)
            assert away > running
            notes.clear()
            with await asyncio.to_thread(_entered, pipewire(folder)):
                await until(lambda: told("opened") == {"in", "out"})
                await until(lambda: len(frames) > away + 100)
        finally:
            await link.__aexit__(None, None, None)

    with tempfile.TemporaryDirectory(prefix="pw.") as folder:
        asyncio.run(main(Path(folder)))
    for earlier, later in pairwise(frames):
        assert later.pos_samples >= earlier.end_samples
    span_ns = frames[-1].captured_ns - frames[0].captured_ns
    positions_ns = (frames[-1].pos_samples - frames[0].pos_samples) * 62_500
    assert abs(span_ns - positions_ns) < 60_000_000


class _Entered:
    """A context that was entered on another thread."""

    def __init__(self, context):
        self._context = context

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._context.__exit__(None, None, None)


def _entered(context):
    context.__enter__()
    return _Entered(context)
