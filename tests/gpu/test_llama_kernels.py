"""Triton's kernels, run by its interpreter on the processor, against plain torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the environment that scripts/gpu makes")
pytest.importorskip("triton", reason="needs the environment that scripts/gpu makes")

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SCRIPT = """
import torch
from antiphon.gpu.llama.parts import PlainParts, TritonParts
from antiphon.gpu.llama.shape import LlamaShape
from antiphon.gpu.llama.step import LlamaStep, Row
from antiphon.gpu.llama.weights import random_weights
shape = LlamaShape(layers=2, hidden=96, heads=6, kv_heads=2, head_size=16, feed_forward=80, vocabulary=97)
weights = random_weights(shape, device=torch.device("cpu"), dtype=torch.float32)
def logits(parts, lengths):
    step = LlamaStep(weights, pages=33, context_tokens=256, parts=parts)
    step.memory.copy_(torch.randn(step.memory.shape, generator=torch.Generator().manual_seed(1)))
    rows = [Row(token=at, position=n - 1, pages=range(1 + 4 * at, 5 + 4 * at)) for at, n in enumerate(lengths)]
    step.fill(rows)
    with torch.inference_mode():
        step.body(step.bucket(rows))()
    return step.logits(len(rows)).clone()
for lengths in ([1], [200], [1, 64, 65, 130, 256]):
    plain, own = logits(PlainParts(), lengths), logits(TritonParts(), lengths)
    error = float((plain - own).norm() / plain.norm())
    assert error < 1e-5, (lengths, error)
print("alike")
"""


def test_kernels_compute_what_plain_torch_does():
    """One row and several, at the borders of pages and of parts."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path("src").resolve())}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)

    assert "alike" in done.stdout, done.stderr[-2000:]
