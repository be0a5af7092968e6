"""What becomes of a function that is made a tool, and of a call."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from antiphon.act import thread
from antiphon.act.outcome import LONGEST_CHARS
from antiphon.act.tool import PREAMBLE, Outcome, Tool, tool
from antiphon.core.errors import CallerError
from antiphon.core.flow import ToolSpec

pytestmark = pytest.mark.unit

WHOSE = contextvars.ContextVar("WHOSE", default="nobody")


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True)
class Extra:
    name: str
    shots: int = 1

    def __post_init__(self) -> None:
        if self.shots > 9:
            raise ValueError("too many shots")


class Person(TypedDict):
    name: str
    phone: NotRequired[str]


@tool
def lookup(drink: Annotated[str, "as the customer said it"], size: Literal["small", "large"] = "small") -> str:
    """Look up what a drink costs.

    More that only people read.
    """
    return f"a {size} {drink} is 4 euros"


@tool(name="nothing", description="Do\n  nothing.", side_effects=False, timeout_s=5, preamble="Let me look.")
def does_nothing() -> None:
    """Not told."""


def run(made: Tool, arguments: object) -> Outcome:
    return asyncio.run(made.run(arguments if isinstance(arguments, str) else json.dumps(arguments)))


def schema_of(annotation: object) -> object:
    def function(x): ...

    function.__annotations__ = {"x": annotation}
    return tool(function).spec.parameters["properties"]["x"]


def read(annotation: object, value: object) -> object:
    """What a function is given for a parameter of that type, or the text that the model is told."""
    got = []

    async def function(x):
        got.append(x)

    function.__annotations__ = {"x": annotation}
    outcome = run(tool(function), {"x": value})
    return outcome.text if outcome.failed else got[0]


def test_a_tool_tells_the_model_what_its_function_says():
    """Name, first paragraph, types, defaults and descriptions come from the function."""
    wanted = ToolSpec(
        name="lookup",
        description="Look up what a drink costs.",
        parameters={
            "type": "object",
            "properties": {
                "drink": {"type": "string", "description": "as the customer said it"},
                "size": {"enum": ["small", "large"], "default": "small"},
            },
            "required": ["drink"],
            "additionalProperties": False,
        },
    )

    assert wanted == lookup.spec
    assert (True, 10.0, PREAMBLE) == (lookup.side_effects, lookup.timeout_s, lookup.preamble)


def test_everything_can_be_set():
    """What the decorator is given wins over what the function says."""
    assert ("nothing", "Do nothing.") == (does_nothing.spec.name, does_nothing.spec.description)
    assert (False, 5, "Let me look.") == (does_nothing.side_effects, does_nothing.timeout_s, does_nothing.preamble)


def test_a_tool_is_still_its_function():
    """It can be called from Python as before."""
    assert "a large latte is 4 euros" == lookup("latte", size="large")


@pytest.mark.parametrize(
    "docstring",
    [
        "Do it.\n\n  Args:\n    x: how much,\n      in all\n    y (int): why\n\n  Returns:\n    z: no\n  ",
        "Do it.\n    Args:\n      x: how much,\n        in all\n      y: why",
        "Do it.\n\n  :param x: how much,\n    in all\n  :type x: int\n  :param int y: why\n  :returns: no\n  ",
    ],
)
def test_both_ways_of_describing_parameters_are_read(docstring):
    """Google sections and Sphinx fields, also over several lines."""

    def function(x: int, *, y: int) -> None: ...

    function.__doc__ = docstring
    made = tool(function)

    assert "Do it." == made.spec.description
    assert {
        "x": {"type": "integer", "description": "how much, in all"},
        "y": {"type": "integer", "description": "why"},
    } == made.spec.parameters["properties"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Size, {"enum": ["small", "large"]}),
        (Literal[1, 2], {"enum": [1, 2]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (
            Extra,
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "shots": {"type": "integer"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        ),
        (
            Person,
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "phone": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_types_become_schemas(annotation, schema):
    """Every type that is promised."""
    assert schema == schema_of(annotation)


@pytest.mark.parametrize(
    ("annotation", "value", "given"),
    [
        (str, "tea", "tea"),
        (str, 5, "5"),
        (int, 5, 5),
        (int, "5", 5),
        (int, 5.0, 5),
        (float, 5, 5.0),
        (float, " 2.5 ", 2.5),
        (bool, True, True),
        (bool, "False", False),
        (Size, "LARGE ", Size.LARGE),
        (Literal["a", 1], "A", "a"),
        (Literal["a", 1], 1, 1),
        (list[int], ["1", 2], [1, 2]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[str], ["a", "a"], {"a"}),
        (frozenset[int], [1], frozenset({1})),
        (dict[str, int], {"a": "1"}, {"a": 1}),
        (str | None, None, None),
        (list[Extra], [{"name": "oat"}, {"name": "soy", "shots": 2}], [Extra("oat"), Extra("soy", 2)]),
        (Person, {"name": "Ann"}, {"name": "Ann"}),
    ],
)
def test_values_are_read(annotation, value, given):
    """As they are, or in a form that leaves no doubt."""
    assert given == read(annotation, value)
    assert type(given) is type(read(annotation, value))


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (str, True, "x must be text, not true"),
        (int, 5.5, "x must be a whole number, not 5.5"),
        (int, "five", 'x must be a whole number, not "five"'),
        (int, True, "x must be a whole number, not true"),
        (int, "1_0", 'x must be a whole number, not "1_0"'),
        (float, "nan", 'x must be a number, not "nan"'),
        (bool, 1, "x must be true or false, not 1"),
        (Size, "huge", 'x must be one of small, large, not "huge"'),
        (Literal["1", 1], "2", 'x must be one of 1, 1, not "2"'),
        (list[int], [1, "b"], 'x[1] must be a whole number, not "b"'),
        (list[int], "1", 'x must be a list, not "1"'),
        (tuple[int, int], [1], "x must be a list of 2, not [1]"),
        (dict[str, int], {"a": None}, "x.a must be a whole number, not null"),
        (Extra, {"shots": 1, "milk": 1}, 'x.name is missing; "milk" is unknown in x; the known ones are name, shots'),
        (Extra, {"name": "a", "shots": 10}, "x does not fit: too many shots"),
        (Person, [], "x must be a JSON object, not []"),
    ],
)
def test_values_that_do_not_fit_are_told_to_the_model(annotation, value, told):
    """The text says which member, what it must be and what it was."""
    assert f"error: the call was not made: {told}" == read(annotation, value)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{", "the arguments are not valid JSON"),
        ("[" * 100_000, "the arguments are not valid JSON"),
        ('{"drink": NaN}', "the arguments are not valid JSON"),
        ('["latte"]', "the arguments must be one JSON object"),
        ("", "drink is missing"),
        ('{"size": "huge"}', 'drink is missing; size must be one of small, large, not "huge"'),
        ('{"drink": "a", "milk": 1}', '"milk" is unknown; the known ones are drink, size'),
        ('{"drink": 1e999}', "drink must be text, not Infinity"),
    ],
)
def test_arguments_that_do_not_fit_are_told_to_the_model(arguments, told):
    """The function is not called, and all that is wrong is said at once."""
    outcome = run(lookup, arguments)

    assert outcome.failed
    assert outcome.text.startswith(f"error: the call was not made: {told}")


def test_a_member_that_may_be_left_out_may_be_null():
    """Many models write out every member."""
    assert Outcome("a small tea is 4 euros") == run(lookup, {"drink": "tea", "size": None})


def test_an_empty_text_calls_a_function_without_parameters():
    """Models differ in what they write for no arguments."""
    assert [Outcome("done")] * 2 == [run(does_nothing, ""), run(does_nothing, {})]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is\ud800", "as it is?"),
        (None, "done"),
        ({"price": 4.5, "of": ("é",)}, '{"price": 4.5, "of": ["é"]}'),
        (Extra("oat"), '{"name": "oat", "shots": 1}'),
        ([Size.LARGE, {"b", "a"}], '["large", ["a", "b"]]'),
        ({1: threading.Event}, '{"1": "<class \'threading.Event\'>"}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
)
def test_results_become_text(result, text):
    """What JSON knows as JSON, all else as str."""

    @tool
    async def give() -> object:
        return result

    assert Outcome(text) == run(give, "")


def test_a_long_result_is_cut_and_says_so():
    """A model's context is small."""

    @tool
    async def give() -> str:
        return "x" * 10_000

    text = run(give, "").text

    assert f"{'x' * LONGEST_CHARS}\n(cut here: 10000 characters, of which 8000 are shown)" == text


@pytest.mark.parametrize("error", [ValueError("no such drink"), SystemExit("no such drink")])
def test_an_exception_is_told_to_the_model(error):
    """Its type and message, from a plain function as well."""

    @tool
    def fail() -> None:
        raise error

    assert Outcome(f"error: {type(error).__name__}: no such drink", failed=True) == run(fail, "")


def test_no_result_in_time_is_told_to_the_model():
    """Also by a function that cannot be stopped, which keeps nobody waiting."""
    go_on = threading.Event()

    @tool(timeout_s=0.01)
    def hang() -> None:
        go_on.wait(10)

    @tool(timeout_s=0.01)
    async def sleep() -> None:
        await asyncio.sleep(10)

    began = time.monotonic()
    outcomes = [run(hang, ""), run(sleep, "")]
    go_on.set()

    assert [Outcome("error: no result within 0.01 s", failed=True)] * 2 == outcomes
    assert time.monotonic() - began < 5


def test_a_timeout_of_its_own_is_an_exception_like_others():
    """Only ours is reported as ours."""

    @tool
    async def ask() -> None:
        raise TimeoutError("the till did not answer")

    assert Outcome("error: TimeoutError: the till did not answer", failed=True) == run(ask, "")


def test_a_cancelled_call_is_cancelled():
    """Whoever runs a tool can give up; a cancellation inside the function is a failure like others."""

    @tool
    async def sleep() -> None:
        await asyncio.sleep(10)

    @tool
    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def scenario() -> None:
        task = asyncio.ensure_future(sleep.run(""))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    assert Outcome("error: CancelledError", failed=True) == run(cancelled, "")


def test_a_plain_function_runs_elsewhere_and_sees_the_callers_context():
    """It cannot hold the conversation up, and context variables are kept."""

    @tool
    def where() -> list[object]:
        return [threading.current_thread() is threading.main_thread(), WHOSE.get()]

    async def scenario() -> Outcome:
        WHOSE.set("caller")
        return await where.run("")

    assert Outcome('[false, "caller"]') == asyncio.run(scenario())


def test_threads_are_bounded(monkeypatch):
    """When all are taken a call is refused, not queued."""
    monkeypatch.setattr(thread, "_free", threading.BoundedSemaphore(1))
    go_on = threading.Event()

    @tool
    def wait() -> None:
        go_on.wait(10)

    async def scenario() -> tuple[Outcome, Outcome]:
        first = asyncio.ensure_future(wait.run(""))
        await asyncio.sleep(0)
        second = await wait.run("")
        go_on.set()
        return await first, second

    first, second = asyncio.run(scenario())

    assert Outcome("done") == first
    assert Outcome("error: the call was not made: 32 calls are at work", failed=True) == second


def test_local_classes_are_found():
    """Annotations are text in this module, and the class is in no namespace that the function knows."""

    class Milk(Enum):
        OAT = "oat"

    @dataclass
    class Drink:
        milk: Milk

    def order():
        @tool
        def inner(drink: Drink, milks: list[Milk]) -> str:
            """Order."""
            return f"{drink.milk.name} {milks[0].name}"

        return inner

    assert Outcome("OAT OAT") == run(order(), {"drink": {"milk": "oat"}, "milks": ["oat"]})


def test_a_bound_method_can_be_a_tool():
    """`self` is no parameter of it."""

    class Till:
        def price(self, item: str) -> str:
            """Look up a price."""
            return f"{item}: 3"

    assert Outcome("tea: 3") == run(tool(Till().price), {"item": "tea"})


class Node:
    """Refers to itself below."""


@dataclass
class Chain:
    next: Chain | None = None


def _positional(x: int, /) -> None: ...
def _many(*x: int) -> None: ...
def _named(**x: int) -> None: ...
def _bare(x) -> None: ...
def _strange(x: bytes) -> None: ...
def _wide(x: int | str) -> None: ...
def _loose(x: list) -> None: ...
def _anything(x: Any) -> None: ...
def _itself(x: Chain) -> None: ...
def _plain_class(x: Node) -> None: ...
def _unknown(x: Missing) -> None: ...  # noqa: F821


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_positional, "parameter x of tool _positional is positional only"),
        (_many, r"tool _many takes \*x"),
        (_named, r"tool _named takes \*\*x"),
        (_bare, "parameter x of tool _bare has no annotation"),
        (_strange, "parameter x of tool _strange is bytes"),
        (_wide, "cannot tell which one"),
        (_loose, "parameter x of tool _loose is list"),
        (_anything, "parameter x of tool _anything is .*Any"),
        (_itself, "holds itself"),
        (_plain_class, "parameter x of tool _plain_class is Node"),
        (_unknown, "annotation of tool _unknown cannot be resolved"),
        (int, "no function"),
    ],
)
def test_what_no_model_can_fill_in_is_refused_at_once(function, told):
    """The error names the function and the parameter, and says what to do."""
    with pytest.raises(CallerError, match=told) as caught:
        tool(function)

    assert caught.value.hint


@pytest.mark.parametrize(
    "settings",
    [{"name": "my tool"}, {"name": "x" * 65}, {"name": "none"}, {"timeout_s": 0}, {"timeout_s": float("nan")}],
)
def test_settings_out_of_range_are_refused(settings):
    """Names are what every model's server takes, and a call has an end."""
    with pytest.raises(CallerError):
        tool(**settings)(lambda: None)


def test_a_tool_can_be_made_by_hand():
    """Without a signature the arguments are held to the schema's names and passed on."""
    parameters = {"type": "object", "properties": {"x": {}}, "required": ["x"]}

    async def show(**members: object) -> object:
        return members

    made = Tool(spec=ToolSpec(name="show", description="", parameters=parameters), function=show)

    assert Outcome('{"x": [1]}') == run(made, {"x": [1]})
    assert Outcome("error: the call was not made: x is missing", failed=True) == run(made, "")
    assert Outcome('error: the call was not made: "y" is unknown', failed=True) == run(made, {"x": 1, "y": 2})
