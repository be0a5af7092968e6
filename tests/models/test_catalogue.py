"""The catalogue is whole, and a name that is nearly right finds its way."""

from __future__ import annotations

import pytest

from antiphon.core.errors import CallerError
from antiphon.models.catalogue import CATALOGUE, DEFAULT_NAMES, Model, ModelFile, find
from antiphon.models.source import HubSource, LocalSource, PackageSource, WheelSource, parse_source

pytestmark = pytest.mark.unit

SHA256 = "0" * 64


def test_every_role_of_a_conversation_has_a_default() -> None:
    """The default set holds one model for each of the five roles, and a quick recognizer."""
    roles = [CATALOGUE[name].role for name in DEFAULT_NAMES]

    assert roles == ["voice detection", "turn end", "recognition", "recognition", "language model", "voice"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_model_has_its_licence_text_and_its_credits(name: str) -> None:
    """Each model comes with the text of its licence and names whom to credit."""
    model = CATALOGUE[name]

    assert model.licence
    assert model.notice
    assert len(model.read_licence()) > 500


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("silero", "silero-v6"),
        ("Silero-V6", "silero-v6"),
        ("whisper", "whisper-tiny.en"),
        ("whisper-tiny-en", "whisper-tiny.en"),
        ("moonshine", "moonshine-tiny.en"),
        ("smollm2", "smollm2-135m-instruct-q4_1"),
        ("hibari-hart", "hibari-heart"),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(wrong: str, meant: str) -> None:
    """The hint of an unknown name suggests the nearest."""
    with pytest.raises(CallerError, match="unknown model") as caught:
        find(wrong)

    assert f"did you mean {meant}?" == caught.value.hint


@pytest.mark.parametrize("name", ["", "zzzzzzzz", "日本語"])
def test_a_name_that_is_nothing_like_ours_is_answered_with_all(name: str) -> None:
    """Where nothing is near, the hint lists what there is."""
    with pytest.raises(CallerError) as caught:
        find(name)

    assert "silero-v6" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pypi:a-b==1.0/c/d.bin", WheelSource(distribution="a-b", version="1.0", member="c/d.bin")),
        ("hf:own/repo@main/x/y.bin", HubSource(repository="own/repo", revision="main", path="x/y.bin")),
        ("package:hibari/assets/h.onnx", PackageSource(package="hibari", path="assets/h.onnx")),
        ("path:/a b/c", LocalSource(path="/a b/c")),
    ],
)
def test_a_source_is_read(text: str, expected: object) -> None:
    """Each of the four forms is understood."""
    assert expected == parse_source(text)


@pytest.mark.parametrize("text", ["", "pypi:a/b", "hf:repo/x", "path:", "http://x/y", "package:a", "pypi:==1/x"])
def test_anything_else_is_no_source(text: str) -> None:
    """A malformed source is refused with the forms that there are."""
    with pytest.raises(CallerError) as caught:
        parse_source(text)

    assert "pypi:" in caught.value.hint


def test_a_hub_source_is_a_url_with_its_revision() -> None:
    """Odd letters in a path are quoted, the endpoint may be a mirror."""
    source = HubSource(repository="own/repo", revision="refs/pr/1", path="a b/c.bin")

    assert source.url("https://mirror/") == "https://mirror/own/repo/resolve/refs%2Fpr%2F1/a%20b/c.bin"


@pytest.mark.parametrize(
    "change",
    [{"name": "../x"}, {"name": ""}, {"name": ".hidden"}, {"sha256": "abc"}, {"size_bytes": 0}, {"sources": ()}],
)
def test_a_file_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    """A name that leaves its folder, a sha256 that is none, no size or no source: each is refused."""
    fields = {"name": "x", "size_bytes": 1, "sha256": SHA256, "sources": ("path:/x",), **change}

    with pytest.raises(CallerError):
        ModelFile(**fields)


def test_a_model_whose_name_leaves_the_cache_is_refused() -> None:
    """A model's name becomes a folder's, and must be a plain one."""
    with pytest.raises(CallerError, match="not a plain model name"):
        Model(name="a/b", role="voice", licence="MIT", licence_text="", notice="", homepage="", files=())
