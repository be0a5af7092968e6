"""What a user of the package relies on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import antiphon
from antiphon.dialogue.diagram import mermaid

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]


def test_importing_the_package_loads_no_heavy_library() -> None:
    """`import antiphon` is for everyone: neither numpy nor torch, nor any engine's library."""
    heavy = "{'numpy', 'torch', 'onnxruntime', 'ctranslate2', 'xllamacpp', 'hibari', 'rich', 'PIL'}"
    code = f"import sys, antiphon; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", antiphon.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(antiphon, name).__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Agnet"):
        _ = antiphon.Agnet


def test_the_diagram_in_the_docs_is_drawn_from_the_table() -> None:
    """docs/architecture.md shows the transitions as they are; `python -m antiphon.dialogue.diagram` prints them."""
    assert mermaid() in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_example_in_the_docs_is_the_one_that_is_tested() -> None:
    """docs/use.md shows examples/ten_lines.py word for word."""
    code = (ROOT / "examples" / "ten_lines.py").read_text(encoding="utf-8").split("async def main", 1)[1]
    shown = (ROOT / "docs" / "use.md").read_text(encoding="utf-8")
    assert "async def main" + code.split("\n\nif __name__", 1)[0].rstrip() in shown


def test_no_file_of_ours_is_too_long() -> None:
    """A file of more than 400 lines is a file to split."""
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in ("src", "bench", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}
