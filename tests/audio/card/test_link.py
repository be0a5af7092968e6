"""The audio process as its conversation sees it, on a paced card: a real process, killed, restarted, refused."""

from __future__ import annotations

import asyncio
import sys
from itertools import pairwise

import numpy as np
import pytest
import soundfile

from antiphon.audio.card.link import SoundLink
from antiphon.audio.card.process import Order, read_order
from antiphon.audio.card.settings import SoundSettings
from antiphon.core.errors import MachineError
from antiphon.core.flow import AudioFrame
from antiphon.hardware.audio_plan import plan_audio
from antiphon.hardware.facts import Rights

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="rings need Linux")]


def order(**sound) -> Order:
    return Order(
        sound=SoundSettings(**{"system": "paced", **sound}), plan=plan_audio(Rights(), "auto"), voice_hz=24_000
    )


async def until(is_so, within_s: float = 10.0) -> None:
    for _ in range(round(within_s / 0.02)):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


def test_an_order_goes_through_a_command_line():
    given = order(input="x y", cushion_ms=5.0)
    assert (given.sound, given.plan.policy) == (read_order(given.text()).sound, read_order(given.text()).plan.policy)


@pytest.mark.parametrize("own_process", [True, False])
def test_frames_come_and_the_reply_goes(tmp_path, own_process):
    """What the microphone says arrives sample for sample; a frame that is played is announced as heard."""
    clip = np.arange(-8000, 8000, dtype=np.int16)
    soundfile.write(tmp_path / "ramp.wav", clip, 16_000, subtype="PCM_16")
    frames, notes = [], []

    async def main():
        link = SoundLink(
            order(input=str(tmp_path / "ramp.wav"), own_process=own_process), hear=frames.append, tell=notes.append
        )
        async with link:
            await until(lambda: len(frames) > 40)
            link.play(AudioFrame(np.full(480, 0.25, np.float32), 24_000, 0, frames[-1].end_ns))
            link.finish()
            await until(lambda: any(note.what == "sounding" for note in notes))
        assert 0 == link.dropped_frames

    asyncio.run(main())
    heard = np.rint(np.concatenate([frame.pcm for frame in frames]) * 32_768).astype(int)
    first = heard[0]
    assert np.array_equal(heard, (np.arange(len(heard)) + first + 8000) % 16_000 - 8000)
    assert [0] == [frame.pos_samples for frame in frames[:1]]
    assert {"ready", "opened", "sounding"} <= {note.what for note in notes}
    assert 1 == sum(note.what == "ready" for note in notes)


def test_a_killed_process_is_started_anew_and_the_stream_goes_on():
    """Positions rise over the gap, and say how long it was."""
    frames, notes = [], []

    async def main():
        async with SoundLink(order(), hear=frames.append, tell=notes.append) as link:
            await until(lambda: len(frames) > 20)
            before = len(frames)
            link._mover.kill()
            await until(lambda: len(frames) > before + 20)
            assert 1 == link.restarts

    asyncio.run(main())
    for earlier, later in pairwise(frames):
        assert later.pos_samples >= earlier.end_samples
    span_ns = frames[-1].captured_ns - frames[0].captured_ns
    assert abs(span_ns - (frames[-1].pos_samples - frames[0].pos_samples) * 62_500) < 20_000_000


def test_one_that_dies_again_and_again_is_given_up():
    notes = []

    def told():
        return [note.what for note in notes]

    async def main():
        async with SoundLink(order(), hear=lambda _: None, tell=notes.append) as link:
            for life in range(1, 5):
                link._mover.kill()
                await until(lambda life=life: "failed" in told() or told().count("opened") > 2 * life)
            assert "failed" in {note.what for note in notes}

    asyncio.run(main())


def test_no_card_is_a_refusal_with_a_remedy():
    """ALSA without a device by that name."""

    async def main():
        async with SoundLink(order(system="alsa", input="no-such", output="no-such"), hear=print, tell=lambda _: None):
            raise AssertionError("it opened")

    with pytest.raises(MachineError, match="no microphone and no loudspeaker can be used") as caught:
        asyncio.run(main())
    assert caught.value.hint
