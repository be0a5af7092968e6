"""The page's JavaScript on its own: its types hold, and what it computes is right."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.browser]

HERE = Path(__file__).parent
NODE = shutil.which("node")
COMPILER = HERE / "node_modules" / "typescript" / "bin" / "tsc"


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if NODE is None:
        pytest.skip("Node is not installed: apt install nodejs npm")
    return subprocess.run([NODE, *arguments], capture_output=True, text=True, timeout=100, check=False, cwd=HERE)


def test_types_hold() -> None:
    """`tsc --checkJs --strict` finds nothing."""
    if not COMPILER.exists():
        pytest.skip("scripts/browser installs the type checker")
    ran = _run(COMPILER, "-p", HERE)
    assert (0, "") == (ran.returncode, ran.stdout)


def test_what_is_pure_computes_what_it_should() -> None:
    """Percentiles, the layout of a turn, the transcript, resampling, words: tests/browser/*.test.js."""
    ran = _run("--test", *sorted(HERE.glob("*.test.js")))
    assert 0 == ran.returncode, ran.stdout[-6000:]
