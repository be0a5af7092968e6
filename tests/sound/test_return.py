"""A sound server that ends amid a conversation and comes back: the audio process sees both, and the stream goes on."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from tests.sound.server import missing, pipewire

from antiphon.audio.card.link import SoundLink
from antiphon.audio.card.process import Order
from antiphon.audio.card.settings import SoundSettings
from antiphon.core.clock import samples_to_ns
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
    raise AssertionError(
        [(note.what, note.side, note.text, note.numbers) for note in said if note.what != "pulse"][-12:]
    )


@pytest.mark.parametrize("adapt", [True, False], ids=["adapting", "as it is"])
def test_both_ways_go_and_return(monkeypatch, adapt):
    """Each is told as gone and as opened again, and positions have a gap as long as it was away."""
    frames, notes = [], []
    sound = SoundSettings(system="alsa", adapt=adapt)
    order = Order(sound=sound, plan=plan_audio(Rights(), "auto"), voice_hz=24_000)

    def told(what: str) -> set[str]:
        return {note.side for note in notes if note.what == what}

    async def main(folder: Path) -> None:
        with pipewire(folder) as server:
            for name in ("XDG_RUNTIME_DIR", "PIPEWIRE_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"):
                monkeypatch.setenv(name, server.environment[name])
            link = SoundLink(order, hear=frames.append, tell=notes.append)
            await link.__aenter__()
            await until(lambda: len(frames) > 100, notes)
        try:
            await until(lambda: told("gone") >= {"in", "out"}, notes)
            away = len(frames)
            notes.clear()
            with pipewire(folder):
                await until(lambda: told("opened") == {"in", "out"}, notes)
                await until(lambda: len(frames) > away + 100, notes)
        finally:
            await link.__aexit__(None, None, None)

    with tempfile.TemporaryDirectory(prefix="pw.") as folder:
        asyncio.run(main(Path(folder)))
    assert 0 == sum(note.what == "failed" for note in notes)
    for earlier, later in pairwise(frames):
        assert later.pos_samples >= earlier.end_samples
    span_ns = frames[-1].captured_ns - frames[0].captured_ns
    positions_ns = samples_to_ns(frames[-1].pos_samples - frames[0].pos_samples, frames[0].rate_hz)
    assert abs(span_ns - positions_ns) < 60_000_000
