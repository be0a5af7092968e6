"""A type annotation in, a JSON schema and a reader of JSON values out.

Understood: str, int, float, bool, Literal, Enum; list, tuple, set, frozenset and dict[str, ...] of what is
understood; `X | None`; dataclasses and TypedDicts.

A small model often writes a right value in a wrong form. The forms that leave no doubt are taken: a number for text
(5 -> "5"), digits in quotes for a number ("5" -> 5, "2.5" -> 2.5), a whole float for an int (5.0 -> 5), "true" and
"false" in quotes, and another case for a Literal or an Enum ("Large" -> "large"). Nothing else is bent.

Threads: pure.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from inspect import Parameter
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

Schema: TypeAlias = dict[str, object]
Names: TypeAlias = Mapping[str, object]  # what the names in an annotation that is still a string stand for

UNDERSTOOD = (
    "str, int, float, bool, Literal, Enum, list[...], tuple[...], set[...], dict[str, ...], ... | None, "
    "a dataclass or a TypedDict"
)
_SHOWN_CHARS = 60  # of a wrong value


class Unfit(Exception):  # noqa: N818 - told to a model, never an error of ours
    """A value does not fit; the text tells a model what to mend."""


class NotUnderstood(Exception):  # noqa: N818 - its catcher knows the function and makes a CallerError of it
    """An annotation that no JSON value can be read for; the text names it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a parameter takes."""

    schema: Schema
    read: Callable[[object, str], Any]  # (a JSON value, what to call it in a text) -> the value; raises Unfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of an object: a parameter, or a field of a record."""

    kind: Kind
    description: str = ""
    is_required: bool = True
    default: object = Parameter.empty  # shown to the model; never filled in by us


def kind_of(annotation: object, names: Names) -> Kind:
    """The kind of values that `annotation` stands for; raises NotUnderstood."""
    return _kind(annotation, names, ())


def _kind(annotation: object, names: Names, within: tuple[object, ...]) -> Kind:
    """`within` are the records that are being looked at, outermost first."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in within:
        raise NotUnderstood(f"{annotation!r}, which holds itself")
    if origin is Annotated:
        return _described(_kind(inner[0], names, within), description_in(annotation))
    if origin is Literal:
        return _choice({_written(value): value for value in inner}, list(inner))
    if origin in (Union, types.UnionType):
        return _optional(annotation, names, within)
    if origin in (list, set, frozenset, tuple):
        return _many(annotation, names, within)
    if origin is dict and inner[0] is str:
        return _mapping(_kind(inner[1], names, within))
    return _of_class(annotation, names, within)


def _of_class(annotation: object, names: Names, within: tuple[object, ...]) -> Kind:
    if isinstance(annotation, typing.NewType):
        return _kind(annotation.__supertype__, names, within)
    if not isinstance(annotation, type):
        raise NotUnderstood(repr(annotation))
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if issubclass(annotation, Enum):
        members = list(annotation)
        plain = all(isinstance(member.value, str | int) for member in members)
        shown: list[object] = [member.value if plain else member.name for member in members]
        return _choice({_written(name): member for name, member in zip(shown, members, strict=True)}, shown)
    if is_dataclass(annotation) or typing.is_typeddict(annotation):
        return _record(annotation, names, (*within, annotation))
    raise NotUnderstood(getattr(annotation, "__name__", repr(annotation)))


def description_in(annotation: object) -> str:
    """The first text in an `Annotated`."""
    return next((extra for extra in get_args(annotation)[1:] if isinstance(extra, str)), "")


def object_schema(members: Mapping[str, Member]) -> Schema:
    """The schema of an object with exactly these members."""
    properties: Schema = {}
    for name, member in members.items():
        own = dict(_described(member.kind, member.description).schema)
        if member.default is not Parameter.empty and _is_json(member.default):
            own["default"] = member.default
        properties[name] = own
    required = [name for name, member in members.items() if member.is_required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def read_object(members: Mapping[str, Member], value: object, where: str) -> dict[str, Any]:
    """`value`'s members, read; raises Unfit with all that is wrong in one text."""
    if not isinstance(value, dict):
        raise Unfit(f"{where} must be a JSON object, not {shown(value)}")
    prefix = f"{where}." if where else ""
    wrong, out = [], {}
    for name, member in members.items():
        if name not in value:
            if member.is_required:
                wrong.append(f"{prefix}{name} is missing")
            continue
        try:
            out[name] = member.kind.read(value[name], prefix + name)
        except Unfit as reason:
            # None for a member that may be left out: many models write out all members
            if value[name] is not None or member.is_required:
                wrong.append(str(reason))
    strangers = [shown(name) for name in value if name not in members]
    if strangers:
        known = ", ".join(members) or "none"
        wrong.append(f"{', '.join(strangers)} is unknown{f' in {where}' if where else ''}; the known ones are {known}")
    if wrong:
        raise Unfit("; ".join(wrong))
    return out


def shown(value: object) -> str:
    """A wrong value as a text shows it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."


def _described(kind: Kind, description: str) -> Kind:
    return Kind({**kind.schema, "description": description}, kind.read) if description else kind


def _text(value: object, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and _number(value) is not None:
        return str(value)
    raise Unfit(f"{where} must be text, not {shown(value)}")


def _number(value: object) -> float | None:
    """A finite number, also one in quotes; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if not isinstance(value, str) or "_" not in value else math.nan
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    if isinstance(value, str):
        return int(value) if value.strip().lstrip("+-").isdecimal() else number
    return value


def _whole(value: object, where: str) -> int:
    number = _number(value)
    if number is None or number != int(number):
        raise Unfit(f"{where} must be a whole number, not {shown(value)}")
    return int(number)


def _real(value: object, where: str) -> float:
    number = _number(value)
    if number is None:
        raise Unfit(f"{where} must be a number, not {shown(value)}")
    return float(number)


def _truth(value: object, where: str) -> bool:
    said = value.strip().lower() if isinstance(value, str) else value
    if said is True or said == "true":
        return True
    if said is False or said == "false":
        return False
    raise Unfit(f"{where} must be true or false, not {shown(value)}")


def _nothing(value: object, where: str) -> None:
    if value is not None:
        raise Unfit(f"{where} must be null, not {shown(value)}")


_SCALARS: Mapping[type, Kind] = {
    str: Kind({"type": "string"}, _text),
    int: Kind({"type": "integer"}, _whole),
    float: Kind({"type": "number"}, _real),
    bool: Kind({"type": "boolean"}, _truth),
    type(None): Kind({"type": "null"}, _nothing),
}


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)


def _choice(values: Mapping[str, object], written: list[object]) -> Kind:
    if not all(isinstance(value, str | int | None) for value in written):
        raise NotUnderstood(f"a choice of {written!r}")
    folded: dict[str, list[object]] = {}
    for name, value in values.items():
        folded.setdefault(name.casefold(), []).append(value)

    def read(value: object, where: str) -> object:
        name = _written(value)
        if name in values:
            return values[name]
        alike = folded.get(name.strip().casefold(), [])
        if len(alike) == 1:
            return alike[0]
        raise Unfit(f"{where} must be one of {', '.join(map(_written, written))}, not {shown(value)}")

    return Kind({"enum": written}, read)


def _optional(annotation: object, names: Names, within: tuple[object, ...]) -> Kind:
    others = [inner for inner in get_args(annotation) if inner is not type(None)]
    if len(others) != 1:
        raise NotUnderstood(f"{annotation}, of which a model cannot tell which one is meant")
    kind = _kind(others[0], names, within)
    schema: Schema = {"anyOf": [kind.schema, {"type": "null"}]}
    return Kind(schema, lambda value, where: None if value is None else kind.read(value, where))


def _many(annotation: object, names: Names, within: tuple[object, ...]) -> Kind:
    origin, inner = get_origin(annotation), get_args(annotation)
    make: Callable[[list[Any]], Any] = origin  # type: ignore[assignment]
    if origin is tuple and not (len(inner) == 2 and inner[1] is ...):
        return _fixed([_kind(each, names, within) for each in inner])
    item = _kind(inner[0], names, within)
    schema: Schema = {"type": "array", "items": item.schema}
    if origin in (set, frozenset):
        schema["uniqueItems"] = True

    def read(value: object, where: str) -> object:
        if not isinstance(value, list):
            raise Unfit(f"{where} must be a list, not {shown(value)}")
        items = [item.read(each, f"{where}[{index}]") for index, each in enumerate(value)]
        try:
            return make(items)
        except TypeError:  # a set of what cannot be hashed
            raise Unfit(f"{where} cannot be made a {origin.__name__ if origin else 'set'}") from None

    return Kind(schema, read)


def _fixed(kinds: list[Kind]) -> Kind:
    count = len(kinds)
    schema: Schema = {
        "type": "array",
        "prefixItems": [kind.schema for kind in kinds],
        "minItems": count,
        "maxItems": count,
    }

    def read(value: object, where: str) -> object:
        if not isinstance(value, list) or len(value) != count:
            raise Unfit(f"{where} must be a list of {count}, not {shown(value)}")
        pairs = zip(kinds, value, strict=True)
        return tuple(kind.read(each, f"{where}[{index}]") for index, (kind, each) in enumerate(pairs))

    return Kind(schema, read)


def _mapping(item: Kind) -> Kind:
    def read(value: object, where: str) -> object:
        if not isinstance(value, dict):
            raise Unfit(f"{where} must be a JSON object, not {shown(value)}")
        return {name: item.read(each, f"{where}.{name}") for name, each in value.items()}

    return Kind({"type": "object", "additionalProperties": item.schema}, read)


def _record(annotation: type, names: Names, within: tuple[object, ...]) -> Kind:
    try:
        hints = typing.get_type_hints(annotation, localns=dict(names), include_extras=True)
    except NameError as error:
        raise NotUnderstood(f"{annotation.__name__}, whose {error}") from None
    optional: set[str]
    if is_dataclass(annotation):
        given = [item for item in fields(annotation) if item.init]
        hints = {item.name: hints[item.name] for item in given}
        optional = {item.name for item in given if (item.default, item.default_factory) != (MISSING, MISSING)}
    else:
        optional = {name for name, hint in hints.items() if _may_lack(annotation, name, hint)}
        hints = {name: _unwrapped(hint) for name, hint in hints.items()}
    members = {
        name: Member(kind=_kind(hint, names, within), is_required=name not in optional) for name, hint in hints.items()
    }

    def read(value: object, where: str) -> object:
        given = read_object(members, value, where)
        try:
            return annotation(**given)
        except (ValueError, TypeError) as error:  # its own __post_init__ refused
            raise Unfit(f"{where} does not fit: {error}") from None

    return Kind(object_schema(members), read)


def _may_lack(annotation: Any, name: str, hint: object) -> bool:
    """Whether a TypedDict's key is optional; of annotations that are text, only `total` is known to Python."""
    marks = (typing.Required, typing.NotRequired)
    return get_origin(hint) is typing.NotRequired if get_origin(hint) in marks else name in annotation.__optional_keys__


def _unwrapped(hint: object) -> object:
    """What stands within Required[...] or NotRequired[...]."""
    return get_args(hint)[0] if get_origin(hint) in (typing.Required, typing.NotRequired) else hint


def _is_json(value: object) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
