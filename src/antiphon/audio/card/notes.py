"""What the audio process tells beside sound, as bytes in the ring and back.

    opened   a way is open: its device, rate_hz, channels, period, buffer, and its sample type as `text`
    absent   it cannot be opened; `text` and `hint` say why. It is tried again and again
    gone     it was unplugged, or the audio process ended and is started anew
    failed   the audio process ended too often; link.py says so, not the process
    lost     an xrun: `count` so far
    tuned    its period (samples at 48 kHz) and the periods it waits for have changed
    sounding a run of the reply begins: it was due at `due_ns` and will be heard at `heard_ns`
    ready    under which policy the process runs, once; `text` says it and what was refused
    pulse    once a second: wake-ups and the worst lateness of that second

Units: ns, samples, as named. Threads: any; pure.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from antiphon.core.errors import PeerError

What: TypeAlias = Literal["opened", "absent", "gone", "lost", "tuned", "sounding", "ready", "pulse", "failed"]
Side: TypeAlias = Literal["in", "out", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One of them."""

    what: What
    side: Side = ""
    text: str = ""
    hint: str = ""
    numbers: dict[str, int] = field(default_factory=dict)

    def packed(self) -> bytes:
        """For the ring."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()


def read_note(data: bytes | memoryview) -> Note:
    """A note from the ring.

    Raises:
        PeerError: it is none.
    """
    try:
        return Note(**json.loads(bytes(data)))
    except (ValueError, TypeError) as error:
        raise PeerError(f"a note that cannot be read: {error}", hint="start both from one installation") from error
