"""The grammar that a tool's arguments are written by."""

from __future__ import annotations

import pytest

from antiphon.think.argument_grammar import argument_grammar

pytestmark = pytest.mark.unit


def root(schema: dict[str, object], words: str = "") -> str:
    return argument_grammar(schema, words).splitlines()[0]


def member(schema: dict[str, object], words: str = "") -> str:
    """What stands for the value of one required member."""
    whole = root({"type": "object", "properties": {"x": schema}, "required": ["x"]}, words)
    return whole.removeprefix(r'root ::= " " "{" "\"x\": " ').removesuffix(' "}"')


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({"type": "string"}, "text"),
        ({"type": "integer"}, "whole"),
        ({"type": "number"}, "real"),
        ({"type": "boolean"}, "truth"),
        ({"type": "null"}, '"null"'),
        ({"const": 1}, '"1"'),
        ({"enum": ["a\\", 2]}, r'("\"a\\\\\"" | "2")'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, '(text | "null")'),
        ({"type": "array", "items": {"type": "integer"}}, '"[" (whole (", " whole){0,7})? "]"'),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, '"[" whole (", " whole){0,7} "]"'),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}, '"[" text ", " real "]"'),
        (
            {"type": "object", "additionalProperties": {"type": "number"}},
            '"{" (text ": " real (", " text ": " real){0,7})? "}"',
        ),
        ({"type": "object"}, '"{}"'),
        ({"$ref": "#/x"}, "any"),
    ],
)
def test_every_schema_has_a_rule(schema, rule):
    """Of what is not understood any value is let through."""
    assert rule == member(schema)


def test_what_may_be_left_out_follows_what_may_not():
    """A comma stands only between two members."""
    properties = {"a": {"type": "null"}, "b": {"type": "null"}}
    a, b = r'"\"a\": " "null"', r'"\"b\": " "null"'

    assert f'root ::= " " "{{" {b} (", " {a})? "}}"' == root(
        {"type": "object", "properties": properties, "required": ["b"]}
    )
    assert f'root ::= " " "{{" (({a} (", " {b})? | {b}))? "}}"' == root({"type": "object", "properties": properties})


@pytest.mark.parametrize(
    ("schema", "words", "rule"),
    [
        ({"type": "integer"}, "ten or 2.5", '"10"'),
        ({"type": "number"}, "ten or 2.5", '("10" | "2.5")'),
        ({"type": "integer"}, "a few", "whole"),
        ({"enum": ["monday", "sunday"]}, "On Sunday.", r'"\"sunday\""'),
        ({"enum": ["monday", "sunday"]}, "Tomorrow.", r'("\"monday\"" | "\"sunday\"")'),
        ({"type": "string"}, "Tea", "said"),
    ],
)
def test_values_are_held_to_what_was_said(schema, words, rule):
    """As far as something of the kind was said."""
    assert rule == member(schema, words)


def test_a_text_is_a_run_of_the_callers_words():
    """It neither begins nor ends with a small word, and nothing that was said can leave the notation."""
    rules = argument_grammar({"type": "object"}, 'Turn on the "big" light, please.').splitlines()

    assert r'said ::= "\"" (w0 | w3 | w4) "\""' in rules
    assert [
        'w0 ::= "Turn" (" " w1)?',
        'w1 ::= "on" " " w2',
        'w2 ::= "the" " " w3',
        'w3 ::= "big" (" " w4)?',
        'w4 ::= "light"',
    ] == rules[-5:]
