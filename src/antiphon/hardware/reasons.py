"""A choice, why it was made and which setting makes it instead -> the value that holds, and a line to print.

Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why something was chosen, in one sentence with the figures that led to it."""

    choice: str  # what was chosen: threads, cores, nice
    value: str  # as it is shown
    text: str
    setting: str = ""  # that decides it instead, section.name; "" if none does
    is_overridden: bool = False


def decide(
    choice: str,
    planned: Value,
    text: str,
    *,
    setting: str = "",
    given: Value | None = None,
    show: Callable[[Value], str] = str,
) -> tuple[Value, Reason]:
    """The value that holds, and why: `planned` for the reason `text`, unless the setting has `given` another."""
    if given is None:
        return planned, Reason(choice=choice, value=show(planned), text=text, setting=setting)
    told = f"{setting} says so; the plan would take {show(planned)}: {text[:1].lower()}{text[1:]}"
    return given, Reason(choice=choice, value=show(given), text=told, setting=setting, is_overridden=True)


def show_cores(cores: tuple[int, ...]) -> str:
    """Logical cores as the settings write them: 0-3,8; "any" for none in particular."""
    if not cores:
        return "any"
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def plural(count: float, what: str) -> str:
    """ "1 core", "1.5 cores", "2 cores"."""
    return f"{count:g} {what}" if count == 1 else f"{count:g} {what}s"
