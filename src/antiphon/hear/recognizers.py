"""A recognizer's folder in, the loaded engine that can read it out; what is in the folder says which one that is.

Threads: `load_recognizer` blocks for about half a second, call it off the loop.
What it never does: import an engine before a model of it is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.gpu.engine_lane import Gpu
    from antiphon.hear.moonshine_settings import MoonshineSettings
    from antiphon.hear.recognizer import Recognizer
    from antiphon.hear.whisper_settings import WhisperSettings
    from antiphon.scheduling.lanes import Lane

_MOONSHINE_FILE = "encoder_model.ort"  # Whisper's folders have none of this name


def load_recognizer(
    folder: Path,
    *,
    lane: Lane,
    threads: int,
    whisper: WhisperSettings,
    moonshine: MoonshineSettings,
    gpu: Gpu | None = None,
) -> Recognizer:
    """Load the model that lies in the folder; on `gpu` if there is one. Moonshine computes on the processor.

    Raises:
        MachineError: a file is missing or broken.
        CallerError: the model does not know the language that `whisper` names.
    """
    if not (folder / _MOONSHINE_FILE).is_file():
        from antiphon.hear.whisper import WhisperRecognizer  # noqa: PLC0415 - only the chosen engine's library is loaded

        return WhisperRecognizer.load(folder, lane=lane, threads=threads, gpu=gpu, settings=whisper)
    if whisper.language != "en":
        raise CallerError(
            f"whisper.language is {whisper.language}, but {folder.name} knows English only",
            hint='choose one for many languages, such as "whisper-base", and leave models.quick_recognizer empty',
        )
    from antiphon.hear.moonshine import MoonshineRecognizer  # noqa: PLC0415

    return MoonshineRecognizer.load(folder, lane=lane, threads=threads, settings=moonshine)
