"""docs/models.md promises that its configurations load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from antiphon.config import load
from antiphon.models.catalogue import find
from antiphon.models.store import Store
from antiphon.speak.voices import PIPER, piper_file, voice_model

pytestmark = pytest.mark.unit

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
RECIPES = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_loads_and_names_what_there_is(recipe: str, tmp_path: Path) -> None:
    """Every key exists, and every model is one of the catalogue, a file or a server."""
    file = tmp_path / "antiphon.toml"
    file.write_text(recipe, encoding="utf-8")
    models = load(file=file, environment={}).config.models
    store = Store(tmp_path)

    assert "recognition" == find(models.recognizer).role
    assert (
        models.language_model.startswith("http")
        or models.language_model.endswith(".gguf")
        or find(models.language_model)
    )
    if models.voice.startswith(PIPER):
        assert piper_file(models.voice, store).suffix == ".onnx"
    else:
        assert "voice" == voice_model(models.voice, store.catalogue).role


def test_there_are_as_many_recipes_as_machines() -> None:
    assert 7 == len(RECIPES)
