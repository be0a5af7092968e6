"""`antiphon` on a processor that passes for a GPU: `--device cuda` with torch's processor in the card's place.

    python bench/gpu/pretended.py converse order.wav --device cuda

It tests everything but the card; no figure of it means anything.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antiphon.gpu import engine_lane, machine
from antiphon.hardware import probe as probing
from antiphon.hardware.facts import GpuFacts

if TYPE_CHECKING:
    from antiphon.hardware.facts import MachineFacts

CARD = GpuFacts(
    index=0, name="a processor that passes for one", memory_bytes=8 * 2**30, compute="9.0", multiprocessors=132
)


def pretend() -> None:
    """From here on there is a GPU; to be called before anything of the package that looks for one is imported."""
    look, open_gpu = probing.probe, engine_lane.open_gpu

    def probe(*given: Any, **named: Any) -> MachineFacts:
        return replace(look(*given, **named), gpus=(CARD,))

    machine.why_no_cuda = lambda: ""
    probing.probe = probe
    engine_lane.open_gpu = lambda _, **named: open_gpu("cpu", **named)


if __name__ == "__main__":
    pretend()
    from antiphon.cli import main

    sys.exit(main())
