"""Whether this process can compute on a GPU, and why not.

Threads: any. It imports torch only when asked.
"""

from __future__ import annotations

import os

_NO_TORCH = "torch is not installed"
_NO_GPU = "torch sees no CUDA device"
_QUEUES = ("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # streams share eight otherwise, and wait for each other's work


def why_no_cuda() -> str:
    """Why no model can be put on a GPU; empty if one can."""
    give_streams_queues()
    try:
        import torch  # noqa: PLC0415 - heavy, of the extra
    except ImportError:
        return _NO_TORCH
    return "" if torch.cuda.is_available() else _NO_GPU


def give_streams_queues() -> None:
    """As many of the driver's queues as there may be, unless the user says otherwise; before CUDA is first used."""
    os.environ.setdefault(*_QUEUES)
