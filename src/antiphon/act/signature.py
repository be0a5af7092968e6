"""A function in, what a model is told of its parameters and a reader of the model's arguments out. Threads: pure."""

from __future__ import annotations

import inspect
import json
import sys
import typing
from dataclasses import dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, get_origin

from antiphon.act.docstring import read_docstring
from antiphon.act.kind import (
    UNDERSTOOD,
    Member,
    NotUnderstood,
    Schema,
    Unfit,
    description_in,
    kind_of,
    object_schema,
    read_object,
)
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from antiphon.act.kind import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A function's parameters as a model sees them."""

    summary: str  # what the docstring says first
    members: Mapping[str, Member]

    @property
    def schema(self) -> Schema:
        return object_schema(self.members)

    def read(self, members: Mapping[str, object]) -> dict[str, Any]:
        """The function's arguments by name; raises Unfit."""
        return read_object(self.members, members, "")


def signature_of(function: Callable[..., object], name: str) -> Signature:
    """Look at a function that is being made a tool called `name`.

    Raises:
        CallerError: a parameter that no JSON object can fill; the message names it.
    """
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise CallerError(f"tool {name} is no function: {function!r}", hint="wrap it in a function with annotations")
    names = _names_around(function)
    try:
        hints = typing.get_type_hints(function, localns=dict(names), include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise CallerError(
            f"an annotation of tool {name} cannot be resolved: {error}",
            hint="import its type at run time rather than under TYPE_CHECKING",
        ) from error
    said = read_docstring(function.__doc__)
    members = {}
    for parameter in inspect.signature(function).parameters.values():
        _refuse_unnamed(parameter, name)
        if parameter.name not in hints:
            raise CallerError(
                f"parameter {parameter.name} of tool {name} has no annotation",
                hint="give it a type; of a method, make a tool of the bound one: tool(thing.method)",
            )
        hint = hints[parameter.name]
        members[parameter.name] = _member(parameter, hint, said.parameters.get(parameter.name, ""), name, names)
    return Signature(summary=said.summary, members=members)


def read_members(arguments: str) -> dict[str, object]:
    """A JSON object's members; nothing at all counts as an object without any. Raises Unfit."""
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Unfit("the arguments are not valid JSON") from None
    if not isinstance(value, dict):
        raise Unfit("the arguments must be one JSON object")
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(name)  # NaN and Infinity are Python's, not JSON's


def _member(parameter: Parameter, hint: object, described: str, name: str, names: Names) -> Member:
    try:
        kind = kind_of(hint, names)
    except NotUnderstood as reason:
        raise CallerError(
            f"parameter {parameter.name} of tool {name} is {reason}, which no model can fill in",
            hint=f"use {UNDERSTOOD}",
        ) from None
    own = description_in(hint) if get_origin(hint) is Annotated else ""
    is_required = parameter.default is Parameter.empty
    # of None there is nothing to tell: the parameter may be left out
    default = Parameter.empty if parameter.default is None else parameter.default
    return Member(kind=kind, description=own or described, is_required=is_required, default=default)


def _refuse_unnamed(parameter: Parameter, name: str) -> None:
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is Parameter.VAR_POSITIONAL else "**"
        raise CallerError(
            f"tool {name} takes {stars}{parameter.name}, which has no names to tell a model",
            hint="name every parameter, or take a list",
        )
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        raise CallerError(
            f"parameter {parameter.name} of tool {name} is positional only, but arguments come by name",
            hint="remove the / after it",
        )


def _names_around(function: Callable[..., object]) -> Names:
    """What is visible where `function` is being made a tool.

    With `from __future__ import annotations` an annotation is text, and a class that is local to a function is in no
    namespace that the function itself knows.
    """
    scopes = []
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads source files
    around = getattr(function, "__globals__", None)
    while frame is not None:
        if frame.f_globals is around and frame.f_locals is not around:
            scopes.append(frame.f_locals)
        frame = frame.f_back
    return {name: value for scope in reversed(scopes) for name, value in scope.items()}
