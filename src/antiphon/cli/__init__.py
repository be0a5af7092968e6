"""The command line: `antiphon COMMAND`. One file per command; each is imported only when the line is parsed."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

from antiphon import __version__
from antiphon.core.errors import AntiphonError

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130  # as a shell reports a command that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 done with a finding, 2 refused or failed."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows a mark, not a traceback
    try:
        parsed = parser().parse_args(arguments)
        return int(parsed.run(parsed))
    except AntiphonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us is gone, and so is the place to complain
        return 0


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    from antiphon.cli import (
        bench,
        config,
        converse,
        decisions,
        demo,
        doctor,
        models,
        plan,
        probe,
        replay,
        serve,
        simulate,
        talk,
        voices,
    )

    top = _Parser(prog="antiphon", description="A voice conversation server that answers inside a human pause.")
    top.add_argument("--version", action="version", version=f"antiphon {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    every = (
        demo,
        converse,
        talk,
        serve,
        replay,
        bench,
        models,
        voices,
        doctor,
        probe,
        plan,
        simulate,
        decisions,
        config,
    )
    for command in every:
        command.add(commands)
    return top


class _Parser(argparse.ArgumentParser):
    """Refuses with the nearest name, in the form of our other errors."""

    def error(self, message: str) -> NoReturn:
        hint = f"{self.prog} --help"
        if "invalid choice: " in message:
            choices = [choice for action in self._actions for choice in action.choices or ()]
            wrong = message.split("invalid choice: '", 1)[1].split("'", 1)[0]
            near = get_close_matches(wrong, [str(choice) for choice in choices], n=1)
            message = f"there is no {wrong!r}"
            hint = f"did you mean {near[0]!r}? {hint} lists all" if near else hint
        self.exit(2, f"error: {message}\nhint: {hint}\n")
