"""Ways to hear and to be heard are found by looking at files, and nothing is opened."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from tests.hardware.linux_trees import Tree

from antiphon.hardware.facts import AudioDevice
from antiphon.hardware.probe_audio import MOST_DEVICES, probe_audio

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

CARDS = """\
 0 [PCH            ]: HDA-Intel - HDA Intel PCH
                      HDA Intel PCH at 0xf7f10000 irq 32
12 [Loopback       ]: Loopback - Loopback - and more
                      Loopback 1
"""
PCM = """\
00-00: ALC887-VD Analog : ALC887-VD Analog : playback 1 : capture 1
00-03: HDMI 0 : HDMI 0 : playback 1
12-01:  : Loopback PCM : capture 8
05-00: Gone : Gone : playback 1
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(sys, "platform", "linux")
    return Tree(root=tmp_path)


def devices(tree: Tree, **variables: str) -> list[tuple[str, str, bool, bool]]:
    found = probe_audio(tree.root, variables)
    return [(device.name, device.system, device.can_capture, device.can_play) for device in found]


def test_cards_and_their_devices(tree: Tree) -> None:
    """With the card's name, if it has one, and what each device does."""
    tree.write("proc/asound/cards", CARDS)
    tree.write("proc/asound/pcm", PCM)

    expected = [
        ("HDA Intel PCH: ALC887-VD Analog", "alsa", True, True),
        ("HDA Intel PCH: HDMI 0", "alsa", False, True),
        ("Loopback - and more: device 1", "alsa", True, False),
        ("card 5: Gone", "alsa", False, True),
    ]
    assert expected == devices(tree)


@pytest.mark.parametrize(
    "text", ["", "--- no soundcards ---\n", "junk\n", "00: x\n", ":::\n", "0²-00: a : a : playback 1\n"]
)
def test_no_cards_no_devices(tree: Tree, text: str) -> None:
    """Nor from what makes no sense."""
    tree.write("proc/asound/cards", text)
    tree.write("proc/asound/pcm", text)

    assert [] == devices(tree)


def test_a_machine_with_too_many_is_cut_short(tree: Tree) -> None:
    """A list is bounded."""
    tree.write("proc/asound/pcm", "".join(f"{card}-00: A : A : playback 1\n" for card in range(1000)))

    assert MOST_DEVICES == len(devices(tree))


def test_servers_are_found_by_their_sockets(tree: Tree) -> None:
    """In the folder that the session names; a file is no socket."""
    tree.listen("run/user/7/pipewire-0")
    tree.listen("run/user/7/pulse/native")
    tree.listen(f"dev/shm/jack_default_{os.getuid()}_0")
    expected = [
        ("PipeWire", "pipewire", True, True),
        ("PulseAudio", "pulse", True, True),
        ("JACK", "jack", True, True),
    ]
    assert expected == devices(tree, XDG_RUNTIME_DIR="/run/user/7")
    assert [("JACK", "jack", True, True)] == devices(tree, XDG_RUNTIME_DIR="/run/user/8")

    tree.write("run/user/9/pipewire-0", "")
    assert "pipewire" not in {device[1] for device in devices(tree, XDG_RUNTIME_DIR="/run/user/9")}


def test_a_server_of_the_whole_system_and_a_session_without_a_name(tree: Tree) -> None:
    """As on boards that start PulseAudio for all, and in sessions that forgot their folder."""
    tree.listen("run/pulse/native")
    tree.listen(f"run/user/{os.getuid()}/pipewire-0")

    assert ["pipewire", "pulse"] == [system for _, system, _, _ in devices(tree)]


def test_other_systems_tell_none(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS and Windows would have to be asked through their libraries."""
    tree.write("proc/asound/pcm", PCM)
    monkeypatch.setattr(sys, "platform", "win32")

    assert () == probe_audio(tree.root)


def test_this_machine_has_an_answer() -> None:
    """Whatever it is."""
    assert all(isinstance(device, AudioDevice) for device in probe_audio())
