"""How a model is asked which tool a sentence needs, and what its answer means."""

from __future__ import annotations

import pytest

from antiphon.core.errors import CallerError
from antiphon.core.flow import Message, ToolCall, ToolSpec
from antiphon.think.tool_choice import (
    MOST_SHARED_WORDS,
    SHARED_WORD_EVIDENCE,
    ToolChoice,
    check_choice,
    leanings_of,
    sentence_to_judge,
    shared_words,
)

pytestmark = pytest.mark.unit

DAY = {"type": "string", "enum": ["monday", "sunday"], "description": "of the week"}
HOURS = ToolSpec(
    name="opening_hours",
    description="Tell when the\nshop closes.",
    parameters={"type": "object", "properties": {"day": DAY}, "required": ["day"]},
)
PRICE = ToolSpec(name="get_price", description="Look up what a drink costs.", parameters={"type": "object"})
CHOICE = ToolChoice((HOURS, PRICE))


def test_all_questions_begin_alike():
    """What does not depend on the sentence is read once; a sentence cannot begin a line of its own."""
    question = CHOICE.question("How much\n\nTool: get_price is it?")

    assert question == f"{CHOICE.head}Sentence: How much Tool: get_price is it?\nTool:"
    assert CHOICE.arguments("Hi.", "get_price") == f"{CHOICE.question('Hi.')} get_price\nArguments:"
    assert "Sentence: Tell when the shop closes.\nTool: opening_hours\n\n" in CHOICE.head
    assert (" opening_hours", " get_price", " none") == CHOICE.options


def test_evidence_is_what_goes_beyond_the_models_leanings():
    """A name that is likely whatever was said says nothing; a word in common with the description does."""
    leanings = leanings_of([[-1.0, -5.0, -3.0], [-3.0, -9.0, -3.0]])

    assert (1.0, -4.0) == leanings
    assert (0.0, 7.0) == CHOICE.evidence("Hm.", [-1.0, 1.0, -2.0], leanings)
    assert (SHARED_WORD_EVIDENCE, 7.0) == CHOICE.evidence("Is it closed?", [-1.0, 1.0, -2.0], leanings)


@pytest.mark.parametrize(
    ("sentence", "count"),
    [("When do you close on Sunday?", 2), ("The shops", 1), ("What is the time?", 0), ("", 0), ("a week of hours", 2)],
)
def test_words_in_common_are_counted_by_their_stems(sentence, count):
    """Of the name, the description, the parameters and their choices; small words do not count."""
    assert count == shared_words(sentence, HOURS)
    assert MOST_SHARED_WORDS <= 2


def test_an_answer_to_our_question_is_judged_with_what_it_was_about():
    """A bare "Paris" asks for nothing by itself."""
    user, assistant = (lambda text: Message("user", text)), (lambda text: Message("assistant", text))
    call = ToolCall("1", "get_price", "{}")

    assert "Hi." == sentence_to_judge([Message("system", "Be kind."), user("Hi.")])
    assert "The weather? In Paris." == sentence_to_judge([user("The weather?"), assistant("Where?"), user("In Paris.")])
    assert "In Paris." == sentence_to_judge([user("Hi."), assistant("Hello."), user("In Paris.")])
    assert "Tea?" == sentence_to_judge(
        [user("Hi."), Message("assistant", "", call), Message("tool", "4", call), user("Tea?")]
    )
    assert "" == sentence_to_judge([])


@pytest.mark.parametrize("tool_choice", ["auto", "none", "required", "get_price"])
def test_what_the_tools_can_meet_is_let_through(tool_choice):
    """Nothing is raised."""
    check_choice([HOURS, PRICE], tool_choice)


@pytest.mark.parametrize(("specs", "tool_choice"), [([PRICE], "get_weather"), ([], "required"), ([], "get_price")])
def test_a_choice_of_what_is_not_there_is_the_callers_mistake(specs, tool_choice):
    """The hint says what can be chosen."""
    with pytest.raises(CallerError, match="auto, none"):
        check_choice(specs, tool_choice)


def test_a_tool_named_like_a_choice_is_refused():
    """What the model answers would be ambiguous."""
    with pytest.raises(CallerError, match="'none'"):
        check_choice([ToolSpec(name="none", description="", parameters={})], "auto")
