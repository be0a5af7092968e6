"""The default models' own weights: what the device computes against the same weights in f32 on the processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from timing import relative
from unpack import LANGUAGE_MODEL, UNPACKED, WHISPER
from windows import window_of

from antiphon.core.stamps import Stage
from antiphon.gpu.engine_lane import Gpu, Want, open_gpu
from antiphon.gpu.llama.pages import PAGE_TOKENS
from antiphon.gpu.llama.parts import PlainParts
from antiphon.gpu.llama.step import LlamaStep, Row
from antiphon.gpu.llama.tokens import tokens_of_vocabulary
from antiphon.gpu.llama.weights import gather_weights
from antiphon.gpu.weights.gguf_file import GgufFile
from antiphon.gpu.whisper.model import WhisperModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.gpu.llama.parts import Parts
    from antiphon.gpu.llama.weights import LlamaWeights

CONTEXT = 512
TEXTS = ("README.md", "docs/use.md", "docs/architecture.md", "CONTRIBUTING.md", "docs/interruptions.md")
_CPU = torch.device("cpu")


def language_model(device: torch.device, *, tiny: bool) -> Iterator[tuple[str, Any]]:
    """Teacher-forced over English text: does the device find the same token likeliest, and how far are the odds."""
    file = GgufFile(LANGUAGE_MODEL)
    shape = file.shape()
    tokens = tokens_of_vocabulary(file.vocabulary())
    most = 96 if tiny else CONTEXT
    texts = [tokens.encode(Path(name).read_text(encoding="utf-8"))[:most] for name in TEXTS[: 1 if tiny else None]]
    exact = gather_weights(shape, file.tensor, device=_CPU, dtype=torch.float32)
    expected = torch.cat([_forced(exact, text, PlainParts(), None) for text in texts])
    yield "tokens", len(expected)
    kinds = (torch.float32, torch.float16, torch.bfloat16) if device.type == "cuda" else (torch.float32,)
    gpu = open_gpu(str(device))
    for dtype in kinds:
        weights = gather_weights(shape, file.tensor, device=device, dtype=dtype)
        got = torch.cat([_forced(weights, text, None, gpu) for text in texts])
        yield str(dtype), _compared(got, expected)
        plain = torch.cat([_forced(weights, text, PlainParts(), None) for text in texts[:1]])
        yield f"{dtype}, graph and kernels against plain and eager", relative(got[: len(plain)], plain)
        eager = torch.cat([_forced(weights, text, None, None) for text in texts[:1]])
        yield f"{dtype}, graph against eager", relative(got[: len(eager)], eager)
        yield (
            f"{dtype}, one token a step",
            _compared(_forced(weights, texts[0][:96], None, gpu, count=1), expected[:96]),
        )


def _forced(
    weights: LlamaWeights, text: list[int], parts: Parts | None, gpu: Gpu | None, *, count: int = 64
) -> torch.Tensor:
    """(tokens, vocabulary) f32 on the processor, `count` tokens a step; through the lane, or without one eagerly."""
    step = LlamaStep(weights, pages=CONTEXT // PAGE_TOKENS + 1, context_tokens=CONTEXT, parts=parts)
    lane = gpu.engine() if gpu else None
    body = lane.add("forced", step.body) if lane else ""
    pages = range(1, CONTEXT // PAGE_TOKENS + 1)
    found = []
    for start in range(0, len(text), count):
        rows = [
            Row(token=token, position=start + at, pages=pages) for at, token in enumerate(text[start : start + count])
        ]
        step.fill(rows)
        bucket = step.bucket(rows)
        if lane is None:
            step.body(bucket)()
        else:
            lane.run(body, bucket, Want(stage=Stage.THINK))
        found.append(step.logits(len(rows)).float().cpu().clone())
    return torch.cat(found)


def _compared(got: torch.Tensor, expected: torch.Tensor) -> dict[str, float]:
    odds, exact = got.log_softmax(-1), expected.log_softmax(-1)
    best = exact.argmax(-1)
    of_best = (odds.gather(1, best[:, None]) - exact.gather(1, best[:, None])).abs()
    two = exact.topk(2, dim=-1).values
    clear = (two[:, 0] - two[:, 1]) > 0.1  # where f32 itself is not about to toss a coin
    same = odds.argmax(-1) == best
    return {
        "top1_agreement": round(float(same.float().mean()), 5),
        "top1_agreement_where_clear": round(float(same[clear].float().mean()), 5),
        "max_dlogprob_of_the_likeliest": round(float(of_best.max()), 5),
        "mean_dlogprob_of_the_likeliest": round(float(of_best.mean()), 6),
        "max_dlogprob_above_1_percent": round(float((odds - exact).abs()[exact > np.log(0.01)].max()), 5),
        "relative_error": relative(got, expected),
    }


def recognizer(device: torch.device, *, tiny: bool) -> Iterator[tuple[str, Any]]:
    """Twenty clips' texts: the device, the processor in f32, and CTranslate2 in f32."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(WHISPER / "tokenizer.json"))
    clips = np.load(UNPACKED / "clips.npz")
    theirs = json.loads(str(clips["tokens"]))[: 3 if tiny else None]
    windows = [window_of(clips[f"clip_{place}"]) for place in range(len(theirs))]
    host = open_gpu("cpu")
    exact, encoded = _written(WhisperModel.load(WHISPER, gpu=host, dtype=torch.float32), windows)
    yield "clips", len(theirs)
    yield "equal to CTranslate2 on the processor", sum(map(_same, exact, theirs))
    for dtype in (torch.float16, torch.bfloat16, torch.float32) if device.type == "cuda" else (torch.float32,):
        gpu = open_gpu(str(device))
        model = WhisperModel.load(WHISPER, gpu=gpu, dtype=dtype)
        gpu.prepare()
        got, own = _written(model, windows)
        differing = [place for place, pair in enumerate(zip(got, exact, strict=True)) if pair[0] != pair[1]]
        yield (
            str(dtype),
            {
                "equal_tokens_to_processor": len(got) - len(differing),
                "equal_text_to_processor": sum(
                    tokenizer.decode(mine) == tokenizer.decode(other) for mine, other in zip(got, exact, strict=True)
                ),
                "equal_to_ctranslate2": sum(map(_same, got, theirs)),
                "differing": differing,
                "encoder_relative_error_max": max(relative(a.float(), b) for a, b in zip(own, encoded, strict=True)),
                "together_equal": _together(model, windows, got),
                "aligned": model.align(own[0], [50257], got[0], windows[0].shape[1])[-1],
            },
        )


def _same(mine: list[int], other: list[int]) -> bool:
    return mine == other


def _written(model: WhisperModel, windows: list[Any]) -> tuple[list[list[int]], list[torch.Tensor]]:
    encoded = [model.encode([window])[0] for window in windows]
    prompt = [50257, 50362]  # of the model for English alone
    return [model.generate([each], [prompt], max_length=120, no_repeat=8)[0].tokens for each in encoded], encoded


def _together(model: WhisperModel, windows: list[Any], alone: list[list[int]]) -> bool:
    """Whether three clips of one length, encoded and written together, say what they say alone."""
    length = windows[0].shape[1]
    places = [place for place, window in enumerate(windows) if window.shape[1] == length][:3]
    encoded = model.encode([windows[place] for place in places])
    found = model.generate(encoded, [[50257, 50362]] * len(places), max_length=120, no_repeat=8)
    return [each.tokens for each in found] == [alone[place] for place in places]
