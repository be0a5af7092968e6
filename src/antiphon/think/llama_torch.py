"""A model's file or folder in, the language model on a GPU out: llama.cpp's requests, answered by our own engine.

All else, from the prompt's form to the choice of tools, is what it is on a processor (`llama.py`).
Threads: `complete` blocks its worker until the completion ends; its steps are handed out on the engine's thread.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import torch

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError, MachineError
from antiphon.core.stamps import Stage
from antiphon.gpu.llama.engine import Asked, LlamaEngine
from antiphon.gpu.llama.grammar import Grammars
from antiphon.gpu.llama.pages import PAGE_TOKENS
from antiphon.gpu.llama.step import LAST_TOKENS, LlamaStep
from antiphon.gpu.llama.tokens import TextStream, tokens_of_folder, tokens_of_vocabulary
from antiphon.gpu.llama.weights import gather_weights
from antiphon.gpu.weights.gguf_file import GgufFile
from antiphon.gpu.weights.safetensors_folder import SafetensorsFolder
from antiphon.scheduling.job import Errand, Job, current_errands
from antiphon.think.chat_template import template_for, template_named
from antiphon.think.completion_server import Completed
from antiphon.think.llama import LlamaModel
from antiphon.think.llama_server import check_model_file
from antiphon.think.llama_settings import LlamaSettings, copies_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from antiphon.gpu.engine_lane import Gpu
    from antiphon.gpu.llama.engine import Told
    from antiphon.gpu.llama.shape import LlamaShape
    from antiphon.gpu.llama.tokens import LlamaTokens
    from antiphon.gpu.llama.weights import LlamaWeights
    from antiphon.scheduling.lanes import Lane

_READ_TOKENS = 128  # of prompts in one step on a GPU
_LONGEST_SLICE_NS = 20 * MILLISECOND_NS  # a step that reads as much; a target, no reading
_SMALL_WEIGHTS = 1_000_000_000  # below, f16: its finer steps keep 4-bit weights; larger models need bf16's range


class TorchServer:
    """Our engine behind the requests that llama.cpp's server takes."""

    def __init__(self, engine: LlamaEngine, tokens: LlamaTokens) -> None:
        self.engine = engine
        self._tokens = tokens
        self._grammars = Grammars(tokens)
        engine.start()

    @property
    def is_closed(self) -> bool:
        return self.engine.is_closed

    def complete(self, request: Mapping[str, object], take: Callable[[Completed], bool]) -> None:
        """As the contract says; raises the same."""
        writer = _Writer(self._tokens, cast("Sequence[str]", request.get("stop", ())), take)
        grammar = request.get("grammar")
        most = _whole(request, "n_predict", -1)
        penalty = float(cast("float", request.get("repeat_penalty", 1.0)))
        asked = Asked(
            owner=_whole(request, "id_slot", 0),
            prompt=self._prompt(request["prompt"]),
            take=writer.take,
            most_tokens=most if most > 0 else self.engine.step.context_tokens,
            candidates=_whole(request, "n_probs", 0),
            penalty=penalty if grammar is None else 1.0,
            penalty_tokens=_whole(request, "repeat_last_n", LAST_TOKENS),
            temperature=float(cast("float", request.get("temperature", 0.0))),
            seed=_whole(request, "seed", 0),
            choice=self._grammars.begin(str(grammar)) if grammar is not None else None,
            errand=next(iter(current_errands()), Errand(job=Job(stage=Stage.THINK))),
        )
        self.engine.submit(asked).wait()
        writer.end()

    def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokens.encode(text))

    def count_tokens(self, text: str) -> int:
        return len(self._tokens.encode(text))

    def forget(self, slot: int) -> None:
        self.engine.forget(slot)

    def close(self) -> None:
        self.engine.close()

    def _prompt(self, given: object) -> list[int]:
        """Texts and tokens, one after the other."""
        found = [] if self._tokens.begins is None else [self._tokens.begins]
        for piece in given if isinstance(given, list) else [given]:
            found.extend([piece] if isinstance(piece, int) else self._tokens.encode(str(piece)))
        return found


class _Writer:
    """Tokens to text that ends before the first stop."""

    def __init__(self, tokens: LlamaTokens, stops: Sequence[str], take: Callable[[Completed], bool]) -> None:
        self._tokens = tokens
        self._stops = stops
        self._take = take
        self._stream = TextStream(tokens)
        self._held = ""  # may become a stop
        self._is_stopped = False

    def take(self, told: Told) -> bool:
        if told.token is None:
            return self._take(
                Completed(
                    "",
                    prompt_tokens=told.prompt_tokens,
                    cached_tokens=told.cached_tokens,
                    read_tokens=told.read_tokens,
                )
            )
        candidates = tuple((self._tokens.text(token), odds) for token, odds in told.candidates)
        text = "" if told.token in self._tokens.ends else self._stream.add(told.token)
        text = self._joined(text, is_last=told.reached_limit or told.token in self._tokens.ends)
        step = Completed(
            text, candidates, tuple(token for token, _ in told.candidates), reached_limit=told.reached_limit
        )
        return self._take(step) or self._is_stopped

    def end(self) -> None:
        """What was held back is text after all, if no stop came of it."""
        if self._held and not self._is_stopped:
            held, self._held = self._held, ""
            self._take(Completed(held))

    def _joined(self, text: str, *, is_last: bool) -> str:
        text = self._held + text
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self._is_stopped = True
            self._held = ""
            return text[: min(found)]
        kept = 0 if is_last else max((_begun(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of `text` may be the beginning of `stop`."""
    most = min(len(text), len(stop) - 1)
    return next((size for size in range(most, 0, -1) if stop.startswith(text[len(text) - size :])), 0)


def _whole(request: Mapping[str, object], name: str, default: int) -> int:
    value = request.get(name, default)
    return value if isinstance(value, int) else default


def load_torch_model(
    path: Path,
    *,
    lane: Lane,
    conversations: int,
    context_tokens: int,
    settings: LlamaSettings | None = None,
    gpu: Gpu,
) -> LlamaModel:
    """Load a .gguf file or a folder as Hugging Face lays it out; blocks for as long as that takes.

    Its steps are slices of `gpu`'s lane; `gpu.context_bytes` bound what conversations' contexts take of the memory.

    Raises:
        CallerError: the file or folder is missing, no model, or of a family that the engine does not do.
        MachineError: a package is missing, or the memory for contexts is too small for one.
    """
    settings = settings or LlamaSettings()
    device = torch.device(gpu.name)
    weights, tokens, chat_template = _folder(path, device) if path.is_dir() else _file(path, device)
    template = template_named(settings.template) if settings.template else template_for(chat_template)
    if template is None:
        raise CallerError(
            f"how {path.name} marks who speaks is unknown",
            hint="set the language model's template; without one in the file, chatml is the most common",
        )
    pages = _pages(weights, conversations, context_tokens, gpu.context_bytes)
    step = LlamaStep(weights, pages=pages, context_tokens=context_tokens)
    read = _READ_TOKENS if device.type == "cuda" else settings.batch_tokens
    engine = LlamaEngine(step, gpu.engine(), pages=pages, ends=tokens.ends, read_tokens=read)
    size = sum(file.stat().st_size for file in path.glob("*.safetensors")) if path.is_dir() else path.stat().st_size
    model = LlamaModel.around(
        TorchServer(engine, tokens),
        lane=lane,
        template=template,
        conversations=conversations,
        context_tokens=context_tokens,
        settings=settings,
        copies=copies_words(settings, size),
        name=path.stem,
    )
    model.longest_slice_ns = _LONGEST_SLICE_NS
    return model


def _pages(weights: LlamaWeights, conversations: int, context_tokens: int, most_bytes: int | None) -> int:
    """As many as all conversations can fill, and one for scratch; fewer where memory is bounded.

    Raises:
        MachineError: the bound leaves no room for one whole context.
    """
    one = -(-context_tokens // PAGE_TOKENS)
    wanted = 1 + (conversations + 1) * one  # the last place is where tools are chosen
    if most_bytes is None:
        return wanted
    page_bytes = weights.shape.kv_bytes(PAGE_TOKENS, weights.dtype.itemsize)
    held = most_bytes // page_bytes
    if held < 1 + one:
        raise MachineError(
            f"{most_bytes / 2**20:.0f} MiB for contexts hold {held} pages of the language model's memory, and one "
            f"context of {context_tokens} tokens needs {1 + one}",
            hint="raise gpu.context_mib, or lower capacity.context_tokens",
        )
    return min(wanted, held)


def _file(path: Path, device: torch.device) -> tuple[LlamaWeights, LlamaTokens, str]:
    check_model_file(path)
    file = GgufFile(path)
    vocabulary = file.vocabulary()
    shape = file.shape()
    weights = gather_weights(shape, file.tensor, device=device, dtype=_dtype(shape, device))
    return weights, tokens_of_vocabulary(vocabulary), vocabulary.chat_template


def _folder(path: Path, device: torch.device) -> tuple[LlamaWeights, LlamaTokens, str]:
    with SafetensorsFolder(path) as folder:
        shape = folder.shape()
        weights = gather_weights(shape, folder.tensor, device=device, dtype=_dtype(shape, device))
        tokens = tokens_of_folder(path, folder.config)
    return weights, tokens, _folder_template(path)


def _folder_template(path: Path) -> str:
    try:
        if (path / "chat_template.jinja").is_file():
            return (path / "chat_template.jinja").read_text(encoding="utf-8")
        told = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(told.get("chat_template", "")) if isinstance(told, dict) else ""


def _dtype(shape: LlamaShape, device: torch.device) -> torch.dtype:
    if device.type != "cuda":
        return torch.float32
    return torch.float16 if shape.step_weights < _SMALL_WEIGHTS else torch.bfloat16
