"""A model file in, completions out: llama.cpp's server inside this process, its hidden door locked.

xllamacpp offers no decoding call, only llama.cpp's server, whose calls we make in process. That server always opens
a listener on the loopback device as well. Nobody but this module knows its key; it has no user interface, and the
listings of slots, metrics and properties are off. We use it ourselves for one thing, a text's tokens.

Threads: `complete`, `tokens` and `count_tokens` block and belong on worker threads, any number at once; the server
computes on threads of its own and the calls release Python's lock. None of them survives a fork: load after it, or
spawn.
"""

from __future__ import annotations

import http.client
import json
import mmap
import platform
import secrets
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import CallerError, EngineError, MachineError
from antiphon.scheduling.openmp import limit_spinning
from antiphon.think.completion_server import Completed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NEEDED_FLAGS = frozenset({"avx2", "fma"})  # what the Linux wheel is compiled for; without them it dies of SIGILL
_GGUF_MAGIC = b"GGUF"
_GGUF_STRING = 8  # the type number of a string in a model file's metadata
_TOKENS_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """How the server is set up; none of it can change later."""

    threads: int
    conversations: int  # slots
    context_tokens: int  # for each of them
    batch_tokens: int  # the most of a prompt that is read in one go


class LlamaServer:
    """The running server."""

    def __init__(self, path: Path, plan: ServerPlan) -> None:
        """Load the model; takes half a second for a small one.

        Raises:
            EngineError: the model cannot be loaded, most often for want of memory.
            MachineError: this processor cannot run the engine, or a library that it needs is missing.
        """
        check_processor()
        self._key = secrets.token_urlsafe(32)
        try:
            self._server: Any = _start(path, plan, self._key)
        except RuntimeError as error:
            raise EngineError(
                f"the language model {path.name} could not be loaded",
                hint="fetch it again if it is damaged; lower the conversations or the context if memory is short",
            ) from error
        # A server that is freed before its loop has begun waits for that loop for ever, and its constructor returns
        # before the loop begins: only a completion proves that it runs.
        self.complete({"prompt": "a", "n_predict": 1}, lambda _: False)

    @property
    def is_closed(self) -> bool:
        return self._server is None

    @property
    def address(self) -> str:
        """Where the listener is, for the tests that knock at it."""
        return str(self._running().listening_address)

    def complete(self, request: Mapping[str, object], take: Callable[[Completed], bool]) -> None:
        """Run one completion and hand its steps to `take`, until that returns True or the completion ends.

        `take` is called once before the prompt is read, once for each batch of it, and once for each token; so
        long it may take to stop. What was read of the prompt until then stays in the slot's cache.

        Raises:
            EngineError: the model failed, or it was closed before the call.
        """
        server = self._running()
        failures: list[BaseException] = []

        def on_chunk(chunk: Mapping[str, Any]) -> bool:
            try:
                if "error" in chunk:
                    raise _failure(chunk["error"])  # noqa: TRY301 - an exception that left here would be swallowed
                return take(_completed(chunk))
            except BaseException as error:  # noqa: BLE001 - raised again below, on our side of the C++ code
                failures.append(error)
                return True

        try:
            server.handle_completions({**request, "stream": True, "return_progress": True}, on_chunk)
        except RuntimeError:
            # its message quotes the prompt, which is a caller's speech
            raise EngineError("the language model could not read a request") from None
        if failures:
            raise failures[0]

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` is, control markers included.

        Raises:
            EngineError: the server did not answer.
        """
        return len(self.tokens(text))

    def tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of `text`, control markers included.

        Raises:
            EngineError: the server did not answer.
        """
        host, _, port = self.address.removeprefix("http://").rpartition(":")
        body = json.dumps({"content": text, "add_special": False, "parse_special": True})
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        line = http.client.HTTPConnection(host, int(port), timeout=_TOKENS_TIMEOUT_S)
        try:
            line.request("POST", "/tokenize", body, headers)
            return tuple(json.loads(line.getresponse().read())["tokens"])
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            raise EngineError("the language model could not tell a text's tokens") from error
        finally:
            line.close()

    def forget(self, slot: int) -> None:
        """Nothing is gained by it: a slot's memory is set aside for good, and the next owner reads over it."""

    def close(self) -> None:
        """Accept no more calls; the model is freed when the last one in progress has returned."""
        self._server = None

    def _running(self) -> Any:
        server = self._server
        if server is None:
            raise EngineError("the language model is closed")
        return server


def check_model_file(path: Path) -> None:
    """Raises CallerError unless `path` is a file that begins as a model does."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CallerError(f"the language model {path} cannot be read: {reason}", hint="name a .gguf file") from error
    if magic != _GGUF_MAGIC:
        raise CallerError(f"{path} is not a language model", hint="name a file in llama.cpp's format, .gguf")


def check_processor() -> None:
    """Raises MachineError on x86-64 Linux if the processor lacks an instruction set that the engine is built for."""
    if sys.platform != "linux" or platform.machine() not in {"x86_64", "AMD64"}:
        return
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    missing = " and ".join(flag.upper() for flag in sorted(missing_flags(facts)))
    if missing:
        raise MachineError(
            f"this processor lacks {missing}, which the language model's engine needs",
            hint="use another machine, or name an OpenAI-compatible server as the language model",
        )


def missing_flags(cpu_facts: str) -> frozenset[str]:
    """What the engine needs and /proc/cpuinfo's text does not list; nothing if the text lists no flags at all."""
    for line in cpu_facts.splitlines():
        name, _, flags = line.partition(":")
        if name.strip() == "flags":
            return _NEEDED_FLAGS - set(flags.split())
    return frozenset()


def read_chat_template(path: Path) -> str:
    """The template text that a model file carries; empty if it has none."""
    key = b"tokenizer.chat_template"
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        # an entry is: length of key (u64), key, type (u32), and for a string its length (u64) and its bytes
        start = data.find(struct.pack("<Q", len(key)) + key)
        if start < 0:
            return ""
        at = start + 8 + len(key)
        kind, length = struct.unpack_from("<IQ", data, at)
        return data[at + 12 : at + 12 + length].decode("utf-8", "replace") if kind == _GGUF_STRING else ""


def _start(path: Path, plan: ServerPlan, key: str) -> Any:
    limit_spinning()
    try:
        import xllamacpp  # noqa: PLC0415 - heavy, and only this engine's
    except ImportError as error:
        raise MachineError(
            f"the language model's engine cannot be imported: {error}",
            hint="install xllamacpp; on Linux it needs libgomp as well (Debian: apt install libgomp1)",
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.verbosity = 0
    _size(params, plan)
    _lock(params, key)
    return xllamacpp.Server(params)


def _size(params: Any, plan: ServerPlan) -> None:
    params.n_parallel = plan.conversations
    params.n_ctx = plan.context_tokens * plan.conversations
    params.n_batch = params.n_ubatch = plan.batch_tokens
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = plan.threads
    params.cache_ram_mib = 0  # of prompts without a slot; by default up to 8 GiB
    params.cache_idle_slots = False
    params.fit_params = False  # we say what we want; a context made smaller in silence would cut replies
    params.ctx_shift = False
    params.warmup = True


def _lock(params: Any, key: str) -> None:
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_threads_http = 1
    params.api_keys = [key]
    params.cors_origins = params.cors_methods = params.cors_headers = ""
    params.cors_credentials = False
    params.ui = False
    params.ui_mcp_proxy = False
    params.endpoint_slots = params.endpoint_metrics = params.endpoint_props = False
    params.server_tools = []
    params.models_autoload = False
    params.offline = True
    params.slot_save_path = ""


def _completed(chunk: Mapping[str, Any]) -> Completed:
    choice = chunk["choices"][0]
    odds = choice.get("logprobs")
    likely = odds["content"][0]["top_logprobs"] if odds and odds.get("content") else ()
    progress = chunk.get("prompt_progress") or {}
    return Completed(
        str(choice.get("text", "")),
        tuple((str(one["token"]), float(one["logprob"])) for one in likely),
        tuple(int(one["id"]) for one in likely),
        progress.get("total"),
        progress.get("cache", 0),
        progress.get("processed", 0),
        reached_limit=choice.get("finish_reason") == "length",
    )


def _failure(error: Mapping[str, Any]) -> EngineError:
    """Ours for the server's error, whose message may quote the prompt and is therefore left out."""
    kind = str(error.get("type", "unknown error"))
    if kind == "exceed_context_size_error":
        return EngineError(
            f"a prompt of {error.get('n_prompt_tokens')} tokens does not fit into a context of {error.get('n_ctx')}",
            hint="raise the language model's context or shorten the instructions",
        )
    return EngineError(f"the language model failed: {kind}")
