"""A model file of llama.cpp's in; its numbers, its tensors by Hugging Face's names, and its vocabulary out.

Whatever the file is quantised to is read as float32, block by block as the package gguf does it. llama.cpp keeps the
queries and keys of its `llama` family with each head's rotated pairs side by side; here they are put back to halves.
Threads: blocking; a tensor is read when it is asked for. It does not know devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from antiphon.core.errors import CallerError, MachineError
from antiphon.gpu.llama.shape import LlamaShape, RopeScaling

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

_FAMILIES = ("llama", "qwen2")
_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OUTER = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
_HEAD = {"lm_head.weight": "output.weight"}
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """A model's tokens, as its file tells them."""

    kind: str  # "gpt2" for one of bytes
    cut: str  # how text is parted before it is merged
    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    controls: tuple[int, ...]  # tokens that are no text
    ends: int | None  # the token that ends a reply
    begins: int | None  # the one that every text begins with, if the model wants it
    chat_template: str


class GgufFile:
    """One opened file."""

    def __init__(self, path: Path) -> None:
        """Read the headers.

        Raises:
            MachineError: the package gguf is not installed.
            CallerError: this is no such file, or of a family that the engine does not do.
        """
        try:
            import gguf  # noqa: PLC0415 - of the extra, and only this reader's
        except ImportError as error:
            raise MachineError(
                "model files in llama.cpp's format need the package gguf on a GPU",
                hint="install it: pip install 'antiphon[gpu]'",
            ) from error
        try:
            self._reader: Any = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError) as error:
            raise CallerError(f"{path} cannot be read as a model", hint="name a .gguf file") from error
        self._dequantize = gguf.quants.dequantize
        self._path = path
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.family = str(self._field("general.architecture", ""))
        if self.family not in _FAMILIES:
            raise CallerError(
                f"{path.name} is of the family {self.family!r}",
                hint=f"on a GPU use one of {', '.join(_FAMILIES)}, or name a server as the language model",
            )

    def shape(self) -> LlamaShape:
        """The model's numbers.

        Raises:
            CallerError: one is missing, or they say what this engine does not do.
        """
        heads, hidden = self._whole("attention.head_count"), self._whole("embedding_length")
        size = self._whole("attention.key_length", hidden // heads)
        if self._whole("rope.dimension_count", size) != size:
            raise CallerError(f"{self._path.name} rotates a part of each head", hint="use another model")
        tokens = self._field("tokenizer.ggml.tokens", ())
        return LlamaShape(
            layers=self._whole("block_count"),
            hidden=hidden,
            heads=heads,
            kv_heads=self._whole("attention.head_count_kv", heads),
            head_size=size,
            feed_forward=self._whole("feed_forward_length"),
            vocabulary=self._whole("vocab_size", len(tokens)),
            norm_epsilon=float(self._own("attention.layer_norm_rms_epsilon", 1e-5)),
            rope_base=float(self._own("rope.freq_base", 10_000.0)),
            rope_scaling=self._scaling(),
            context_tokens=self._whole("context_length", 4096),
            is_tied="output.weight" not in self._tensors,
            has_qkv_bias="blk.0.attn_q.bias" in self._tensors,
        )

    def tensor(self, name: str) -> Tensor:
        """The tensor that Hugging Face calls `name`, f32.

        Raises:
            CallerError: the file has no such tensor, or a type of numbers that cannot be read.
        """
        own = self._own_name(name)
        found = self._tensors.get(own)
        if found is None:
            raise CallerError(f"{self._path.name} has no tensor {own}", hint="fetch the model again")
        try:
            values = self._dequantize(found.data, found.tensor_type)
        except (NotImplementedError, ValueError) as error:
            raise CallerError(
                f"{self._path.name} holds numbers of the type {found.tensor_type.name}, which cannot be read",
                hint="use one quantised to Q4_K, Q6_K, Q8_0 or F16",
            ) from error
        tensor = torch.from_numpy(values.astype("float32", copy=True))
        if self.family == "llama" and any(part in name for part in (".q_proj.", ".k_proj.")):
            return self._in_halves(
                tensor, self._whole("attention.head_count" if ".q_proj." in name else "attention.head_count_kv")
            )
        return tensor

    def vocabulary(self) -> Vocabulary:
        """The model's tokens."""
        kinds = self._field("tokenizer.ggml.token_type", ())
        ends, begins = (
            self._field("tokenizer.ggml.eos_token_id", None),
            self._field("tokenizer.ggml.bos_token_id", None),
        )
        adds = bool(self._field("tokenizer.ggml.add_bos_token", self.family == "llama"))
        return Vocabulary(
            kind=str(self._field("tokenizer.ggml.model", "")),
            cut=str(self._field("tokenizer.ggml.pre", "default")),
            tokens=tuple(map(str, self._field("tokenizer.ggml.tokens", ()))),
            merges=tuple(map(str, self._field("tokenizer.ggml.merges", ()))),
            controls=tuple(place for place, kind in enumerate(kinds) if int(kind) in {3, 4}),
            ends=None if ends is None else int(ends),
            begins=int(begins) if adds and begins is not None else None,
            chat_template=str(self._field("tokenizer.chat_template", "")),
        )

    def _scaling(self) -> RopeScaling:
        kind = str(self._own("rope.scaling.type", "none"))
        if "rope_freqs.weight" in self._tensors:
            return self._llama3_scaling()
        factor = float(self._own("rope.scaling.factor", 1.0))
        return RopeScaling(kind=kind, factor=factor) if kind != "none" else RopeScaling()

    def _llama3_scaling(self) -> RopeScaling:
        """Llama 3.1 and later write what each frequency is divided by; the largest tells the factor."""
        found = self._tensors["rope_freqs.weight"]
        factors = self._dequantize(found.data, found.tensor_type)
        return RopeScaling(kind="llama3", factor=float(factors.max()))

    def _own_name(self, name: str) -> str:
        outer = (_OUTER | _HEAD).get(name)
        if outer is not None:
            return outer
        _, _, number, *middle, kind = name.split(".")
        return f"blk.{number}.{_NAMES['.'.join(middle)]}.{kind}"

    @staticmethod
    def _in_halves(tensor: Tensor, heads: int) -> Tensor:
        rest = tensor.shape[1:]
        return tensor.reshape(heads, -1, 2, *rest).transpose(1, 2).reshape(tensor.shape).contiguous()

    def _own(self, name: str, default: Any = _MISSING) -> Any:
        return self._field(f"{self.family}.{name}", default)

    def _whole(self, name: str, default: int | None = None) -> int:
        value = self._own(name, default)
        if not isinstance(value, int) or value < 1:
            raise CallerError(f"{self._path.name} says {name} is {value!r}", hint="fetch the model again")
        return value

    def _field(self, name: str, default: Any) -> Any:
        found = self._reader.get_field(name)
        if found is not None:
            return found.contents()
        if default is _MISSING:
            raise CallerError(f"{self._path.name} does not say its {name}", hint="fetch the model again")
        return default
