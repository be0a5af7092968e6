"""How long Whisper's encoder and decoder take at large-v3's widths; random weights, so times alone mean anything."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from timing import Graphs, relative, timed

from antiphon.gpu.whisper.decoder import WhisperDecoder, WritingBucket
from antiphon.gpu.whisper.encoder import WhisperEncoder, WindowBucket
from antiphon.gpu.whisper.weights import LARGE_V3, WritingRules, random_whisper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TEN_SECONDS = 1000  # columns


def whisper_steps(device: torch.device, *, tiny: bool) -> Iterator[tuple[str, Any]]:
    """Name and figures of each, as they come."""
    shape = replace(LARGE_V3, width=64, heads=2, feed_forward=128, encoder_layers=2, decoder_layers=2, vocabulary=600)
    shape = shape if tiny else LARGE_V3
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    weights = random_whisper(shape, device=device, dtype=dtype)
    encoder = WhisperEncoder(weights)
    captured = Graphs() if device.type == "cuda" else None
    samples = 50 if captured else 2
    windows = [torch.randn(shape.bins, TEN_SECONDS) for _ in range(16)]
    encoder.fill(windows)
    with torch.inference_mode():
        yield (
            "encoder 10 s x1, no graph",
            timed(encoder.body(WindowBucket(1, TEN_SECONDS)), samples=samples // 2, device=device),
        )
        plain = encoder.encoded(1, TEN_SECONDS).clone()
    for batch in (1, 2, 4, 8, 16) if captured else (1, 2):
        bucket = WindowBucket(batch, TEN_SECONDS)
        yield f"encoder 10 s x{batch}", _time(partial(encoder.body, bucket), bucket, captured, samples, device)
        if batch == 1:
            yield "encoder graph against eager", relative(encoder.encoded(1, TEN_SECONDS), plain)
    for columns in (2000, 3000) if captured else ():
        encoder.fill([torch.randn(shape.bins, columns) for _ in range(16)])
        for batch in (1, 16):
            bucket = WindowBucket(batch, columns)
            name = f"encoder {columns // 100} s x{batch}"
            yield name, _time(partial(encoder.body, bucket), bucket, captured, samples // 2, device)
    decoder = WhisperDecoder(weights, WritingRules(never=(1, 2)), most_callers=4)
    frames = TEN_SECONDS // 2
    with torch.inference_mode():
        yield (
            "decoder hears 10 s x4",
            timed(
                lambda: decoder.hear(torch.randn(4, frames, shape.width, device=device, dtype=dtype)),
                samples=samples // 2,
                device=device,
            ),
        )
    for callers in (1, 2, 4) if captured else (1,):
        decoder.fill([[7]] * callers, 40)
        writing = WritingBucket(callers, 1, frames, is_first=False)
        yield f"decoder step x{callers}", _time(partial(decoder.body, writing), writing, captured, samples, device)
    decoder.fill([[7] * 60], 0)
    prompt = WritingBucket(1, 60, frames, is_first=True)
    yield "decoder prompt of 60 x1", _time(partial(decoder.body, prompt), prompt, captured, samples, device)


def _time(
    make: Callable[[], Callable[[], None]], key: Any, captured: Graphs | None, samples: int, device: torch.device
) -> dict[str, Any]:
    with torch.inference_mode():
        if captured is None:
            return timed(make(), samples=samples, device=device)
        graph = captured.graph(key, make)
        return timed(graph.replay, samples=samples, device=device, stream=captured.stream)
