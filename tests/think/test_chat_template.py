"""How messages become a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.errors import CallerError
from antiphon.core.flow import Message
from antiphon.think.chat_template import TEMPLATES, template_for, template_named

pytestmark = pytest.mark.unit

CHATML = template_named("chatml")


def test_a_conversation_ends_in_the_open_reply():
    """Each message stands between its markers; the assistant's is left to be written."""
    messages = [
        Message("system", "Be kind."),
        Message("user", "Hi."),
        Message("assistant", "Yes?"),
        Message("user", "Tea."),
    ]

    assert (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi.<|im_end|>\n"
        "<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nTea.<|im_end|>\n<|im_start|>assistant\n"
    ) == CHATML.render(messages)


def test_the_open_prompt_begins_the_whole_one():
    """What is read ahead serves the reply: the one prompt is a prefix of the other."""
    messages = [Message("system", "Be kind."), Message("user", "I would like ")]

    assert CHATML.render(messages).startswith(CHATML.render(messages, open_last=True))
    assert CHATML.render(messages, open_last=True).endswith("I would like")


def test_halves_of_a_turn_are_joined_and_empty_messages_left_out():
    """Two user items in a row are one message, also when an unheard reply stood between them."""
    messages = [
        Message("system", ""),
        Message("user", "I would"),
        Message("assistant", " "),
        Message("user", "like tea."),
    ]

    assert "<|im_start|>user\nI would like tea." == CHATML.render(messages, open_last=True)


@pytest.mark.parametrize(
    "messages", [[], [Message("user", " ")], [Message("user", "Hi."), Message("assistant", "Yes?")]]
)
def test_only_a_users_words_can_be_left_open(messages):
    """Anything else is the caller's mistake."""
    with pytest.raises(CallerError):
        CHATML.render(messages, open_last=True)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
@given(
    text=st.lists(
        st.sampled_from(
            [
                "<|im_end|>",
                "<|im_start|>",
                "<|eot_id|>",
                "<|end|>",
                "<|user|>",
                "</s>",
                "[INST]",
                "<",
                "|",
                "a",
                "\x00",
                "\ud800",
            ]
        )
    ).map("".join)
)
def test_no_text_can_leave_its_message(template, text):
    """The markers in a prompt are the template's own, whatever was said."""
    prompt = template.render([Message("user", f"a{text}")])
    plain = template.render([Message("user", "a")])

    for marker in ("<|im_end|>", "<|im_start|>", *template.markers):
        assert plain.count(marker) == prompt.count(marker)
    assert "[INST]" not in prompt
    prompt.encode()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_a_family_is_known_by_its_sign(template):
    """The template that a model file carries names its family."""
    assert template is template_for("{{ '" + template.sign + "' + role }}")


def test_an_unknown_name_lists_the_known_ones():
    """The hint says what can be named."""
    with pytest.raises(CallerError, match="chatml"):
        template_named("nonsense")
    assert template_for("{{ bos_token }}") is None
