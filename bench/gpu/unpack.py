"""The parts that pack.py made in, one folder of models, clips and packages out."""

from __future__ import annotations

import importlib.util
import lzma
import sys
import tarfile
from pathlib import Path

UNPACKED = Path("/tmp/antiphon-gpu-parts")
CACHE = UNPACKED / "cache"  # as a user's own, ANTIPHON_CACHE
SITE = UNPACKED / "site"  # packages for where none can be fetched
LANGUAGE_MODEL = CACHE / "models/smollm2-135m-instruct-q4_1/SmolLM2-135M-Instruct.Q4_1.gguf"
WHISPER = CACHE / "models/whisper-tiny.en"


def lacks_packages() -> bool:
    """Whether those in SITE are needed here; they are built for one version of Python."""
    return any(importlib.util.find_spec(name) is None for name in ("gguf", "soxr", "websockets"))


def unpack(parts: Path) -> None:
    """Put the parts together, once, and let Python find the packages that it lacks."""
    if not (UNPACKED / "clips.npz").is_file():
        UNPACKED.mkdir(exist_ok=True)
        whole = UNPACKED / "whole"
        with whole.open("wb") as file:
            for part in sorted(parts.glob("part.*"), key=lambda path: int(path.suffix[1:])):
                file.write(part.read_bytes())
        with lzma.open(whole) as archive, tarfile.open(fileobj=archive) as tar:
            tar.extractall(UNPACKED, filter="data")
        whole.unlink()
    if lacks_packages():
        sys.path.append(str(SITE))  # last: what is installed there goes first
