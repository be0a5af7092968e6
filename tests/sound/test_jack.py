"""A JACK server as the card, through ALSA's plugin: sound comes in its time, and what is said is taken."""

from __future__ import annotations

import asyncio
import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.sound.jack import NAME, RATE_HZ, jack, missing

from antiphon.audio.card.link import SoundLink
from antiphon.audio.card.process import Order
from antiphon.audio.card.settings import SoundSettings
from antiphon.core.clock import samples_to_ns
from antiphon.core.flow import AudioFrame
from antiphon.hardware.audio_plan import plan_audio
from antiphon.hardware.facts import Rights

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.sound,
    pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()}; scripts/sound tells how"),
]


def test_jack_is_heard_in_time_and_takes_what_is_said(monkeypatch):
    """Its own rate; positions and stamps agree; a reply is announced as sounding."""
    frames, notes = [], []
    sound = SoundSettings(system="alsa", input=NAME, output=NAME)
    order = Order(sound=sound, plan=plan_audio(Rights(), "auto"), voice_hz=24_000)

    async def main() -> None:
        async with SoundLink(order, hear=frames.append, tell=notes.append) as link:
            for k in range(60):
                if k == 30:
                    link.play(AudioFrame(np.full(4800, 0.1, np.float32), 24_000, 0, frames[-1].captured_ns))
                    link.finish()
                await asyncio.sleep(0.05)

    with tempfile.TemporaryDirectory(prefix="jk.") as folder, jack(Path(folder)) as environment:
        for name in set(environment) - set(os.environ):
            monkeypatch.setenv(name, environment[name])
        asyncio.run(main())
    assert {RATE_HZ} == {frame.rate_hz for frame in frames}
    assert all(later.pos_samples >= earlier.end_samples for earlier, later in pairwise(frames))
    span_ns = frames[-1].captured_ns - frames[0].captured_ns
    assert span_ns > 2_000_000_000
    positions_ns = samples_to_ns(frames[-1].pos_samples - frames[0].pos_samples, RATE_HZ)
    assert abs(span_ns - positions_ns) < 30_000_000
    assert 1 == sum(note.what == "sounding" for note in notes)
