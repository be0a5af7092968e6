"""A folder in CTranslate2's form in; Whisper's numbers, weights and the tokens that it must not write out.

Threads: loading blocks. It does not know sound.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from antiphon.core.errors import CallerError
from antiphon.gpu.weights.ctranslate2_file import CTranslate2File

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor

_KIND, _REVISION = "WhisperSpec", 3
_SPREAD = 0.02
MANY_LANGUAGES = 51865  # tokens of the smallest vocabulary of a model that knows more than English


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperShape:
    """The numbers of one model."""

    bins: int
    width: int
    heads: int
    feed_forward: int
    encoder_layers: int
    decoder_layers: int
    vocabulary: int
    frames: int = 1500  # the encoder's positions, two columns each
    positions: int = 448  # the decoder's


# Of large-v3, by which speeds are measured, with random weights.
LARGE_V3 = WhisperShape(
    bins=128,
    width=1280,
    heads=20,
    feed_forward=5120,
    encoder_layers=32,
    decoder_layers=32,
    vocabulary=51866,
)


@dataclass(frozen=True, slots=True)
class Linear:
    """Matrix (out, in) and bias (out,)."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class Norm:
    """Gain and offset, (width,)."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross:
    """The decoder's look at the sound."""

    norm: Norm
    query: Linear
    key_value: Linear  # (2 width, width)
    output: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Of the encoder, or with `cross` of the decoder."""

    norm: Norm
    qkv: Linear  # (3 width, width)
    output: Linear
    cross: Cross | None
    feed_norm: Norm
    up: Linear
    down: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperWeights:
    """Of a whole model."""

    shape: WhisperShape
    convolutions: tuple[Linear, Linear]  # (width, bins, 3), (width, width, 3)
    encoder_positions: Tensor  # (frames, width)
    encoder_layers: tuple[Layer, ...]
    encoder_norm: Norm
    embeddings: Tensor  # (vocabulary, width), the last projection as well
    decoder_positions: Tensor  # (positions, width)
    decoder_layers: tuple[Layer, ...]
    decoder_norm: Norm

    @property
    def device(self) -> torch.device:
        return self.embeddings.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embeddings.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingRules:
    """What config.json says beside the weights."""

    never: tuple[int, ...] = ()  # tokens that are not written
    not_first: tuple[int, ...] = ()  # nor as the first one
    alignment_heads: tuple[tuple[int, int], ...] = field(default=())  # (layer, head) that look where a word sounds


def load_whisper(folder: Path, *, device: torch.device, dtype: torch.dtype) -> tuple[WhisperWeights, WritingRules]:
    """Read model.bin and config.json.

    Raises:
        CallerError: a file is missing or broken, or of another kind of model.
    """
    file = CTranslate2File(folder / "model.bin")
    if file.kind != _KIND or file.revision != _REVISION:
        raise CallerError(
            f"{folder} holds a {file.kind} of revision {file.revision}",
            hint=f"name the folder of a Whisper model in CTranslate2's form, revision {_REVISION}",
        )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        rules = WritingRules(
            never=tuple(map(int, config.get("suppress_ids", ()))),
            not_first=tuple(map(int, config.get("suppress_ids_begin", ()))),
            alignment_heads=tuple((int(layer), int(head)) for layer, head in config.get("alignment_heads", ())),
        )
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CallerError(f"{folder / 'config.json'} cannot be read", hint="fetch the model again") from error

    def taken(name: str) -> Tensor:
        return file.tensor(name).to(device=device, dtype=dtype).contiguous()

    def linear(name: str) -> Linear:
        return Linear(taken(f"{name}/weight"), taken(f"{name}/bias"))

    def norm(name: str) -> Norm:
        return Norm(taken(f"{name}/gamma"), taken(f"{name}/beta"))

    def layer(name: str, *, has_cross: bool) -> Layer:
        cross = f"{name}/attention"
        return Layer(
            norm=norm(f"{name}/self_attention/layer_norm"),
            qkv=linear(f"{name}/self_attention/linear_0"),
            output=linear(f"{name}/self_attention/linear_1"),
            cross=Cross(
                norm=norm(f"{cross}/layer_norm"),
                query=linear(f"{cross}/linear_0"),
                key_value=linear(f"{cross}/linear_1"),
                output=linear(f"{cross}/linear_2"),
            )
            if has_cross
            else None,
            feed_norm=norm(f"{name}/ffn/layer_norm"),
            up=linear(f"{name}/ffn/linear_0"),
            down=linear(f"{name}/ffn/linear_1"),
        )

    def count(side: str) -> int:
        return len(
            {
                name.split("/")[1]
                for name in file.names
                if name.startswith(f"{side}/layer_") and "layer_norm/" not in name[: len(side) + 12]
            }
        )

    width, bins, _ = file.shape("encoder/conv1/weight")
    shape = WhisperShape(
        bins=bins,
        width=width,
        heads=file.number("encoder/num_heads", 8),
        feed_forward=file.shape("encoder/layer_0/ffn/linear_0/weight")[0],
        encoder_layers=count("encoder"),
        decoder_layers=count("decoder"),
        vocabulary=file.shape("decoder/embeddings/weight")[0],
        frames=file.shape("encoder/position_encodings/encodings")[0],
        positions=file.shape("decoder/position_encodings/encodings")[0],
    )
    weights = WhisperWeights(
        shape=shape,
        convolutions=(linear("encoder/conv1"), linear("encoder/conv2")),
        encoder_positions=taken("encoder/position_encodings/encodings"),
        encoder_layers=tuple(layer(f"encoder/layer_{n}", has_cross=False) for n in range(shape.encoder_layers)),
        encoder_norm=norm("encoder/layer_norm"),
        embeddings=taken("decoder/embeddings/weight"),
        decoder_positions=taken("decoder/position_encodings/encodings"),
        decoder_layers=tuple(layer(f"decoder/layer_{n}", has_cross=True) for n in range(shape.decoder_layers)),
        decoder_norm=norm("decoder/layer_norm"),
    )
    return weights, rules


def random_whisper(shape: WhisperShape, *, device: torch.device, dtype: torch.dtype, seed: int = 0) -> WhisperWeights:
    """Weights for timing and for tests."""
    source = torch.Generator(device=device).manual_seed(seed)

    def drawn(*size: int) -> Tensor:
        return torch.empty(size, device=device, dtype=dtype).normal_(0.0, _SPREAD, generator=source)

    def linear(*size: int) -> Linear:
        return Linear(drawn(*size), drawn(size[0]))

    def norm() -> Norm:
        return Norm(torch.ones(width, device=device, dtype=dtype), torch.zeros(width, device=device, dtype=dtype))

    def layer(*, has_cross: bool) -> Layer:
        make: Callable[[], Cross] = lambda: Cross(  # noqa: E731
            norm=norm(), query=linear(width, width), key_value=linear(2 * width, width), output=linear(width, width)
        )
        return Layer(
            norm=norm(),
            qkv=linear(3 * width, width),
            output=linear(width, width),
            cross=make() if has_cross else None,
            feed_norm=norm(),
            up=linear(shape.feed_forward, width),
            down=linear(width, shape.feed_forward),
        )

    width = shape.width
    return WhisperWeights(
        shape=shape,
        convolutions=(linear(width, shape.bins, 3), linear(width, width, 3)),
        encoder_positions=drawn(shape.frames, width),
        encoder_layers=tuple(layer(has_cross=False) for _ in range(shape.encoder_layers)),
        encoder_norm=norm(),
        embeddings=drawn(shape.vocabulary, width),
        decoder_positions=drawn(shape.positions, width),
        decoder_layers=tuple(layer(has_cross=True) for _ in range(shape.decoder_layers)),
        decoder_norm=norm(),
    )
