"""A tool's JSON schema in, a grammar for its arguments out, in llama.cpp's notation.

What the grammar lets through is one compact JSON object on one line that fits the schema. With `words`, the
caller's, it also holds a model to what was said, as far as that is possible: a text is a run of these words, a number
is one of those spoken if any were, and a choice is one of those named if any were. A small model otherwise makes
arguments up.

Schemas: type, properties, required, enum, const, anyOf, items, prefixItems, minItems, maxItems and
additionalProperties as `act` writes them; of anything else any JSON value is let through. Threads: pure.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

from antiphon.think.numbers_heard import numbers_heard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A run of words begins and ends with none of these; "the kitchen" is "kitchen".
# fmt: off
_LOOSE_WORDS = frozenset({
    "a", "an", "and", "are", "at", "for", "from", "in", "is", "me", "of", "on", "or", "please", "that", "the", "to",
    "was", "with",
})
# fmt: on
_MOST_WORDS = 60  # of the caller's, the last ones; each is a rule
_MOST_TEXT_CHARS = 200
_MOST_ITEMS = 8
_DEEPEST = 6  # schemas within schemas; deeper any JSON value is let through

_RULES = rf"""
text ::= "\"" char{{1,{_MOST_TEXT_CHARS}}} "\""
char ::= [^"\\\x00-\x1f] | "\\" ["\\/bfnrt]
whole ::= "-"? ("0" | [1-9] [0-9]{{0,8}})
real ::= whole ("." [0-9]{{1,4}})?
truth ::= "true" | "false"
any ::= text | real | truth | "null" | "[" (any (", " any){{0,7}})? "]" | "{{" (pair (", " pair){{0,7}})? "}}"
pair ::= text ": " any
"""


def argument_grammar(schema: Mapping[str, object], words: str = "") -> str:
    """The grammar of an object that fits `schema`; without `words` its values are free."""
    said = _Said(words)
    return f'root ::= " " {_value(schema, said, 0)}\n{_RULES}{said.rules}'


class _Said:
    """What the caller said, as rules."""

    def __init__(self, words: str) -> None:
        # a control character would end a rule's text, a quotation mark the value
        kept = [word for word in (each.strip('.,;:!?"\\()[]') for each in words.split()) if word]
        self.words = [re.sub(r'[\x00-\x1f"\\]', "", word) or "x" for word in kept[-_MOST_WORDS:]]
        self.numbers = numbers_heard(words)
        self.text = f" {' '.join(self.words).lower()} "

    @property
    def rules(self) -> str:
        """`said` is a run of the words in quotes."""
        if not self.words:
            return ""
        firm = [index for index, word in enumerate(self.words) if word.lower() not in _LOOSE_WORDS]
        firm = firm or list(range(len(self.words)))
        lines = [rf'said ::= "\"" ({" | ".join(f"w{index}" for index in firm)}) "\""']
        for index, word in enumerate(self.words[: firm[-1] + 1]):
            onward = f'" " w{index + 1}'
            ends = f" ({onward})?" if index in firm else f" {onward}"
            lines.append(f"w{index} ::= {_literal(word)}{ends if index < firm[-1] else ''}")
        return "\n".join(lines) + "\n"

    def named(self, options: Sequence[object]) -> Sequence[object]:
        """The options that were named, or all of them."""
        return [option for option in options if f" {option} ".lower() in self.text] or options


def _value(schema: Mapping[str, object], said: _Said, depth: int) -> str:
    if depth > _DEEPEST:
        return "any"
    if "const" in schema:
        return _json_literal(schema["const"])
    options = schema.get("enum")
    if isinstance(options, list | tuple):
        return _one_of([_json_literal(option) for option in said.named(options)])
    inner = schema.get("anyOf")
    if isinstance(inner, list | tuple):
        return _one_of([_value(each, said, depth + 1) for each in inner])
    return _of_type(schema, said, depth)


def _of_type(schema: Mapping[str, object], said: _Said, depth: int) -> str:
    kind = schema.get("type")
    if kind == "array":
        return _array(schema, said, depth)
    if kind == "object":
        return _object(schema, said, depth)
    if kind in {"integer", "number"}:
        numbers = [number for number in said.numbers if kind == "number" or "." not in number]
        free = "whole" if kind == "integer" else "real"
        return _one_of([_literal(number) for number in numbers]) if numbers else free
    scalars = {"string": "said" if said.words else "text", "boolean": "truth", "null": _literal("null")}
    return scalars.get(str(kind), "any")


def _array(schema: Mapping[str, object], said: _Said, depth: int) -> str:
    fixed = schema.get("prefixItems")
    if isinstance(fixed, list | tuple):
        items = ' ", " '.join(_value(each, said, depth + 1) for each in fixed)
        return f'"[" {items} "]"'
    item = _value(cast("Mapping[str, object]", schema.get("items") or {}), said, depth + 1)
    least = schema.get("minItems")
    several = f'{item} (", " {item}){{0,{_MOST_ITEMS - 1}}}'
    return f'"[" {several} "]"' if isinstance(least, int) and least > 0 else f'"[" ({several})? "]"'


def _object(schema: Mapping[str, object], said: _Said, depth: int) -> str:
    """Required members first, since a comma can only be placed behind what surely stands there."""
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties") or {})
    required = cast("Sequence[str]", schema.get("required") or ())
    if not properties:
        item = schema.get("additionalProperties")
        if not isinstance(item, dict):
            return _literal("{}")
        pair = f'text ": " {_value(item, said, depth + 1)}'
        return f'"{{" ({pair} (", " {pair}){{0,{_MOST_ITEMS - 1}}})? "}}"'
    pairs = {
        name: f"{_literal(json.dumps(name) + ': ')} {_value(each, said, depth + 1)}"
        for name, each in properties.items()
    }
    surely = [pairs[name] for name in properties if name in required]
    perhaps = [pairs[name] for name in properties if name not in required]
    if surely:
        body = ' ", " '.join(surely) + "".join(f' (", " {pair})?' for pair in perhaps)
        return f'"{{" {body} "}}"'
    # none is sure: whichever comes first stands without a comma
    chains = [
        pair + "".join(f' (", " {later})?' for later in perhaps[index + 1 :]) for index, pair in enumerate(perhaps)
    ]
    return f'"{{" ({_one_of(chains)})? "}}"'


def _one_of(options: Sequence[str]) -> str:
    return options[0] if len(options) == 1 else f"({' | '.join(options)})"


def _json_literal(value: object) -> str:
    return _literal(json.dumps(value, ensure_ascii=False))


def _literal(text: str) -> str:
    """`text` as the notation quotes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
