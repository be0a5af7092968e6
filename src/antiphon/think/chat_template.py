"""Messages in, the prompt text of a model's family out.

A template is data: what stands before and after a message's text. Whatever a caller or a model said is kept from
ending its own message: a control marker inside a text is broken up, so that it is read as plain characters.
What it does not know: tokens, files and the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.core.flow import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

# `<|im_end|>`, `</s>`, `<start_of_turn>`, `[INST]`: in no family does a marker hold a space after its bracket.
_MARKER_OPENS = re.compile(r"<(?=\S)|\[(?=/?[A-Z])")
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]"
)  # llama.cpp ends a prompt at a NUL, JSON has no lone half

# A small model that does not stop goes on to write the caller's next line.
_NEXT_SPEAKER = ("\nUser:", "\nuser:", "\nHuman:", "\nAssistant:", "\nassistant:", "\nSystem:", "\nsystem:")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTemplate:
    """How one family of models marks who speaks."""

    name: str
    opens: str  # before a message's text; `{role}` is replaced
    closes: str  # after it
    sign: str  # occurs in the template that a model file of this family carries, and in no other family's
    markers: tuple[str, ...]  # control tokens that must not come out as text

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts at which a reply is cut, themselves left out."""
        return (*self.markers, *_NEXT_SPEAKER)

    def render(self, messages: Sequence[Message], *, open_last: bool = False) -> str:
        """The prompt for a reply to `messages`, or with `open_last` up to the last word of the user's last message.

        Consecutive messages of one role are joined; messages without text are left out.

        Raises:
            CallerError: with `open_last`, the last message with text is not the user's.
        """
        joined = join_messages(messages)
        if not open_last:
            return "".join(self._whole(message) for message in joined) + self.opens.format(role="assistant")
        if not joined or joined[-1].role != "user":
            raise CallerError("only a user's message can be left open", hint="let the user's words come last")
        whole = "".join(self._whole(message) for message in joined[:-1])
        return whole + self.opens.format(role="user") + joined[-1].text

    def _whole(self, message: Message) -> str:
        return self.opens.format(role=message.role) + message.text + self.closes


TEMPLATES = (
    ChatTemplate(
        name="chatml",
        opens="<|im_start|>{role}\n",
        closes="<|im_end|>\n",
        sign="<|im_start|>",
        markers=("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    ),
    ChatTemplate(
        name="llama3",
        opens="<|start_header_id|>{role}<|end_header_id|>\n\n",
        closes="<|eot_id|>",
        sign="<|start_header_id|>",
        markers=("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|end_of_text|>"),
    ),
    ChatTemplate(
        name="phi3",
        opens="<|{role}|>\n",
        closes="<|end|>\n",
        sign="<|end|>",
        markers=("<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|endoftext|>"),
    ),
)


def template_named(name: str) -> ChatTemplate:
    """Raises CallerError for a name that is none of TEMPLATES."""
    for template in TEMPLATES:
        if template.name == name:
            return template
    known = ", ".join(template.name for template in TEMPLATES)
    raise CallerError(f"there is no chat template named {name!r}", hint=f"the known ones are {known}")


def template_for(model_template: str) -> ChatTemplate | None:
    """The family whose sign is in `model_template`, the template text of a model file; None for an unknown one."""
    for template in TEMPLATES:
        if template.sign in model_template:
            return template
    return None


def join_messages(messages: Sequence[Message]) -> list[Message]:
    """The same conversation with harmless texts, none empty, and the role changing from each to the next."""
    joined: list[Message] = []
    for message in messages:
        text = harmless(message.text).strip()
        if not text:
            continue
        if joined and joined[-1].role == message.role:
            text = f"{joined.pop().text} {text}"
        joined.append(Message(message.role, text))
    return joined


def harmless(text: str) -> str:
    """`text` with control markers broken up by a space and without characters that no prompt can hold."""
    return _MARKER_OPENS.sub(lambda bracket: f"{bracket.group()} ", _UNPRINTABLE.sub(" ", text))
