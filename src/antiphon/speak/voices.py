"""A voice's name in, the loaded voice out; which names there are, for those who choose.

A name is one of the catalogue ("hibari-emma", or for short "emma"), or "piper:" and the path of a Piper voice's
.onnx file. "piper:NAME" without a folder means the file NAME.onnx in the folder `voices` of the models' cache.
Threads: `load_voice` blocks for about a second, call it off the loop; the rest is quick.
What it never does: import an engine before a voice of it is loaded.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from antiphon.models.catalogue import Catalogue, Model
    from antiphon.models.store import Store
    from antiphon.scheduling.lanes import Lane
    from antiphon.speak.synthesizer import Synthesizer

PIPER = "piper:"
HIBARI = "hibari-"
PIPER_IN_CATALOGUE = "piper-"
INSTALL_PIPER = "pip install 'antiphon[piper]'"
VOICE_FOLDER = "voices"  # of the models' cache: Piper voices that somebody put there


def load_voice(name: str, *, store: Store, lane: Lane, threads: int) -> Synthesizer:
    """Load the voice called `name`; its file must be on this machine.

    Raises:
        CallerError: there is no such voice, or its file is none.
        MachineError: the voice was not fetched, or its engine is not installed.
    """
    if name.startswith(PIPER):
        return _piper(piper_file(name, store), name="", lane=lane, threads=threads)
    model = voice_model(name, store.catalogue)
    if model.name.startswith(PIPER_IN_CATALOGUE):
        folder = store.locate(model.name)
        file = next(folder / file.name for file in model.files if file.name.endswith(".onnx"))
        return _piper(file, name=model.name, lane=lane, threads=threads)
    from antiphon.speak.hibari import HibariVoice  # noqa: PLC0415 - only the chosen engine's library is loaded

    voice = model.name.removeprefix(HIBARI)
    return HibariVoice.load(store.file(model.name), voice=voice, lane=lane, threads=threads)


def voice_model(name: str, catalogue: Catalogue) -> Model:
    """The catalogue's voice called `name`, its engine's name left out or not.

    Raises:
        CallerError: there is none; the hint names the nearest.
    """
    voices = {model.name: model for model in catalogue.values() if model.role == "voice"}
    for full in (name, f"{HIBARI}{name}", f"{PIPER_IN_CATALOGUE}{name}"):
        if full in voices:
            return voices[full]
    if name in catalogue:
        message = f"{name} is no voice, but for {catalogue[name].role}"
        raise CallerError(message, hint="`antiphon voices list` shows the voices")
    spoken = {short: full for full in voices for short in (full, full.partition("-")[2])}
    near = get_close_matches(name.lower(), spoken, n=1, cutoff=0.5)
    hint = f"did you mean {spoken[near[0]]}?" if near else f"there are {', '.join(voices)}"
    raise CallerError(f"there is no voice {name!r}", hint=f"{hint} `antiphon voices list` tells of each")


def piper_file(name: str, store: Store) -> Path:
    """The file that "piper:..." stands for, whether or not it is there.

    Raises:
        CallerError: no file is named.
    """
    place = name.removeprefix(PIPER).strip()
    if not place:
        raise CallerError(f"{name!r} names no file", hint="write piper:/path/of/voice.onnx")
    path = Path(place).expanduser()
    if path.suffix == ".onnx" or len(path.parts) > 1:
        return path
    return store.root / VOICE_FOLDER / f"{place}.onnx"


def own_piper_voices(store: Store) -> list[Path]:
    """The Piper voices that somebody put into the cache's folder for them, by name."""
    return sorted((store.root / VOICE_FOLDER).glob("*.onnx"))


def _piper(file: Path, *, name: str, lane: Lane, threads: int) -> Synthesizer:
    from antiphon.speak.piper import PiperVoice  # noqa: PLC0415

    return PiperVoice.load(file, name=name, lane=lane, threads=threads)
