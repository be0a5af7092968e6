"""The package as a user gets it: a wheel, an empty environment, one command."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


def test_the_built_wheel_holds_a_turn_in_an_empty_environment(tmp_path: Path) -> None:
    """Built, installed without a compiler, and run from another folder: the demo answers and writes its files."""
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT], check=True, timeout=300)
    (wheel,) = tmp_path.glob("antiphon-*.whl")
    page = ROOT / "src" / "antiphon" / "serve" / "web"
    assert {f"antiphon/serve/web/{file.name}" for file in page.iterdir()} <= set(ZipFile(wheel).namelist())
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    no_compiler = {**os.environ, "CC": "/bin/false", "CXX": "/bin/false"}
    install = [scripts / "python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel]
    subprocess.run(install, check=True, timeout=600, env=no_compiler)
    done = subprocess.run(
        [scripts / "antiphon", "demo"], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "first sound" in done.stdout
    assert (tmp_path / "conversation.wav").exists()
    assert (tmp_path / "timeline.png").exists()
