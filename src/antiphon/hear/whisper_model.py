"""The contract of what computes Whisper, and the two that keep it: CTranslate2 on a processor, torch on a GPU.

Units: columns of 10 ms, frames of two of them, tokens. Threads: every call blocks; one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from antiphon.core.errors import MachineError
from antiphon.hear.compute_type import fitting_compute_type

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from antiphon.gpu.engine_lane import Gpu
    from antiphon.hear.mel import Mel
    from antiphon.hear.whisper_settings import WhisperSettings

Encoded: TypeAlias = Any  # (1, columns / 2, width) of one caller, wherever its model keeps it

# results/batching.json, two cores: one call of the encoder for two callers takes as long as two calls, beyond 10 s of
# columns longer; its products are large already. The decoder reads all its weights for each token, for however many
# callers: each one more costs some 0.45 of the first. More than four would make the call long for who comes next.
_ENCODE_MOST = 1
_DECODE_MOST = 4
_TORCH_TYPES = ("float16", "bfloat16", "float32")


class WhisperModel(Protocol):
    """A loaded model; whatever a call raises means that it failed on this piece of work."""

    bins: int
    is_multilingual: bool
    compute_type: str
    encode_most: int  # windows of one call
    decode_most: int
    column_step: int  # windows are whole numbers of these

    def encode(self, windows: Sequence[Mel]) -> list[Encoded]:
        """What windows of one length, (bins, columns), sound like."""
        ...

    def generate(
        self, encoded: Sequence[Encoded], prompts: Sequence[Sequence[int]], *, max_length: int, no_repeat: int
    ) -> Sequence[Any]:
        """For each window what CTranslate2's greedy `generate` gives for such a prompt, scores and logits included.

        Windows of one length and prompts of one length; no run of `no_repeat` tokens comes twice.
        """
        ...

    def align(
        self, encoded: Encoded, opening: Sequence[int], tokens: Sequence[int], columns: int
    ) -> Sequence[tuple[int, int]]:
        """Pairs of a token's place and a frame, rising."""
        ...

    def close(self) -> None:
        """Free the memory; every later call fails."""
        ...


class CTranslate2Model:
    """CTranslate2's Whisper."""

    encode_most = _ENCODE_MOST
    decode_most = _DECODE_MOST
    column_step = 2  # the encoder halves them

    def __init__(self, model: Any) -> None:
        self.library = model
        self.bins = int(model.n_mels)
        self.is_multilingual = bool(model.is_multilingual)
        self.compute_type = str(model.compute_type)

    def encode(self, windows: Sequence[Mel]) -> list[Encoded]:
        rows = _array(self.library.encode(_storage(np.stack(windows)), to_cpu=True))  # (callers, columns / 2, width)
        return [rows[place : place + 1] for place in range(len(windows))]

    def generate(
        self, encoded: Sequence[Encoded], prompts: Sequence[Sequence[int]], *, max_length: int, no_repeat: int
    ) -> Sequence[Any]:
        features = np.concatenate(list(encoded)) if len(encoded) > 1 else encoded[0]
        results: Sequence[Any] = self.library.generate(
            _storage(features),
            [list(prompt) for prompt in prompts],
            beam_size=1,
            max_length=max_length,
            no_repeat_ngram_size=no_repeat,
            return_scores=True,
            return_no_speech_prob=True,
            return_logits_vocab=True,
        )
        return results

    def align(
        self, encoded: Encoded, opening: Sequence[int], tokens: Sequence[int], columns: int
    ) -> Sequence[tuple[int, int]]:
        # The columns count as the encoder reads them, though its own frames are two columns long.
        found = self.library.align(_storage(encoded), list(opening), [list(tokens)], columns)[0]
        pairs: Sequence[tuple[int, int]] = found.alignments
        return pairs

    def close(self) -> None:
        self.library.unload_model()


def load_ctranslate2(folder: Path, settings: WhisperSettings, *, threads: int) -> tuple[CTranslate2Model, str]:
    """The model, and why it computes in the numbers it does.

    Raises:
        MachineError: the folder's files are broken.
    """
    import ctranslate2  # noqa: PLC0415 - heavy: who loads no model does not pay for it

    asked = None if settings.compute_type == "auto" else settings.compute_type
    compute_type, reason = fitting_compute_type(asked, ctranslate2.get_supported_compute_types("cpu"), "cpu")
    try:
        model = ctranslate2.models.Whisper(
            str(folder), device="cpu", compute_type=compute_type, intra_threads=threads, inter_threads=1
        )
    except Exception as error:
        raise MachineError(
            f"{folder} cannot be loaded as a Whisper model", hint="verify the models: antiphon models verify"
        ) from error
    return CTranslate2Model(model), reason


def load_torch(folder: Path, settings: WhisperSettings, gpu: Gpu) -> tuple[WhisperModel, str]:
    """The same folder's model on a GPU, and why it computes in the numbers it does.

    Raises:
        CallerError: the folder's files are broken or of another kind.
    """
    import torch  # noqa: PLC0415 - heavy, of the extra, and only a GPU's

    from antiphon.gpu.whisper.model import WhisperModel as TorchWhisper  # noqa: PLC0415

    asked = None if settings.compute_type == "auto" else settings.compute_type
    types = _TORCH_TYPES if gpu.name.startswith("cuda") else ("float32",)
    compute_type, reason = fitting_compute_type(asked, types, "cuda")
    return TorchWhisper.load(folder, gpu=gpu, dtype=getattr(torch, compute_type)), reason


def _storage(array: Any) -> Any:
    """The array as CTranslate2 takes it, which shares its memory."""
    import ctranslate2  # noqa: PLC0415 - heavy: who loads no model does not pay for it

    return ctranslate2.StorageView.from_array(array)


def _array(storage: Any) -> Encoded:
    """What lies in main memory as an array, which shares it where NumPy knows the type."""
    import ctranslate2  # noqa: PLC0415 - heavy: who loads no model does not pay for it

    if storage.dtype == ctranslate2.DataType.bfloat16:
        storage = storage.to(ctranslate2.DataType.float32)
    return np.asarray(storage)
