"""What a model thinks aloud is not said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.think.reasoning import ReasoningFilter

pytestmark = pytest.mark.unit


def said(pieces, *, starts_inside=False):
    reasoning = ReasoningFilter(starts_inside=starts_inside)
    return "".join(map(reasoning.feed, pieces)) + reasoning.finish()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("<think>Hm, a latte.</think>\n\nSure, a latte.", "Sure, a latte."),
        ("<thinking>Hm.</thinking> Sure.", "Sure."),
        ("<Think>Hm.</Think>Sure.", "Sure."),
        ("<reasoning>Hm.</reasoning>Sure.", "Sure."),
        ("[THINK]Hm.[/THINK]Sure.", "Sure."),
        ("<think></think>Sure.", "Sure."),
        ("<think>a < b, <b>x</b>, </thin</think>Sure.", "Sure."),
        ("One. <think>Hm.</think> Two.", "One. Two."),
        ("<think>a</think><think>b</think> Sure.", "Sure."),
        ("<think>Hm, a latte", ""),
        ("<think>Hm.</think", ""),
        ("Sure.</think> Yes.", "Sure. Yes."),
        ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Sure.", "Sure."),
        ("<|channel|>analysis<|message|>Hm.<|end|>Sure.", "Sure."),
        ("<|channel|>commentary to=tool<|message|>{}<|call|>", ""),
        ("<|channel|>final<|message|>Sure.<|return|>", "Sure."),
        ("<|start|>assistant<|message|>Sure.<|end|>", "Sure."),
        ("<|channel>thought\nHm.<channel|>Sure.", "Sure."),
    ],
)
def test_thoughts_are_left_out(written, expected):
    """With the white space behind them; an unclosed thought says nothing."""
    assert expected == said([written])
    assert expected == said([*written])


@pytest.mark.parametrize(
    "written",
    [
        "Sure.",
        " a < b and b > a",
        "I <3 you",
        "a <b>bold</b> one",
        "<thin",
        "<",
        "x<|y",
        "[1] [th",
        "",
        "<<think",
        "你好<",
    ],
)
def test_all_else_passes_unchanged(written):
    """Tags of other kinds, comparisons and hearts included."""
    assert written == said([written])
    assert written == said([*written])


def test_a_prompt_may_have_opened_the_thought():
    """Then all up to the first closing tag is left out."""
    assert "Sure." == said(["Hm, a lat", "te.</th", "ink>\n\nSure."], starts_inside=True)
    assert "Sure." == said(["<think>Hm.</think>Sure."], starts_inside=True)
    assert "" == said(["Hm, a latte."], starts_inside=True)


def test_only_what_may_be_a_tag_is_held_back():
    """Everything else comes out at once."""
    reasoning = ReasoningFilter()
    assert "Sure, a latte " == reasoning.feed("Sure, a latte ")
    assert "" == reasoning.feed("<thi")
    assert "<thi " == reasoning.feed(" ")
    assert "<" == reasoning.feed("<<")


TEXT = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<",
            "think",
            ">",
            "a",
            " ",
            "\n",
            "<|channel|>",
            "analysis",
            "final",
            "<|message|>",
            "<|end|>",
            "<|start|>",
            "|",
            "😀",
            "<|",
            "[/THINK]",
        ]
    ),
    max_size=20,
).map("".join)


@given(TEXT, st.data())
def test_cuts_make_no_difference(text, data):
    """The reply depends on the text alone."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert said([text]) == said(pieces)


def test_a_flood_of_brackets_takes_linear_time():
    """Nothing is looked at more than a few times."""
    flood = "<<think" * 20_000
    assert flood == said([flood])
