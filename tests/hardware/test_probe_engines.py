"""Loading an engine is tried where a crash costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antiphon.hardware.probe_engines import probe_imports

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def test_imports_are_tried_apart_from_us() -> None:
    """One loads, one is not there, one kills its process, one after it is still tried."""
    results = probe_imports(["json", "no_such_module", "antiphon", "this"], timeout_s=30)

    assert [result.problem == "" for result in results] == [True, False, True, True]


def test_an_import_that_kills_its_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash is the finding of the module that caused it; the next is tried in another process."""
    (tmp_path / "deadly.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n")
    (tmp_path / "quitting.py").write_text("import os\nos._exit(3)\n")
    (tmp_path / "loud.py").write_text("print('deadly')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    results = probe_imports(["loud", "deadly", "quitting", "json"], timeout_s=30)

    expected = ["", "the import ended its process with signal 4", "the import ended its process", ""]
    assert expected == [result.problem for result in results]


def test_an_import_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is bounded."""
    (tmp_path / "endless.py").write_text("while True: pass\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    (first, second) = probe_imports(["json", "endless"], timeout_s=0.5)

    assert first.problem == ""
    assert second.problem == "not loaded within 0.5 s"
