"""The llama.cpp engine beyond the contract: its locks, its limits and its errors."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import aclosing

import pytest

from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import Message, ToolCall, ToolSpec
from antiphon.scheduling.lanes import ThreadLane
from antiphon.think.llama import LlamaModel
from antiphon.think.llama_server import LlamaServer, ServerPlan, read_chat_template
from antiphon.think.llama_settings import LlamaSettings

pytestmark = pytest.mark.model

PLAN = ServerPlan(threads=1, conversations=2, context_tokens=512, batch_tokens=32)
SYSTEM = Message("system", "Answer in one short sentence.")
READABLE = ("/health", "/v1/health")  # "ok" and nothing else
GET_ROUTES = (
    "/", "/index.html", "/metrics", "/props", "/models", "/v1/models", "/api/tags", "/slots", "/lora-adapters",
    "/v1/stream", "/tools", "/mcp", "/cors-proxy?url=http://127.0.0.1/", "/models/sse",
)  # fmt: skip
POST_ROUTES = (
    "/completion", "/completions", "/v1/completions", "/chat/completions", "/v1/chat/completions",
    "/v1/chat/completions/control", "/v1/responses", "/responses", "/v1/audio/transcriptions", "/v1/messages",
    "/v1/messages/count_tokens", "/infill", "/embedding", "/embeddings", "/v1/embeddings", "/rerank", "/v1/rerank",
    "/v1/systemone", "/tokenize", "/detokenize", "/apply-template", "/lora-adapters", "/slots/0?action=save",
    "/v1/streams/lookup", "/props", "/tools", "/api/show", "/api/chat", "/models/load", "/cors-proxy",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(smollm2_file):
    server = LlamaServer(smollm2_file, PLAN)
    yield server
    server.close()


@pytest.fixture(scope="module")
def model(smollm2_file):
    lane = ThreadLane("test-llm", threads=2)
    model = LlamaModel.load(smollm2_file, lane=lane, threads=1, conversations=2, context_tokens=512)
    yield model
    model.close()
    lane.close()


async def read(thinking, messages, max_tokens=8) -> str:
    async with aclosing(thinking.write(messages, max_tokens=max_tokens)) as reply:
        return "".join([piece async for piece in reply])


def knock(url: str, *, method: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
    body = b'{"prompt": "x", "content": "x", "messages": []}' if method == "POST" else None
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


@pytest.mark.parametrize("key", ["", "Bearer ", "Bearer guess"])
def test_the_hidden_listener_refuses_strangers(server, key):
    """Without the key nothing of substance is answered, and health says no more than ok."""
    headers = {"Authorization": key, "Content-Type": "application/json"}
    routes = [("GET", path) for path in GET_ROUTES] + [("POST", path) for path in POST_ROUTES]
    answers = {f"{how} {path}": knock(server.address + path, method=how, headers=headers)[0] for how, path in routes}

    assert {} == {route: code for route, code in answers.items() if code not in {401, 404}}
    for path in READABLE:
        assert knock(server.address + path, method="GET", headers=headers)[1] == b'{"status":"ok"}'


def test_the_hidden_listener_is_on_the_loopback_device_and_lets_no_page_in(server):
    """No other machine reaches it, and a browser is not told that a page may read its answers."""
    assert server.address.startswith("http://127.0.0.1:")
    for method in ("OPTIONS", "GET"):
        _, _, headers = knock(server.address + "/health", method=method, headers={"Origin": "http://evil.example"})
        assert headers.get("Access-Control-Allow-Origin", "") == ""
        assert headers.get("Access-Control-Allow-Credentials", "false") == "false"


@pytest.mark.parametrize("path", ["/slots", "/metrics"])
def test_listings_are_off_even_with_the_key(server, path):
    """Nobody needs them, so nobody gets them."""
    code, _, _ = knock(server.address + path, method="GET", headers={"Authorization": f"Bearer {server._key}"})

    assert code == 501


def test_it_is_silent_and_leaves_signals_alone(smollm2_file):
    """A process that loads, uses and closes the model writes nothing, and Ctrl-C still raises KeyboardInterrupt."""
    script = f"""
import os, signal
from pathlib import Path
from antiphon.think.llama_server import LlamaServer, ServerPlan
handler = signal.default_int_handler
signal.signal(signal.SIGINT, handler)  # whoever starts tests in the background has it ignored
plan = ServerPlan(threads=1, conversations=1, context_tokens=256, batch_tokens=32)
server = LlamaServer(Path({str(smollm2_file)!r}), plan)
server.complete({{"prompt": "Hi", "n_predict": 2}}, lambda step: False)
assert signal.getsignal(signal.SIGINT) is handler
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
except KeyboardInterrupt:
    server.close()
    raise SystemExit(7)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)

    assert (7, b"", b"") == (done.returncode, done.stdout, done.stderr)


def test_a_process_that_forgets_to_close_still_exits(smollm2_file):
    """The interpreter's end does not hang or crash."""
    script = f"""
from pathlib import Path
from antiphon.think.llama_server import LlamaServer, ServerPlan
plan = ServerPlan(threads=1, conversations=1, context_tokens=256, batch_tokens=32)
kept = LlamaServer(Path({str(smollm2_file)!r}), plan)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)

    assert (0, b"") == (done.returncode, done.stderr)


@pytest.mark.slow
def test_a_server_closed_as_soon_as_it_is_loaded_lets_go(smollm2_file):
    """Closing does not wait for a loop that never began, on a machine whose cores are all taken."""
    script = f"""
from pathlib import Path
from antiphon.think.llama_server import LlamaServer, ServerPlan
plan = ServerPlan(threads=1, conversations=1, context_tokens=256, batch_tokens=32)
for _ in range(10):
    LlamaServer(Path({str(smollm2_file)!r}), plan).close()
"""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        # the wait that this is about holds Python's lock, so only another process can notice it
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=100, check=False)
    finally:
        for one in busy:
            one.kill()
            one.wait()

    assert (0, b"") == (done.returncode, done.stderr)


def test_the_model_file_names_its_family(smollm2_file):
    """The template is found in the file's metadata."""
    assert "<|im_start|>" in read_chat_template(smollm2_file)


@pytest.mark.parametrize("content", [None, b"", b"RIFF0000", b"GGUF", b"GGUF" + bytes(1000)])
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    """Missing, empty, another kind or damaged: a clear error, not a crash."""
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    lane = ThreadLane("unused")
    with pytest.raises((CallerError, EngineError)):
        LlamaModel.load(
            path, lane=lane, threads=1, conversations=1, context_tokens=256, settings=LlamaSettings(template="chatml")
        )
    with pytest.raises(CallerError):
        LlamaModel.load(tmp_path, lane=lane, threads=1, conversations=1, context_tokens=256)


def test_half_a_model_file_is_refused(tmp_path, smollm2_file):
    """A download that broke off is an error that names the remedy."""
    path = tmp_path / "half.gguf"
    path.write_bytes(smollm2_file.read_bytes()[: smollm2_file.stat().st_size // 2])

    with pytest.raises(EngineError, match="fetch it again"):
        LlamaModel.load(path, lane=ThreadLane("unused"), threads=1, conversations=1, context_tokens=256)


def test_a_long_conversation_goes_on(model):
    """When it outgrows the context, the oldest exchanges are left out and the reply still comes."""
    talk = [SYSTEM]
    for index in range(40):
        talk += [Message("user", f"Tell me about the number {index}, please."), Message("assistant", "It is a number.")]
    talk.append(Message("user", "Thank you. What is tea?"))

    assert asyncio.run(read(model.open(), talk))


@pytest.mark.parametrize("text", ["word " * 700, "x1" * 2000, "你好" * 600])
def test_one_message_too_long_is_answered_from_its_end(model, text):
    """No crash and no hang; what was said last counts."""
    assert asyncio.run(read(model.open(), [SYSTEM, Message("user", text)], 3))


def test_instructions_too_long_are_the_callers_mistake(model):
    """The error names the remedy."""
    with pytest.raises(CallerError, match="shorten the instructions"):
        asyncio.run(read(model.open(), [Message("system", "word " * 700), Message("user", "Hi.")]))


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_a_reply_of_impossible_length_is_refused(model, max_tokens):
    """The message names the field."""
    with pytest.raises(CallerError, match="max_tokens"):
        asyncio.run(read(model.open(), [Message("user", "Hi.")], max_tokens))


def test_a_client_may_allow_more_than_fits(model):
    """A limit is a limit: the reply that fits is written."""
    assert asyncio.run(read(model.open(), [SYSTEM, Message("user", "Say yes.")], 10_000))


def test_a_role_marker_ends_the_reply(server):
    """A model that begins the next message is cut off before it; the marker itself does not come out."""
    pieces: list[str] = []
    forced = {"logit_bias": [[1, 100.0]], "preserved_tokens": ["<|im_start|>"], "stop": ["<|im_start|>"]}
    server.complete({"prompt": "Hi", "n_predict": 5, **forced}, lambda step: bool(pieces.append(step.text)))

    assert "".join(pieces) == ""


def test_a_reading_ahead_makes_way(model):
    """A reply that is wanted does not wait for a long prompt that is not."""

    async def scenario():
        thinking = model.open()
        steps = []
        ahead = asyncio.ensure_future(thinking.prefill([SYSTEM, Message("user", "one two three four five " * 60)]))
        while thinking._ahead is None:  # noqa: ASYNC110 - the engine announces nothing, and few steps suffice
            await asyncio.sleep(0)
        thinking._ahead.when_done(lambda: steps.append("ahead"))
        steps.append(await read(thinking, [SYSTEM, Message("user", "Hi.")], 1))
        await ahead
        return steps

    steps = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert steps[0] == "ahead"
    assert len(steps) == 2


def test_an_error_never_quotes_the_prompt(server):
    """What the caller said stays out of messages, also of those of the library."""
    with pytest.raises(EngineError) as caught:
        server.complete({"prompt": "secret \ud800"}, lambda step: False)

    assert "secret" not in f"{caught.value} {caught.value.__cause__}"


def test_a_failing_reader_is_heard(server):
    """An exception in our callback is raised, not swallowed by the library."""

    def fail(step):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        server.complete({"prompt": "Hi", "n_predict": 2}, fail)


PRICE = ToolSpec(
    name="get_price",
    description="Look up what a drink costs.",
    parameters={
        "type": "object",
        "properties": {
            "drink": {"type": "string"},
            "size": {"enum": ["small", "large"]},
            "count": {"type": "integer"},
            "notes": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["drink", "size"],
    },
)
WEATHER = ToolSpec(
    name="get_weather",
    description="Tell the weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TOOLS = (PRICE, WEATHER)


async def written(thinking, text, *, then=(), **offered) -> list[object]:
    messages = [SYSTEM, Message("user", text), *then]
    async with aclosing(thinking.write(messages, max_tokens=8, **offered)) as reply:
        return [piece async for piece in reply]


@pytest.mark.parametrize("words", ["copied", "free"])
@pytest.mark.parametrize(
    "text", ["How much is a large latte?", "Hello.", 'A "quoted" \\ word, 你好\n😀', "word " * 300]
)
def test_a_named_tool_is_called_with_arguments_that_fit(model, words, text, monkeypatch):
    """Whatever was said, the grammar leaves the model nothing else."""
    monkeypatch.setattr(model._shared.asker, "_copies", words == "copied")

    (call,) = asyncio.run(written(model.open(), text, tools=TOOLS, tool_choice="get_price"))

    assert ("call_1", "get_price") == (call.id, call.name)
    given = json.loads(call.arguments)
    assert {"drink", "size"} <= set(given) <= {"drink", "size", "count", "notes"}
    assert given["size"] in {"small", "large"}
    assert isinstance(given["drink"], str)


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": ["a \\ b", 'q"', "\n", 1, None, "é"]},
        {"anyOf": [{"type": "number"}, {"type": "null"}]},
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "maxItems": 2},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b c": {"type": "string"}}}}},
        {"$ref": "#/unknown"},
        {},
    ],
)
@pytest.mark.parametrize("words", ["copied", "free"])
def test_the_engine_reads_every_grammar(model, schema, words, monkeypatch):
    """Whatever a parameter is, the arguments are a JSON object that has it."""
    monkeypatch.setattr(model._shared.asker, "_copies", words == "copied")
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    spec = ToolSpec(name="do_it", description="Do it.", parameters=parameters)

    (call,) = asyncio.run(written(model.open(), "Take two, please.", tools=[spec], tool_choice="do_it"))

    assert ["x"] == list(json.loads(call.arguments))


def test_copied_arguments_are_the_callers(model):
    """A number, a choice and a text that were said are the ones that are passed on."""
    calls = asyncio.run(written(model.open(), "What is the weather in Paris?", tools=TOOLS, tool_choice="get_weather"))

    assert [{"city": "Paris"}] == [json.loads(call.arguments) for call in calls]


def test_a_required_call_is_made_and_numbered(model):
    """One of the tools is called, each call under an id of its own."""

    async def twice() -> list[object]:
        thinking = model.open()
        jobs = [written(thinking, "Hello.", tools=TOOLS, tool_choice="required") for _ in range(2)]
        return [call for job in jobs for call in await job]

    calls = asyncio.run(twice())

    assert ["call_1", "call_2"] == [call.id for call in calls]
    assert {call.name for call in calls} <= {"get_price", "get_weather"}


def test_the_model_calls_what_it_needs_and_else_talks(model):
    """Left to itself, it takes the tool that a plain request is for, and none for a greeting."""
    thinking = model.open()

    (call,) = asyncio.run(written(thinking, "What is the weather like in Paris?", tools=TOOLS))
    talk = asyncio.run(written(thinking, "Good morning, how are you?", tools=TOOLS))

    assert isinstance(call, ToolCall)
    assert "get_weather" == call.name
    assert talk == asyncio.run(written(model.open(), "Good morning, how are you?"))


def test_tools_change_nothing_else(model):
    """With none to be used, the reply, what is read ahead and the end of a sentence are as without any."""

    async def scenario(**tools) -> list[object]:
        thinking = model.open()
        messages = [SYSTEM, Message("user", "What is the weather like in Paris")]
        await thinking.prefill(messages, **tools)
        mass = await thinking.sentence_end_mass(messages, **tools)
        choice = {"tool_choice": "none"} if tools else {}
        return [mass, *await written(thinking, messages[-1].text, **tools, **choice)]

    assert asyncio.run(scenario()) == asyncio.run(scenario(tools=TOOLS))


def test_what_a_tool_found_is_said(model):
    """A small model's reply is the result itself; no further call is made of itself."""
    call = ToolCall("call_1", "get_price", "{}")
    then = [Message("assistant", "", call), Message("tool", "a latte is 4 euros", call)]

    assert ["A latte is 4 euros."] == asyncio.run(written(model.open(), "How much?", then=then, tools=TOOLS))


def test_a_model_with_words_of_its_own_answers_with_what_a_tool_found(smollm2_file):
    """The result is in its prompt, and in those of later turns."""
    lane = ThreadLane("test-llm-free", threads=2)
    settings = LlamaSettings(tool_words="free")
    model = LlamaModel.load(smollm2_file, lane=lane, threads=1, conversations=1, context_tokens=512, settings=settings)
    call = ToolCall("call_1", "get_price", "{}")
    then = [Message("assistant", "", call), Message("tool", "4 euros", call)]
    try:
        reply = asyncio.run(written(model.open(), "How much?", then=then, tools=TOOLS))
        later = [*then, Message("assistant", "4 euros."), Message("user", "Thanks.")]
        thanks = asyncio.run(written(model.open(), "How much?", then=later, tools=TOOLS))
    finally:
        model.close()
        lane.close()

    assert reply
    assert ["4 euros."] != reply
    assert thanks


def test_tools_without_end_are_the_callers_mistake(model):
    """More than the context holds cannot be described."""
    many = [ToolSpec(name=f"tool_{index}", description="Do a thing.", parameters={}) for index in range(60)]

    with pytest.raises(CallerError, match="60 tools take"):
        asyncio.run(written(model.open(), "Hi.", tools=many))


def test_a_choice_of_no_known_tool_is_the_callers_mistake(model):
    """The message names what was asked for."""
    with pytest.raises(CallerError, match="'get_time'"):
        asyncio.run(written(model.open(), "Hi.", tools=TOOLS, tool_choice="get_time"))


def test_a_choice_can_be_given_up(model):
    """A task that is cancelled while a tool is chosen leaves the conversation and the others usable."""

    async def scenario() -> list[object]:
        thinking = model.open()
        for steps in range(1, 40, 6):
            task = asyncio.ensure_future(written(thinking, f"Hello {steps}.", tools=TOOLS, tool_choice="required"))
            for _ in range(steps):
                await asyncio.sleep(0.002)
            task.cancel()
            await asyncio.wait({task})
        jobs = [written(each, "Hello.", tools=TOOLS, tool_choice="required") for each in (thinking, model.open())]
        return [call.name for calls in await asyncio.gather(*jobs) for call in calls]

    first, second = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert first == second
