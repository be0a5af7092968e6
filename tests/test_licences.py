"""docs/licences.md says what is installed, and what is installed keeps the rule."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antiphon.models.catalogue import CATALOGUE

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.unit

SCRIPT = Path(__file__).parents[1] / "scripts" / "licences.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("packaging")
    loader = importlib.machinery.SourceFileLoader("antiphon_licences", str(SCRIPT))
    spec = importlib.util.spec_from_loader("antiphon_licences", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["antiphon_licences"] = module
    was, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would lie beside the script
    loader.exec_module(module)
    sys.dont_write_bytecode = was
    return module


@pytest.fixture(scope="module")
def sections() -> dict[str, list[list[str]]]:
    """The document's tables by heading, without their first two lines."""
    return tables(SCRIPT.parents[1].joinpath("docs", "licences.md").read_text(encoding="utf-8"))


def tables(text: str) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for part in text.split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        lines = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
        found[heading] = [[cell.strip() for cell in line] for line in lines[2:]]
    return found


def test_the_document_names_what_we_ask_for(script: ModuleType, sections: dict[str, list[list[str]]]) -> None:
    """Every direct dependency is listed, under the licence that its installed metadata state; versions may differ."""
    listed = {name: licence for name, _, licence in sections["Base install"]}
    installed = {row.name: row.licence for row in script.base_rows() if row.name in script.direct_names()}

    assert installed == {name: listed.get(name) for name in installed}


def test_the_document_regenerates(script: ModuleType, sections: dict[str, list[list[str]]]) -> None:
    """What the script would write has the same extras, models and notes."""
    text = script.render()
    again = tables(text)

    assert again["Models"] == sections["Models"]
    extras = {heading: rows for heading, rows in sections.items() if heading.startswith("Extra: ")}
    assert extras == {heading: rows for heading, rows in again.items() if heading.startswith("Extra: ")}
    assert script.TEXT_NOTES in SCRIPT.parents[1].joinpath("docs", "licences.md").read_text(encoding="utf-8")


def test_every_model_is_listed(sections: dict[str, list[list[str]]]) -> None:
    """Name, role and licence of each model of the catalogue."""
    expected = [[model.name, model.role, model.licence] for model in CATALOGUE.values()]

    assert expected == [row[:3] for row in sections["Models"]]


def test_base_install_keeps_the_rule(script: ModuleType) -> None:
    """Each wheel that the base install brings is permissive, or LGPL or MPL as a wheel of its own."""
    allowed = script.PERMISSIVE | script.WEAK

    assert {} == {row.name: row.licence for row in script.base_rows() if not script.is_allowed(row.licence, allowed)}


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="other wheels bundle other libraries"
)
def test_what_wheels_bundle_keeps_the_rule(script: ModuleType) -> None:
    """Bundled libraries too; GCC's runtime under its exception, and two that may be passed on as binaries."""
    allowed = script.PERMISSIVE | script.WEAK | script.RUNTIME | script.BINARY
    bundled = [(row.name, *entry) for row in script.base_rows() for entry in row.bundled]

    assert [] == [entry for entry in bundled if not script.is_allowed(entry[2], allowed)]
    assert {"ctranslate2"} == {name for name, _, licence in bundled if licence in script.BINARY}


def test_every_extra_is_known(script: ModuleType) -> None:
    """An extra may bring what the base may not, but never something whose licence nobody knows."""
    unknown = [name for rows in script.extra_rows().values() for name, licence in rows if licence == script.UNKNOWN]

    assert [] == unknown, "add them to STATED in scripts/licences.py"


def test_models_are_permissive(script: ModuleType) -> None:
    """Every model of the catalogue may be used for anything."""
    assert {} == {
        model.name: model.licence
        for model in CATALOGUE.values()
        if not script.is_allowed(model.licence, script.PERMISSIVE)
    }


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", True),
        ("GPL-3.0-or-later WITH GCC-exception-3.1", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("LGPL-2.1-or-later", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_an_expression_is_judged(script: ModuleType, expression: str, expected: bool) -> None:
    """AND needs all, OR needs one, an exception is part of its licence."""
    assert expected == script.is_allowed(expression, script.PERMISSIVE)
