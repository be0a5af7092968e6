"""`antiphon bench compare` and `antiphon bench report`: what results say, without measuring anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.cli.bench.flags import REQUIRED, required
from antiphon.cli.bench.measuring import conclude, console

if TYPE_CHECKING:
    import argparse


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both."""
    comparing = actions.add_parser("compare", help="what one result is worth against another")
    comparing.add_argument("a", type=Path, metavar="A.json", help="a result.json, or its folder")
    comparing.add_argument("b", type=Path, metavar="B.json", help="the one that it is compared with")
    comparing.add_argument("--json", action="store_true", help="print JSON")
    comparing.set_defaults(run=run_compare)
    reporting = actions.add_parser("report", help="make a result's report again, or of several results together")
    reporting.add_argument("results", type=Path, nargs="+", metavar="RESULT.json", help="a result.json, or its folder")
    reporting.add_argument(
        "--out", dest="report_out", type=Path, metavar="DIR", help="where to; the first one's folder"
    )
    reporting.add_argument("--require", dest="report_require", metavar="LIST", help=REQUIRED)
    reporting.set_defaults(run=run_report)


def run_compare(arguments: argparse.Namespace) -> int:
    """Compare two results; 0 whatever comes out.

    Raises:
        CallerError: a file is no result.
    """
    import json

    from antiphon.lab.compare import as_json, compare
    from antiphon.lab.store import read_run
    from antiphon.lab.terminal import show_comparison

    report = compare(read_run(arguments.a), read_run(arguments.b))
    if arguments.json:
        print(json.dumps(as_json(report), indent=2))
    else:
        show_comparison(report, console())
    return 0


def run_report(arguments: argparse.Namespace) -> int:
    """Make a report again; 1 if a requirement is not met.

    Raises:
        CallerError: a file is no result.
        MachineError: the report cannot be written.
    """
    from antiphon.lab.report import write_report
    from antiphon.lab.store import read_run

    wanted = required(arguments.report_require)
    first, *others = [read_run(path) for path in arguments.results]
    path = arguments.results[0]
    folder = arguments.report_out or (path if path.is_dir() else path.parent)
    page, *_ = write_report(first, folder, others=others)
    return conclude(first, wanted, (page,))
