"""What a Llama-family model is made of, as plain numbers, and what one step of it must at least read.

Units: tokens, elements, bytes. Threads: frozen values. It does not know tensors, files or devices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KINDS = ("none", "linear", "llama3")


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """How a model stretches its positions beyond those it was first trained on.

    Raises:
        CallerError: the kind is none of "none", "linear" and "llama3".
    """

    kind: str = "none"
    factor: float = 1.0
    low_factor: float = 1.0
    high_factor: float = 4.0
    trained_tokens: int = 8192

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise CallerError(
                f"the model scales its positions by {self.kind!r}", hint=f"use one with one of {', '.join(_KINDS)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaShape:
    """The numbers of one model.

    Raises:
        CallerError: the numbers do not fit together.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    feed_forward: int
    vocabulary: int
    norm_epsilon: float = 1e-5
    rope_base: float = 10_000.0
    rope_scaling: RopeScaling = RopeScaling()
    context_tokens: int = 4096
    is_tied: bool = False  # the last projection is the table of embeddings
    has_qkv_bias: bool = False

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise CallerError(
                f"{self.heads} heads cannot share {self.kv_heads} heads of keys and values",
                hint="the model's configuration is broken; fetch it again",
            )
        if self.head_size not in {16, 32, 64, 128, 256}:
            raise CallerError(
                f"heads of {self.head_size} elements are not supported", hint="use a model whose heads have 64 or 128"
            )

    @property
    def qkv_width(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_size

    @property
    def step_weights(self) -> int:
        """How many weights one step reads: all but the table of embeddings, of which it reads one row a token."""
        layer = (
            self.hidden * self.qkv_width
            + self.heads * self.head_size * self.hidden
            + 3 * self.hidden * self.feed_forward
            + 2 * self.hidden
        )
        return self.layers * layer + self.hidden + self.hidden * self.vocabulary

    def kv_bytes(self, tokens: int, element_bytes: int) -> int:
        """What `tokens` of context take, keys and values of all layers."""
        return 2 * self.layers * self.kv_heads * self.head_size * element_bytes * tokens

    def floor_ns(self, context_tokens: int, *, element_bytes: int, bytes_per_second: float) -> float:
        """The time in which a step's weights and the `context_tokens` of all its rows can be read once."""
        read = self.step_weights * element_bytes + self.kv_bytes(context_tokens, element_bytes)
        return read / bytes_per_second * 1e9

    def inverse_frequencies(self) -> list[float]:
        """Of the rotation of each pair of elements, scaled; radians per token."""
        plain = [self.rope_base ** (-2 * pair / self.head_size) for pair in range(self.head_size // 2)]
        scaling = self.rope_scaling
        if scaling.kind == "none":
            return plain
        if scaling.kind == "linear":
            return [each / scaling.factor for each in plain]
        return [_llama3(each, scaling) for each in plain]


def _llama3(frequency: float, scaling: RopeScaling) -> float:
    """Fast rotations stay, slow ones are stretched, and those between get a share of both."""
    turns = scaling.trained_tokens * frequency / (2 * math.pi)  # within the trained context
    if turns > scaling.high_factor:
        return frequency
    if turns < scaling.low_factor:
        return frequency / scaling.factor
    share = (turns - scaling.low_factor) / (scaling.high_factor - scaling.low_factor)
    return (1 - share) * frequency / scaling.factor + share * frequency


# The widths of the 8B models of the Llama 3 family; what speeds are measured on, with random weights.
EIGHT_BILLION = LlamaShape(
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_size=128,
    feed_forward=14336,
    vocabulary=128_256,
    rope_base=500_000.0,
    rope_scaling=RopeScaling(kind="llama3", factor=8.0),
    context_tokens=131_072,
)


def shape_of_config(config: Mapping[str, object]) -> LlamaShape:
    """The shape that a config.json of Hugging Face's form describes; read leniently, checked strictly.

    Raises:
        CallerError: it is of another family, or says what this engine does not do.
    """
    kind = str(config.get("model_type", ""))
    if kind not in {"llama", "qwen2", "mistral"}:
        raise CallerError(
            f"the model is of the family {kind!r}", hint="use one of llama, mistral or qwen2, or a server for others"
        )
    if str(config.get("hidden_act", "silu")) != "silu":
        raise CallerError("the model's activation is not silu", hint="use another model")
    if kind == "mistral" and config.get("sliding_window"):
        raise CallerError("the model attends to a sliding window", hint="use one without")
    if kind == "qwen2" and config.get("use_sliding_window"):
        raise CallerError("the model attends to a sliding window", hint="use one without")
    heads, hidden = _whole(config, "num_attention_heads"), _whole(config, "hidden_size")
    rope = _mapping(config.get("rope_parameters")) or _mapping(config.get("rope_scaling"))
    base = rope.get("rope_theta", config.get("rope_theta", 10_000.0))
    return LlamaShape(
        layers=_whole(config, "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=_whole(config, "num_key_value_heads", heads),
        head_size=_whole(config, "head_dim", hidden // heads),
        feed_forward=_whole(config, "intermediate_size"),
        vocabulary=_whole(config, "vocab_size"),
        norm_epsilon=_real(config.get("rms_norm_eps"), 1e-6),
        rope_base=_real(base, 10_000.0),
        rope_scaling=_scaling(rope),
        context_tokens=_whole(config, "max_position_embeddings", 4096),
        is_tied=bool(config.get("tie_word_embeddings", False)),
        has_qkv_bias=kind == "qwen2" or bool(config.get("attention_bias", False)),
    )


def _scaling(rope: Mapping[str, object]) -> RopeScaling:
    kind = str(rope.get("rope_type", rope.get("type", "default")))
    if kind == "default":
        return RopeScaling()
    return RopeScaling(
        kind=kind,
        factor=_real(rope.get("factor"), 1.0),
        low_factor=_real(rope.get("low_freq_factor"), 1.0),
        high_factor=_real(rope.get("high_freq_factor"), 4.0),
        trained_tokens=int(_real(rope.get("original_max_position_embeddings"), 8192)),
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _real(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default


def _whole(config: Mapping[str, object], name: str, default: int | None = None) -> int:
    value = config.get(name)
    if value is None:
        value = default
    if not isinstance(value, int) or value < 1:
        raise CallerError(f"config.json says {name} is {value!r}", hint="fetch the model again")
    return value


def least_bucket(buckets: Sequence[int], wanted: int) -> int:
    """The smallest of the rising `buckets` that holds `wanted`; the last one if none does."""
    return next((bucket for bucket in buckets if bucket >= wanted), buckets[-1])
