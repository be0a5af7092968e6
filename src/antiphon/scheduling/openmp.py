"""How the OpenMP threads of the engines wait for each other, said before their library is loaded.

libgomp's threads spin while they wait, by default for milliseconds. With as many threads as cores, and engines that
share them, a thread then spins on the very core that the one it waits for needs: two threads beside one busy
neighbour on two cores gave 15 to 42 tokens/s with the default, at times under 1, and 30 to 33 with a short spin; alone
both gave about 80, and not spinning at all 54 (SmolLM2-135M through llama.cpp).
"""

from __future__ import annotations

import os

SPIN_COUNT = "300"  # about a microsecond: longer than a barrier between two running threads, shorter than a time slice


def limit_spinning() -> None:
    """Call before an engine's library is imported; later calls, and a user's own setting, change nothing."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
