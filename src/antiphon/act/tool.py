"""A Python function in, a tool that a language model can use out.

Threads: everything on the event loop; a plain function runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from antiphon.act.kind import Unfit, shown
from antiphon.act.outcome import Outcome, failure, failure_of, outcome_of
from antiphon.act.signature import Signature, read_members, signature_of
from antiphon.act.thread import MOST_THREADS, NoThreadError, run_in_thread
from antiphon.core.errors import CallerError, check_range
from antiphon.core.flow import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["PREAMBLE", "Outcome", "Tool", "tool"]

PREAMBLE = "One moment."
DEFAULT_TIMEOUT_S = 10.0
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAKEN = frozenset({"auto", "none", "required"})  # what else a model may be told about using tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something that the agent can do besides talk; `tool` makes one of a function.

    Raises:
        CallerError: a value is out of its range.
    """

    spec: ToolSpec
    function: Callable[..., object]  # plain or async; takes the parameters by name
    side_effects: bool = True  # without any it may run before the turn is confirmed, and for nothing
    timeout_s: float = DEFAULT_TIMEOUT_S
    preamble: str = PREAMBLE  # said while it runs, if that takes a while and the model has said nothing; may be empty
    signature: Signature | None = None  # reads the arguments; without one they are passed on as JSON holds them

    def __post_init__(self) -> None:
        check_range("timeout_s", self.timeout_s, 0.01, 3600)
        if not _NAME.fullmatch(self.spec.name) or self.spec.name in _TAKEN:
            raise CallerError(
                f"a tool cannot be called {self.spec.name!r}",
                hint="use 1 to 64 letters, digits, _ and -, but not auto, none or required; @tool(name=...) sets it",
            )

    def __call__(self, *arguments: object, **named: object) -> Any:
        """What the function itself gives, as if it had never been made a tool."""
        return self.function(*arguments, **named)

    async def run(self, arguments: str) -> Outcome:
        """Call the function with a JSON object's members.

        Whatever goes wrong is told to the model: arguments that do not fit, an exception's type and message, no
        result in time. A plain function that takes too long cannot be stopped; its result is dropped. A result is
        told as JSON, text as it is, and cut where it is too long to read.
        """
        try:
            given = self._read(arguments)
        except Unfit as reason:
            return failure(f"the call was not made: {reason}")
        try:
            async with asyncio.timeout(self.timeout_s) as limit:
                return outcome_of(await self._call(given))
        except NoThreadError:
            return failure(f"the call was not made: {MOST_THREADS} calls are at work")
        except TimeoutError as error:
            return _too_late(self.timeout_s) if limit.expired() else failure_of(error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return failure_of(error)  # something within the function was cancelled, not we
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the model is told, and the conversation goes on
            return failure_of(error)

    def _read(self, arguments: str) -> dict[str, Any]:
        members = read_members(arguments)
        if self.signature is not None:
            return self.signature.read(members)
        required, known = self.spec.parameters.get("required"), self.spec.parameters.get("properties")
        missing = [name for name in required if name not in members] if isinstance(required, list | tuple) else []
        if missing:
            raise Unfit(f"{', '.join(missing)} is missing")
        strangers = [name for name in members if isinstance(known, dict) and name not in known]
        if strangers:
            raise Unfit(f"{', '.join(map(shown, strangers))} is unknown")
        return members

    async def _call(self, given: Mapping[str, object]) -> object:
        call = partial(self.function, **given)
        if inspect.iscoroutinefunction(self.function):
            result = call()
        else:
            result = await run_in_thread(call, self.spec.name)
        return await result if inspect.isawaitable(result) else result


@overload
def tool(function: Callable[..., object], /) -> Tool: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    side_effects: bool = True,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    preamble: str = PREAMBLE,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    side_effects: bool = True,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    preamble: str = PREAMBLE,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a typed function a tool: `@tool`, or `@tool(side_effects=False, timeout_s=5, preamble="Let me look.")`.

    The model is told the function's name, the first paragraph of its docstring, and of each parameter its type,
    whether it has a default, and what `Annotated[..., "text"]` or the docstring says. What a small model sees of a
    tool is mostly its description: write it as what a caller wants done, such as "Look up what a drink costs."

    Raises:
        CallerError: a parameter has no annotation, or one that no JSON value fits; or a value is out of its range.
    """

    def made(function: Callable[..., object]) -> Tool:
        own = name or getattr(function, "__name__", "")
        signature = signature_of(function, own)
        told = " ".join(description.split()) or signature.summary or own.replace("_", " ")
        return Tool(
            spec=ToolSpec(name=own, description=told, parameters=signature.schema),
            function=function,
            side_effects=side_effects,
            timeout_s=timeout_s,
            preamble=preamble,
            signature=signature,
        )

    return made if function is None else made(function)


def _too_late(timeout_s: float) -> Outcome:
    return failure(f"no result within {timeout_s:g} s")
