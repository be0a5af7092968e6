"""What speech-to-speech asks torch.hub for, out of the `silero-vad` package instead: the same model, without the net.

make_environment puts this file where torch.hub looks for the repository.
"""

from __future__ import annotations

from typing import Any

from silero_vad import load_silero_vad

dependencies = ["torch"]


def silero_vad(**_: Any) -> tuple[Any, tuple[()]]:
    """The voice detector as TorchScript, and none of the functions around it."""
    return load_silero_vad(onnx=False), ()
