"""`antiphon config`: every setting, its value and where that came from; and the flags that set settings."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.config import FILE_NAME, Config, Layer, Resolved, Setting, keys, load
from antiphon.config_values import to_json, to_toml, type_name
from antiphon.mechanisms import MECHANISMS, settings_without

if TYPE_CHECKING:
    from rich.console import Console

UNBOUND = 10_000  # columns of a table that goes into a file or a pipe: a line for each setting, whole
PIPE = "\\|"  # a vertical bar inside a table of Markdown


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "config",
        help="show every setting and where its value came from",
        description="Show every setting, its value, and where that came from.",
        epilog=f"Settings come from {FILE_NAME}, then ANTIPHON_<SECTION>_<NAME> variables, then --set; the last wins.",
    )
    add_flags(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", help="as JSON")
    form.add_argument("--toml", dest="form", action="store_const", const="toml", help=f"as a {FILE_NAME} to start from")
    form.add_argument("--markdown", dest="form", action="store_const", const="markdown", help="as a page of reference")
    parser.set_defaults(run=run)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--config`, `--set` and `--without`; `resolve` reads them."""
    # No defaults: a subparser's default would wipe out what was given before the command's name.
    parser.add_argument(
        "--config",
        dest="config_file",
        type=Path,
        metavar="FILE",
        default=argparse.SUPPRESS,
        help=f"read settings from FILE, not from ./{FILE_NAME} or the user's",
    )
    parser.add_argument(
        "--set",
        dest="config_sets",
        action="append",
        metavar="SECTION.NAME=VALUE",
        default=argparse.SUPPRESS,
        help="set one setting; may be repeated",
    )
    parser.add_argument(
        "--without",
        dest="config_without",
        action="append",
        metavar="NAME[,NAME]",
        default=argparse.SUPPRESS,
        help=f"leave mechanisms out, to see what they are worth: {', '.join(MECHANISMS)}",
    )


def resolve(arguments: argparse.Namespace) -> Resolved:
    """The configuration under the flags of `add_flags`.

    Raises:
        CallerError: as `antiphon.config.load`.
    """
    left_out = settings_without(getattr(arguments, "config_without", ()))
    sets = (*left_out, *getattr(arguments, "config_sets", ()))
    return load(file=getattr(arguments, "config_file", None), sets=sets)


def run(arguments: argparse.Namespace) -> int:
    """Print the configuration in the form asked for; 0 is the only outcome.

    Raises:
        CallerError: as `antiphon.config.load`.
    """
    if arguments.form == "markdown":
        print(markdown(), end="")
        return 0
    resolved = resolve(arguments)
    if arguments.form == "json":
        print(as_json(resolved))
    elif arguments.form == "toml":
        print(as_toml(resolved), end="")
    else:
        from rich.console import Console

        print_table(resolved, Console(width=None if sys.stdout.isatty() else UNBOUND))
    return 0


def print_table(resolved: Resolved, console: Console) -> None:
    """Print a line for each setting, and which file was read or looked for."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("setting", "value", "from"):
        table.add_column(heading, no_wrap=True, overflow="fold")
    table.add_column("what it is")
    for setting in resolved.settings:
        changed = setting.origin.layer is not Layer.DEFAULT
        table.add_row(
            Text(setting.key.dotted),
            Text(to_toml(setting.value), style="bold green" if changed else ""),
            Text(str(setting.origin), style="green" if changed else "dim"),
            Text(setting.key.doc, style="dim"),
        )
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        console.print(Text.from_ansi(line.rstrip()), soft_wrap=True)
    looked_for = " and ".join(map(str, resolved.looked_for))
    found = f"read {resolved.file}" if resolved.file else f"no file: looked for {looked_for}"
    console.print(Text(f"\n{found}", style="dim"))


def as_json(resolved: Resolved) -> str:
    """{"file": path or null, "settings": {dotted name: {"value", "default", "origin", "where", "variable"}}}."""
    settings = {
        setting.key.dotted: {
            "value": to_json(setting.value),
            "default": to_json(setting.key.default),
            "origin": str(setting.origin.layer),
            "where": setting.origin.where,
            "variable": setting.key.variable,
        }
        for setting in resolved.settings
    }
    return json.dumps({"file": str(resolved.file) if resolved.file else None, "settings": settings}, indent=2)


def as_toml(resolved: Resolved) -> str:
    """A commented file that loads back to the same values."""
    lines = [
        f"# Settings of Antiphon. Save it as {FILE_NAME} in the working folder, keep the lines that you change, and",
        "# leave the others out: then they follow the defaults of later releases.",
    ]
    for section, of_section in groupby(resolved.settings, key=lambda setting: setting.key.section):
        lines += ["", f"# {_about(section)}", f"[{section}]"]
        for setting in of_section:
            lines += [f"# {comment}" for comment in _comments(setting)]
            lines.append(f"{setting.key.name} = {to_toml(setting.value)}")
    return "\n".join(lines) + "\n"


def markdown() -> str:
    """The reference of all settings: one table for each section."""
    lines = ["# Settings"]
    for section, of_section in groupby(keys(), key=lambda key: key.section):
        lines += ["", f"## {section}", "", _about(section), ""]
        lines += ["| setting | variable | value | default | what it is |", "|---|---|---|---|---|"]
        for key in of_section:
            names = (f"`{key.dotted}`", f"`{key.variable}`")
            cells = (*names, type_name(key.wanted), f"`{to_toml(key.default)}`", key.doc)
            lines.append(f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _about(section: str) -> str:
    """The first line of the section's docstring."""
    return (inspect.getdoc(type(getattr(Config(), section))) or section).partition("\n")[0]


def _comments(setting: Setting) -> list[str]:
    key = setting.key
    facts = [key.doc] if key.doc else []
    if setting.value != key.default:
        facts.append(f"default: {to_toml(key.default)}")
    return facts
