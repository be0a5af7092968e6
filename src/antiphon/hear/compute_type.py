"""The number format asked for and those that a device has in, the one to compute in and the reason out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection

ComputeType: TypeAlias = Literal[
    "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"
]

# Fastest first, of those that keep a Whisper model's words.
_PREFERRED: dict[str, tuple[ComputeType, ...]] = {
    "cpu": ("int8", "int8_float32", "float32"),
    "cuda": ("float16", "int8_float16", "bfloat16", "float32"),
}


def fitting_compute_type(asked: ComputeType | None, supported: Collection[str], device: str) -> tuple[str, str]:
    """What to compute in: what is asked for if the device has it, else the best that it has."""
    if asked in supported and asked is not None:
        return asked, f"{asked}, as asked"
    best = next((name for name in _PREFERRED[device] if name in supported), "float32")
    if asked is None:
        return best, f"{best}, the fastest that this {device} supports"
    return best, f"{best}, since this {device} does not support {asked}"
