"""The contract of a language model: messages in, reply text out, piece by piece.

A `LanguageModel` is loaded once and shared; a `Thinking` is one conversation's view of it with its own prompt
cache. Threads: everything is called on the event loop; what computes is awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from antiphon.core.flow import Message, ToolCall, ToolSpec, Usage

    Written: TypeAlias = str | ToolCall  # what a model puts out

# Which tools a reply may use: any or none as the model likes, none at all, at least one, or the one of that name.
AUTO, NONE, REQUIRED = "auto", "none", "required"


class Thinking(Protocol):
    """One conversation with the model. `tools` are those that a reply to the messages will be offered."""

    @property
    def usage(self) -> Usage | None:
        """What the latest `write` took, as far as it has come; None where the engine does not know."""
        ...

    async def prefill(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> None:
        """Read `messages` ahead; the last is the user's and still open, more words may follow.

        Makes later calls that begin with the same messages cheaper, and has no other effect.
        """
        ...

    async def sentence_end_mass(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> float | None:
        """The probability that the open last message ends its sentence here; None if the model cannot tell.

        Raises:
            EngineError: the model failed.
            PeerError: its server failed.
        """
        ...

    def write(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        tools: Sequence[ToolSpec] = (),
        tool_choice: str = AUTO,
        begins_with: str = "",
    ) -> AsyncGenerator[Written, None]:
        """The reply to `messages`, in pieces as they come; whole characters only, none of them empty.

        The last message is the user's, or says what came of a tool. What the model thinks before it speaks is left
        out. The calls that it makes come after the text, each as soon as it is complete and names one of `tools`;
        whoever asked runs them, and asks again with what came of them. `tool_choice` is AUTO, NONE, REQUIRED or a
        tool's name. Closing the generator stops the model at its next token. At most one `write` runs at a time.

        `begins_with` is the raw text that the reply has already, written by an earlier `write`, be it for messages a
        little different from these. It is not yielded again: the model goes on right behind it, as if it had just
        written it, and what comes joins it without a space too many or too few. At the border between two tokens,
        and with the same messages, that is the reply which nobody interrupted. `max_tokens` and `usage.output_tokens`
        count only what is new, and no tool is called, whatever `tool_choice` asks for. It takes a model that
        `can_go_on`.

        Raises:
            CallerError: the messages, `tools` or `tool_choice` do not fit together; the message says how. Or there is
                `begins_with` and the model cannot go on.
            EngineError: the model failed.
            PeerError: its server failed.
        """
        ...

    def close(self) -> None:
        """Give the prompt cache back."""
        ...


@runtime_checkable
class KnowsLimit(Protocol):
    """A `Thinking` whose engine also knows why a reply ended."""

    @property
    def reached_limit(self) -> bool:
        """Whether the latest `write` ended because the reply had `max_tokens`, and not because all was said."""
        ...


class LanguageModel(Protocol):
    """A loaded model, or the server that runs it.

    `can_go_on` says whether a `write` may begin with text that is there already (`begins_with`). Who holds half a
    reply of a model that cannot has the whole written anew.
    """

    name: str
    longest_slice_ns: int
    can_go_on: bool

    def open(self) -> Thinking: ...

    async def warm_up(self) -> None: ...

    def close(self) -> None: ...
