"""How long a decode step of an 8B model takes, against the time in which its bytes can be read; random weights."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from timing import Graphs, graph_of, relative, timed

from antiphon.gpu.llama.pages import PAGE_TOKENS
from antiphon.gpu.llama.parts import PlainParts, TritonParts
from antiphon.gpu.llama.shape import EIGHT_BILLION, LlamaShape
from antiphon.gpu.llama.step import LlamaStep, Row
from antiphon.gpu.llama.weights import LlamaWeights, random_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.gpu.llama.parts import Parts

CONTEXT = 1024
TINY = LlamaShape(
    layers=2, hidden=128, heads=4, kv_heads=2, head_size=32, feed_forward=256, vocabulary=512, context_tokens=CONTEXT
)


def ceilings(device: torch.device, *, tiny: bool) -> dict[str, Any]:
    """The copy bandwidth and the rate of a large product, measured now."""
    if device.type != "cuda":
        return {"copy_bytes_per_s": 1e10, "note": "no device: a made-up figure, so that the arithmetic runs"}
    source = torch.randn((1 << 26) if tiny else (1 << 31), device=device, dtype=torch.bfloat16)
    target = torch.empty_like(source)
    copied = timed(lambda: target.copy_(source), samples=10, device=device)
    moved = 2 * source.numel() * source.element_size()
    left, right = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))
    product = timed(lambda: left @ right, samples=10, device=device)
    return {
        "copy_bytes_per_s": moved / copied["device_ms_p50"] * 1e3,
        "product_flop_per_s": 2 * 8192**3 / product["device_ms_p50"] * 1e3,
    }


def rows_of(lengths: list[int], vocabulary: int, seed: int = 0) -> list[Row]:
    """A row at the end of each sequence, its pages behind one another."""
    source = random.Random(seed)
    per = CONTEXT // PAGE_TOKENS
    return [
        Row(
            token=source.randrange(vocabulary),
            position=length - 1,
            pages=range(1 + place * per, 1 + place * per + -(-length // PAGE_TOKENS)),
        )
        for place, length in enumerate(lengths)
    ]


def kernels_right(device: torch.device, *, tiny: bool) -> dict[str, Any]:
    """Kernels against plain torch in f32 on the CPU, at an 8B model's widths; NaN wherever nothing should be read."""
    shape = TINY if tiny else replace(EIGHT_BILLION, layers=3, vocabulary=4096, context_tokens=CONTEXT)
    exact = random_weights(shape, device=torch.device("cpu"), dtype=torch.float32)
    lengths = [1, 64, 65, 200, 511, 700, 1023, 1024]
    memory: list[torch.Tensor] = []

    def logits(weights: LlamaWeights, parts: Parts, lengths: list[int], *, captured: bool = False) -> torch.Tensor:
        pages = len(lengths) * CONTEXT // PAGE_TOKENS + 1
        step = LlamaStep(weights, pages=pages, context_tokens=CONTEXT, parts=parts)
        if not memory:
            memory.append(torch.randn(step.memory.shape, generator=torch.Generator().manual_seed(5)))
        step.memory.copy_(memory[0][:, :, :pages])
        if parts.name == "triton":
            _poison(step, lengths)
        rows = rows_of(lengths, shape.vocabulary)
        step.fill(rows)
        bucket = step.bucket(rows)
        with torch.inference_mode():
            if captured:
                Graphs().graph(bucket, lambda: step.body(bucket))
            else:
                step.body(bucket)()
        return step.logits(len(rows)).float().cpu().clone()

    found: dict[str, Any] = {}
    expected = logits(exact, PlainParts(), lengths)
    if device.type != "cuda":
        return {"plain": relative(logits(exact, PlainParts(), lengths), expected)}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        moved = _moved(exact, device, dtype)
        for parts in (PlainParts(), TritonParts()):
            got = logits(moved, parts, lengths)
            agree = float((got.argmax(-1) == expected.argmax(-1)).float().mean())
            found[f"{parts.name} {dtype}"] = {"relative_error": relative(got, expected), "top1": agree}
        eager, graph = (logits(moved, TritonParts(), lengths, captured=each) for each in (False, True))
        found[f"graph against eager {dtype}"] = relative(graph, eager)
        single = logits(moved, TritonParts(), [700])
        found[f"single row {dtype}"] = relative(single, logits(exact, PlainParts(), [700]))
    return found


def _moved(weights: LlamaWeights, device: torch.device, dtype: torch.dtype) -> LlamaWeights:
    layers = tuple(
        replace(
            layer,
            **{
                name: None if (value := getattr(layer, name)) is None else value.to(device, dtype)
                for name in layer.__slots__
            },
        )
        for layer in weights.layers
    )
    outer = {name: getattr(weights, name).to(device, dtype) for name in ("embeddings", "norm", "head")}
    return replace(weights, layers=layers, **outer)


def _poison(step: LlamaStep, lengths: list[int]) -> None:
    per = CONTEXT // PAGE_TOKENS
    for place, length in enumerate(lengths):
        flat = step.memory[:, :, 1 + place * per : 1 + (place + 1) * per]
        whole, rest = divmod(length, PAGE_TOKENS)
        if rest:
            flat[:, :, whole, :, rest:] = torch.nan
        flat[:, :, whole + bool(rest) :] = torch.nan


def steps(device: torch.device, bandwidth: float, *, tiny: bool) -> Iterator[tuple[str, Any]]:
    """Name and figures of each, as they come."""
    shape = TINY if tiny else EIGHT_BILLION
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    weights = random_weights(shape, device=device, dtype=dtype)
    most = 4 if tiny and device.type != "cuda" else 64
    pages = most * CONTEXT // PAGE_TOKENS + 1
    step = LlamaStep(weights, pages=pages, context_tokens=CONTEXT)
    step.memory.normal_()
    samples = 3 if device.type != "cuda" else 100
    source = random.Random(7)
    mixed = [source.randrange(64, CONTEXT + 1) for _ in range(64)]
    captured = Graphs() if device.type == "cuda" else None
    batches = [batch for batch in (1, 2, 4, 8, 16, 32, 64) if batch <= most]
    for batch in batches:
        for name, lengths in (("full", [CONTEXT] * batch), ("mixed", mixed[:batch])):
            if name == "mixed" and batch < 16:
                continue
            floor = shape.floor_ns(sum(lengths), element_bytes=dtype.itemsize, bytes_per_second=bandwidth) / 1e6
            found = _step_time(step, rows_of(lengths, shape.vocabulary), samples, device, captured)
            found |= {
                "floor_ms": round(floor, 4),
                "times_floor": round(found["p50_ms"] / floor, 3),
                "tokens": sum(lengths),
            }
            yield f"batch {batch} {name}", found
    draws = [
        replace(row, temperature=0.7, penalty=1.1, last_tokens=(1, 2, 3), seed=9)
        for row in rows_of([CONTEXT] * batches[-1], shape.vocabulary)
    ]
    yield f"batch {batches[-1]} full, drawn", _step_time(step, draws, samples, device, captured)
    for count in (128, 256):
        if device.type == "cuda":
            reading = [
                replace(rows_of([CONTEXT], shape.vocabulary)[0], position=CONTEXT - count + place, pages=range(1, 17))
                for place in range(count)
            ]
            yield (
                f"reading {count} tokens behind {CONTEXT - count}",
                _step_time(step, reading, samples // 4, device, captured),
            )
    if captured is not None:
        yield "capture_ms", {str(key): round(took / 1e6, 1) for key, took in captured.capture_ns.items()}
        yield (
            "memory",
            {"reserved_bytes": torch.cuda.memory_reserved(), "allocated_bytes": torch.cuda.memory_allocated()},
        )
        yield from _variants(step, weights, samples, device)
        yield from _products(weights, device, bandwidth)
        yield from _attention(step, device)
        yield "profile batch 1", _profile(step, rows_of([CONTEXT], shape.vocabulary))
        yield "profile batch 64", _profile(step, rows_of([CONTEXT] * 64, shape.vocabulary))


def _step_time(
    step: LlamaStep, rows: list[Row], samples: int, device: torch.device, captured: Graphs | None
) -> dict[str, Any]:
    step.fill(rows)
    bucket = step.bucket(rows)
    if captured is None:
        with torch.inference_mode():
            return timed(step.body(bucket), samples=samples, device=device)
    graph = captured.graph(bucket, lambda: step.body(bucket))
    return timed(graph.replay, samples=samples, device=device, stream=captured.stream)


def _variants(step: LlamaStep, weights: LlamaWeights, samples: int, device: torch.device) -> Iterator[tuple[str, Any]]:
    """The same step put together otherwise, and eager."""
    rows = rows_of([CONTEXT], weights.shape.vocabulary)
    with torch.inference_mode():
        step.fill(rows)
        yield "batch 1 full, no graph", timed(step.body(step.bucket(rows)), samples=samples // 4, device=device)
    kept = step.parts
    for name, parts in (("library's row products", TritonParts(row_products=False)), ("plain parts", PlainParts())):
        step.parts = parts
        for batch in (1, 64):
            yield (
                f"batch {batch} full, {name}",
                _step_time(step, rows_of([CONTEXT] * batch, weights.shape.vocabulary), samples // 2, device, Graphs()),
            )
    step.parts = kept


def _products(weights: LlamaWeights, device: torch.device, bandwidth: float) -> Iterator[tuple[str, Any]]:
    """Each kind of product over all layers in one graph: how much of the bandwidth it reaches."""
    stream = torch.cuda.Stream()
    kinds = ("qkv", "output", "gate_up", "down")
    own = TritonParts()
    for kind in kinds:
        each = [getattr(layer, kind) for layer in weights.layers]
        size = sum(weight.numel() * weight.element_size() for weight in each)
        for batch in (1, 16, 64):
            row = torch.randn(batch, each[0].shape[1], device=device, dtype=each[0].dtype)
            ways: dict[str, Any] = {"library": lambda w, row=row: torch.nn.functional.linear(row, w)}
            if batch == 1:
                ways["own"] = lambda w, row=row: own.product(row, w)
            for way, call in ways.items():
                with torch.inference_mode():
                    graph = graph_of(lambda call=call, each=each: [call(w) for w in each], stream)
                took = timed(graph.replay, samples=20, device=device, stream=stream)["device_ms_p50"]
                yield (
                    f"product {kind} x{batch} {way}",
                    {
                        "ms": took,
                        "share_of_bandwidth": round(size / took * 1e3 / bandwidth, 3),
                    },
                )


def _attention(step: LlamaStep, device: torch.device) -> Iterator[tuple[str, Any]]:
    """All layers' attention in one graph, by the tokens of a part."""
    stream = torch.cuda.Stream()
    shape = step.weights.shape
    per = CONTEXT // PAGE_TOKENS
    for batch in (1, 4, 16, 64):
        query = torch.randn(batch, shape.heads, shape.head_size, device=device, dtype=step.weights.dtype)
        positions = torch.full((batch,), CONTEXT - 1, device=device, dtype=torch.int32)
        table = (1 + torch.arange(batch * per, device=device, dtype=torch.int32)).view(batch, per)
        out = torch.empty(batch, shape.heads * shape.head_size, device=device, dtype=step.weights.dtype)
        for chunk in (64, 128, 256, 512, 1024):
            splits = CONTEXT // chunk
            parts = (
                torch.empty(batch, shape.heads, splits, shape.head_size, device=device),
                torch.empty(batch, shape.heads, splits, device=device),
                torch.empty(batch, shape.heads, splits, device=device),
            )

            asked = (query, positions, table, parts, out)
            body = partial(_attended, step, asked, chunk)
            took = timed(graph_of(body, stream).replay, samples=20, device=device, stream=stream)["device_ms_p50"]
            read = shape.kv_bytes(batch * CONTEXT, step.weights.dtype.itemsize)
            yield f"attention x{batch} parts of {chunk}", {"ms": took, "bytes_per_s": read / took * 1e3}


def _attended(step: LlamaStep, asked: tuple[Any, ...], chunk: int) -> None:
    from antiphon.gpu.llama import kernels

    query, positions, table, parts, out = asked
    for cache in step.memory:
        kernels.attend(query, (cache[0], cache[1]), positions, table, parts, out, chunk=chunk)


def _profile(step: LlamaStep, rows: list[Row]) -> list[dict[str, Any]]:
    from torch.profiler import ProfilerActivity, profile

    step.fill(rows)
    body = step.body(step.bucket(rows))
    with torch.inference_mode():
        body()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
            body()
            torch.cuda.synchronize()
    table = sorted(seen.key_averages(), key=lambda each: -each.self_device_time_total)[:14]
    return [
        {"kernel": each.key[:90], "calls": each.count, "us": round(each.self_device_time_total, 1)} for each in table
    ]


def eager_transformers(device: torch.device, *, tiny: bool) -> dict[str, Any]:
    """The same shape in transformers' own modules, one caller, no graph."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = TINY if tiny else EIGHT_BILLION
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        max_position_embeddings=2 * CONTEXT,
        attn_implementation="sdpa",
    )
    torch.set_default_dtype(torch.bfloat16 if device.type == "cuda" else torch.float32)
    try:
        with device:
            model = LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)
    tokens = torch.randint(0, shape.vocabulary, (1, CONTEXT - 1), device=device)
    with torch.inference_mode():
        cache = model(tokens, use_cache=True).past_key_values
        one = tokens[:, :1]

        def run() -> None:
            model(one, past_key_values=cache, use_cache=True)
            cache.crop(CONTEXT - 1)

        return timed(run, samples=3 if device.type != "cuda" else 30, device=device)
