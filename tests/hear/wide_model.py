"""A model of random weights in CTranslate2's form that reads 128 mel bins, as large-v3 and turbo do."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
from ctranslate2.specs.whisper_spec import WhisperSpec

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 32
BINS = 128


def write_wide_model(folder: Path, tokenizer: Path) -> None:
    """One layer each; says nothing of sense, but runs from sound to tokens."""
    words = [
        word for word, _ in sorted(json.loads(tokenizer.read_text())["model"]["vocab"].items(), key=lambda x: x[1])
    ]
    added = json.loads(tokenizer.read_text())["added_tokens"]
    words += [token["content"] for token in added if token["id"] >= len(words)]
    random = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return random.normal(0, 0.1, shape).astype(np.float32)

    spec = WhisperSpec(1, 2, 1, 2)
    encoder, decoder = spec.encoder, spec.decoder
    for convolution, bins in ((encoder.conv1, BINS), (encoder.conv2, WIDTH)):
        convolution.weight, convolution.bias = array(WIDTH, bins, 3), array(WIDTH)
    encoder.position_encodings.encodings = array(1500, WIDTH)
    decoder.position_encodings.encodings = array(448, WIDTH)
    decoder.embeddings.weight = array(len(words), WIDTH)
    decoder.projection.weight = decoder.embeddings.weight
    inner, outer = encoder.layer[0], decoder.layer[0]
    sizes = [(inner.self_attention.linear, (3, 1)), (outer.self_attention.linear, (3, 1))]
    for linears, factors in [*sizes, (outer.attention.linear, (1, 2, 1))]:
        for linear, factor in zip(linears, factors, strict=True):
            linear.weight, linear.bias = array(factor * WIDTH, WIDTH), array(factor * WIDTH)
    norms = [encoder.layer_norm, decoder.layer_norm, outer.attention.layer_norm]
    for layer in (inner, outer):
        norms += [layer.self_attention.layer_norm, layer.ffn.layer_norm]
        layer.ffn.linear_0.weight, layer.ffn.linear_0.bias = array(4 * WIDTH, WIDTH), array(4 * WIDTH)
        layer.ffn.linear_1.weight, layer.ffn.linear_1.bias = array(WIDTH, 4 * WIDTH), array(WIDTH)
    for norm in norms:
        norm.gamma, norm.beta = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    spec.register_vocabulary(words)
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], []
    spec.config.lang_ids, spec.config.alignment_heads = [], [(0, 0)]
    spec.validate()
    folder.mkdir()
    spec.save(str(folder))
    shutil.copy(tokenizer, folder / "tokenizer.json")
