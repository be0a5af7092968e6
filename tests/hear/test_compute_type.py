from __future__ import annotations

import pytest

from antiphon.hear.compute_type import fitting_compute_type

pytestmark = pytest.mark.unit

AVX2 = {"int8", "int8_float32", "float32"}


def test_fastest_supported_is_the_default() -> None:
    """int8 where there is int8, single precision where there is nothing else."""
    assert fitting_compute_type(None, AVX2, "cpu")[0] == "int8"
    assert fitting_compute_type(None, {"float32"}, "cpu")[0] == "float32"
    assert fitting_compute_type(None, {"float32", "float16", "int8_float16"}, "cuda")[0] == "float16"


def test_what_is_asked_for_is_taken_where_it_exists() -> None:
    """A choice is a choice."""
    assert fitting_compute_type("float32", AVX2, "cpu")[0] == "float32"


def test_what_does_not_exist_is_replaced_and_said() -> None:
    """float16 on a CPU starts, and names both."""
    compute_type, reason = fitting_compute_type("float16", AVX2, "cpu")
    assert compute_type == "int8"
    assert "float16" in reason
    assert "int8" in reason
