"""Makes the doubles of this folder importable for its tests, which are no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

NAME = "antiphon_think_doubles"
if NAME not in sys.modules:
    spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("doubles.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
