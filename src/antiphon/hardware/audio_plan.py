"""What this user may ask the system for, and what sound there is -> how a sound card is served, and why.

It has to run within a period of the card whatever the engines do; a network's callers have no such thread.
Units: ns; priorities as the system counts them. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.hardware.reasons import Reason, decide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.hardware.facts import AudioDevice, Rights
    from antiphon.hardware.plan_settings import AudioPolicy

FIFO_PRIORITY = 80  # above the interrupt threads' 50, below the kernel's own at 99
RTKIT_PRIORITY = 20  # the most that the service grants
AUDIO_NICE = -11  # as sound servers take it
RUNTIME_NS, PERIOD_NS = 5 * MILLISECOND_NS, 10 * MILLISECOND_NS
SHORTEST_PERIOD, LONGEST_PERIOD, AT_HZ = 256, 4096, 48_000  # samples, as audio/card has them
LOCKED_BYTES = 64 * 2**20  # what a process that moves sound and nothing else holds


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioPlan:
    """How the audio thread is scheduled."""

    policy: AudioPolicy  # never auto
    priority: int = 0  # of fifo and rtkit
    nice: int = 0  # of nice
    runtime_ns: int = 0  # of deadline: so much within each period
    period_ns: int = 0
    locks_memory: bool = False
    reasons: tuple[Reason, ...]


def plan_audio(rights: Rights, asked: AudioPolicy, devices: Sequence[AudioDevice] = ()) -> AudioPlan:
    """The strongest policy that the rights allow.

    Raises:
        CallerError: the policy asked for is one that they do not allow.
    """
    allowed = _allowed(rights)
    planned = next(iter(allowed))
    if asked != "auto" and asked not in allowed:
        raise CallerError(
            f"cpu.audio_policy is {asked}, which this user has no right to",
            hint=f"use {' or '.join(allowed)}, or raise the limits (rtprio, nice) of this user",
        )
    policy, reason = decide(
        "policy", planned, allowed[planned], setting="cpu.audio_policy", given=None if asked == "auto" else asked
    )
    limit = rights.locked_memory_bytes
    locks = policy in {"fifo", "deadline", "rtkit"} and (limit is None or limit >= LOCKED_BYTES)
    if locks:
        why = "So that no page is fetched within a period."
    elif policy in {"nice", "normal"}:
        why = "Without a right to run in time, locked pages are not what it waits for."
    else:
        why = f"Only {(limit or 0) / 2**20:.0f} MiB may be locked, and it holds some {LOCKED_BYTES / 2**20:.0f}."
    _, locking = decide("locks memory", locks, why, show=lambda locked: "yes" if locked else "no")
    return AudioPlan(
        policy=policy,
        priority={"fifo": min(FIFO_PRIORITY, rights.fifo_priority), "rtkit": RTKIT_PRIORITY}.get(policy, 0),
        nice=max(AUDIO_NICE, rights.least_nice or 0) if policy == "nice" else 0,
        runtime_ns=RUNTIME_NS if policy == "deadline" else 0,
        period_ns=PERIOD_NS if policy == "deadline" else 0,
        locks_memory=locks,
        reasons=(reason, locking, *_of_cards(devices)),
    )


def _of_cards(devices: Sequence[AudioDevice]) -> tuple[Reason, ...]:
    """Through which system sound goes, and in which periods."""
    servers = [device.name for device in devices if device.system in {"pipewire", "pulse", "jack"}]
    cards = [device for device in devices if device.system not in {"pipewire", "pulse", "jack"}]
    ways = {"a microphone": any(d.can_capture for d in cards), "a loudspeaker": any(d.can_play for d in cards)}
    has = " and ".join(way for way, there in ways.items() if there)
    if servers:
        value, why = (
            "ALSA",
            f"Its default leads to {servers[0]} where the plugin is installed; else PortAudio is tried.",
        )
    elif has:
        value, why = (
            "ALSA",
            f"There is no sound server, but cards with {has}: their own memory is used.",
        )
    else:
        value, why = "none", "Neither a card nor a sound server was found; `antiphon talk` needs one, `serve` does not."
    _, card = decide("card", value, why)
    shortest, longest = (1000 * samples / AT_HZ for samples in (SHORTEST_PERIOD, LONGEST_PERIOD))
    why = (
        f"It begins with {SHORTEST_PERIOD} samples at 48 kHz, doubles to {LONGEST_PERIOD} at most when sound is lost, "
        f"and halves when calm; 25 to 75 % of a buffer of four are waited for, as lateness leaves room. With "
        f"sound.adapt=false it stays."
    )
    _, period = decide("period", f"{shortest:.1f}-{longest:.0f} ms", why)
    return card, period


def _allowed(rights: Rights) -> dict[AudioPolicy, str]:
    """The policies that may be had, the strongest first, each with what speaks for it."""
    found: dict[AudioPolicy, str] = {}
    if rights.fifo_priority > 0:
        found["fifo"] = (
            f"A priority of up to {rights.fifo_priority} may be had; under four busy neighbours one wake-up of 1000 "
            f"was 1.0 ms late, with a deadline 0.3 ms, without a policy 5.0 ms; a deadline's budget may be refused "
            f"or used up."
        )
    if rights.deadline:
        found["deadline"] = (
            "There is no right to a fixed priority, but one to deadlines: under four busy neighbours one wake-up of "
            "1000 was 0.3 ms late, without 5.0 ms."
        )
    if rights.rtkit:
        found["rtkit"] = f"There is a service that grants a priority of {RTKIT_PRIORITY}, and no stronger right."
    if rights.least_nice is not None and rights.least_nice < 0:
        found["nice"] = f"Nothing but a niceness of {rights.least_nice} may be had."
    found["normal"] = "There is no right to anything else; the engines are nicer, which is all that helps."
    return found
