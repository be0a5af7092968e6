"""A dialogue's values -> plain JSON values -> the same values again, guided by the types of their fields alone.

Nothing here knows a stimulus or a command by name: a dataclass is an object of its fields, a member of a union of
dataclasses has its class's name under "is", an enum is its value, a tuple a list. Ints stay ints, floats come back bit
for bit (those that JSON lacks are "nan", "inf" and "-inf"). A field with a default may be missing: a log is older than
the field. What does not fit raises `Misfit`, whose words name fields and types and never a value: values are speech.

Threads: pure.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import math
import types
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from antiphon.core import flow
from antiphon.dialogue import commands, history, settings, state, stimuli, turn_end

if TYPE_CHECKING:
    from collections.abc import Callable

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

Encoder: TypeAlias = "Callable[[object], Json]"

NAME_OF_CLASS = "is"
# Modules import most of their fields' types for the type checker only; these are where such names are looked up.
_NAMES: dict[str, Any] = {
    **vars(collections.abc),
    **{
        name: value
        for module in (flow, turn_end, settings, history, state, stimuli, commands)
        for name, value in vars(module).items()
    },
}
_ODD_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Misfit(ValueError):  # noqa: N818 - it reads as what it is
    """A value is not what its place asks for; says which place, never which value."""


def encode(value: object, wanted: object) -> Json:
    """The value as `json.dumps` takes it.

    Raises:
        Misfit: it is not of the type `wanted`.
    """
    return _encoder(wanted)(value)


def decode(raw: Json, wanted: object, place: str = "") -> Any:
    """The value that `encode` made `raw` from; `place` is what an error calls it.

    Raises:
        Misfit: it is not the JSON of a value of the type `wanted`.
    """
    if dataclasses.is_dataclass(wanted):
        return _decode_fields(raw, wanted, place)
    if _is_union(wanted):
        return _decode_member(raw, wanted, place)
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        try:
            return wanted(raw)
        except ValueError:
            raise Misfit(f"{place} is no {wanted.__name__}") from None
    if wanted in (object, Any):
        return raw
    items = _items(wanted)
    if items is not None:
        return _decode_many(raw, wanted, items, place)
    return _decode_scalar(raw, wanted, place)


# Dataclasses and unions of them.


@lru_cache(maxsize=256)
def _hints(kind: type[Any]) -> dict[str, Any]:
    """The type of each field that `__init__` takes."""
    found = get_type_hints(kind, localns=_NAMES)
    return {item.name: found[item.name] for item in dataclasses.fields(kind) if item.init}


@lru_cache(maxsize=1024)
def _encoder(wanted: Any) -> Encoder:
    """What encodes values of a type. Made once: a session's event loop waits for it at every step."""
    if isinstance(wanted, type) and dataclasses.is_dataclass(wanted):
        return _encoder_of_fields(wanted)
    if _is_union(wanted):
        return _encoder_of_members(wanted)
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return lambda value: _encode_enum(value, wanted)
    if wanted in (object, Any):
        return _encode_plain
    items = _items(wanted)
    if items is not None:
        return _encoder_of_many(wanted, items)
    as_it_is = wanted in (int, str, bool)
    return lambda value: cast("Json", value) if as_it_is and type(value) is wanted else _encode_scalar(value, wanted)


def _encoder_of_fields(wanted: Any) -> Encoder:
    own = tuple((name, _encoder(hint)) for name, hint in _hints(wanted).items())

    def encoded(value: object) -> Json:
        if type(value) is not wanted:
            raise Misfit(f"{_kind(value)} instead of {wanted.__name__}")
        return {name: encoder(getattr(value, name)) for name, encoder in own}

    return encoded


def _encode_enum(value: object, wanted: type[Enum]) -> Json:
    if not isinstance(value, wanted):
        raise Misfit(f"{_kind(value)} instead of {wanted.__name__}")
    return _encode_plain(value.value)


def _decode_fields(raw: Json, wanted: Any, place: str) -> object:
    name = wanted.__name__
    if not isinstance(raw, dict):
        raise Misfit(f"{place or name} is {_kind(raw)}, but must be the fields of {name}")
    hints = _hints(wanted)
    for key in raw:
        if key not in hints and key != NAME_OF_CLASS:
            raise Misfit(f"{name} has no field {key!r}" if _is_name(key) else f"{name} has a field that is none")
    optional = {item.name for item in dataclasses.fields(wanted) if _has_default(item)}
    for key in hints:
        if key not in raw and key not in optional:
            raise Misfit(f"{name} lacks its field {key}")
    values = {key: decode(raw[key], hint, f"{name}.{key}") for key, hint in hints.items() if key in raw}
    return wanted(**values)


def _has_default(item: dataclasses.Field[Any]) -> bool:
    return item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING


def _is_union(wanted: object) -> bool:
    return get_origin(wanted) in (Union, types.UnionType)


def _classes(wanted: object) -> dict[str, Any]:
    """The dataclasses of a union, by name."""
    return {
        kind.__name__: kind for kind in get_args(wanted) if isinstance(kind, type) and dataclasses.is_dataclass(kind)
    }


def _encoder_of_members(wanted: Any) -> Encoder:
    members, classes = get_args(wanted), _classes(wanted)
    named = len(classes) > 1
    by_class = {kind: (name, _encoder(kind)) for name, kind in classes.items()}
    others = [_encoder(kind) for kind in members if kind is not types.NoneType and kind not in by_class]

    def encoded(value: object) -> Json:
        if value is None and types.NoneType in members:
            return None
        name, own = by_class.get(type(value), ("", None))
        if own is not None:
            return {NAME_OF_CLASS: name, **cast("dict[str, Json]", own(value))} if named else own(value)
        for other in others:
            try:
                return other(value)
            except Misfit:
                continue
        raise Misfit(f"{_kind(value)} instead of one of {_listed(members)}")

    return encoded


def _decode_member(raw: Json, wanted: object, place: str) -> object:
    members, classes = get_args(wanted), _classes(wanted)
    if raw is None and types.NoneType in members:
        return None
    if len(classes) > 1 and isinstance(raw, dict):
        name = raw.get(NAME_OF_CLASS)
        if isinstance(name, str) and name in classes:
            return _decode_fields(raw, classes[name], place)
        known = isinstance(name, str) and _is_name(name)
        raise Misfit(f"{place} is of an unknown type {name!r}" if known else f"{place} does not say its type")
    others = [member for member in members if member is not types.NoneType]
    if len(others) == 1:
        return decode(raw, others[0], place)
    for member in others:
        try:
            return decode(raw, member, place)
        except Misfit:
            continue
    raise Misfit(f"{place} is {_kind(raw)}, but must be one of {_listed(members)}")


# Collections.


def _items(wanted: object) -> tuple[object, ...] | None:
    """What a collection's type says of its items; None if it is no collection."""
    origin = get_origin(wanted) or wanted
    if isinstance(origin, type) and origin not in (str, bytes) and issubclass(origin, collections.abc.Collection):
        return get_args(wanted)
    return None


def _is_mapping(wanted: object) -> bool:
    origin = get_origin(wanted) or wanted
    return isinstance(origin, type) and issubclass(origin, collections.abc.Mapping)


def _encoder_of_many(wanted: Any, items: tuple[object, ...]) -> Encoder:
    if _is_mapping(wanted):
        return lambda value: _encode_mapping(value, _encoder(items[1] if items else object))

    def encoded(value: object) -> Json:
        if not isinstance(value, tuple | list | frozenset | set):
            raise Misfit(f"{_kind(value)} instead of a list")
        each = _item_types(wanted, items, len(value))
        listed = [_encoder(inner)(item) for item, inner in zip(value, each, strict=True)]
        return sorted(listed, key=repr) if isinstance(value, frozenset | set) else listed

    return encoded


def _encode_mapping(value: object, encoder: Encoder) -> Json:
    if not isinstance(value, collections.abc.Mapping) or not all(isinstance(key, str) for key in value):
        raise Misfit(f"{_kind(value)} instead of named values")
    return {key: encoder(item) for key, item in value.items()}


def _decode_many(raw: Json, wanted: object, items: tuple[object, ...], place: str) -> object:
    if _is_mapping(wanted):
        inner = items[1] if items else object
        if not isinstance(raw, dict):
            raise Misfit(f"{place} is {_kind(raw)}, but must be named values")
        return {key: decode(item, inner, f"a value of {place}") for key, item in raw.items()}
    if not isinstance(raw, list):
        raise Misfit(f"{place} is {_kind(raw)}, but must be a list")
    each = _item_types(wanted, items, len(raw), place)
    values = [decode(item, inner, f"an item of {place}") for item, inner in zip(raw, each, strict=True)]
    made: dict[object, Callable[[list[object]], object]] = {list: list, set: set, frozenset: frozenset}
    return made.get(get_origin(wanted) or wanted, tuple)(values)


def _item_types(wanted: object, items: tuple[object, ...], count: int, place: str = "a tuple") -> list[object]:
    is_tuple = (get_origin(wanted) or wanted) is tuple
    if not items:
        return [object] * count
    if not is_tuple or items[-1] is Ellipsis:
        return [items[0]] * count
    if len(items) != count:
        raise Misfit(f"{place} has {count} items, but must have {len(items)}")
    return list(items)


# Single values.


def _encode_scalar(value: object, wanted: object) -> Json:
    if get_origin(wanted) is Literal:
        if value not in get_args(wanted):
            raise Misfit(f"{_kind(value)} that is none of {_listed(get_args(wanted))}")
        return _encode_plain(value)
    if wanted is types.NoneType and value is None:
        return None
    if type(value) is wanted or (wanted is float and type(value) is int):
        return _encode_plain(value)
    raise Misfit(f"{_kind(value)} instead of {_listed((wanted,))}")


def _decode_scalar(raw: Json, wanted: object, place: str) -> object:
    if get_origin(wanted) is Literal:
        if not any(type(raw) is type(allowed) and raw == allowed for allowed in get_args(wanted)):
            raise Misfit(f"{place} is none of {_listed(get_args(wanted))}")
        return raw
    if wanted is types.NoneType and raw is None:
        return None
    if wanted is float and isinstance(raw, str) and raw in _ODD_FLOATS:
        return _ODD_FLOATS[raw]
    if type(raw) is wanted or (wanted is float and type(raw) is int):
        return raw
    raise Misfit(f"{place} is {_kind(raw)}, but must be {_listed((wanted,))}")


def _encode_plain(value: object) -> Json:
    """A value of which only is known that JSON must be able to hold it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value is None or type(value) in (bool, int, float, str):
        return value  # type: ignore[return-value]
    if isinstance(value, Enum):
        return _encode_plain(value.value)
    if isinstance(value, collections.abc.Mapping):
        return {str(key): _encode_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode_plain(item) for item in value]
    raise Misfit(f"{_kind(value)} instead of plain data")


def _is_name(text: str) -> bool:
    """Whether an error may repeat it: a field's or a type's name can be no sentence."""
    return text.isidentifier() and text.isascii() and len(text) <= 40


def _kind(value: object) -> str:
    names = {dict: "named values", list: "a list", str: "text", bool: "true or false", int: "a whole number"}
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")


def _listed(kinds: tuple[object, ...]) -> str:
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false", types.NoneType: "nothing"}
    return ", ".join(names.get(kind) or getattr(kind, "__name__", str(kind)) for kind in kinds)  # type: ignore[call-overload]
