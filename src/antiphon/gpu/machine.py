"""Whether this process can compute on a GPU, and why not.

Threads: any. It imports torch only when asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    import torch

_NO_TORCH = "torch is not installed"
_NO_GPU = "torch sees no CUDA device"


def why_no_cuda() -> str:
    """Why no model can be put on a GPU; empty if one can."""
    try:
        import torch  # noqa: PLC0415 - heavy, of the extra
    except ImportError:
        return _NO_TORCH
    return "" if torch.cuda.is_available() else _NO_GPU


def cuda_device() -> torch.device:
    """The GPU that models are put on.

    Raises:
        MachineError: torch is missing, or it sees no GPU.
    """
    reason = why_no_cuda()
    if reason == _NO_TORCH:
        raise MachineError("models on a GPU need torch", hint="install it: pip install 'antiphon[gpu]'")
    if reason:
        raise MachineError(reason, hint="check the driver with nvidia-smi, or choose the device cpu")
    import torch  # noqa: PLC0415

    return torch.device("cuda", torch.cuda.current_device())
