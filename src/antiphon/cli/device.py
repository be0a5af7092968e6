"""`--device cuda`: the models that are worth it on a GPU, or, where there is none, a line that says why not."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from antiphon.config import Config


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the flag; `on_device` reads it."""
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="where speech is recognised and replies are written (gpu.device); without a GPU, on the processor",
    )


def on_device(config: Config, arguments: argparse.Namespace) -> Config:
    """The settings with the device that was asked for, or with the processor, and a line on why."""
    from antiphon.loading import on_usable_device

    if arguments.device:
        config = replace(config, gpu=replace(config.gpu, device=arguments.device))
    config, reason = on_usable_device(config)
    if reason:
        print(f"No GPU is used: {reason}. Everything computes on the processor.", file=sys.stderr)
    return config
