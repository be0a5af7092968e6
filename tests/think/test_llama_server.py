"""What is checked before the engine is loaded."""

from __future__ import annotations

import pytest

from antiphon.core.errors import CallerError, EngineError, MachineError
from antiphon.think import llama_server
from antiphon.think.llama_server import _failure, check_processor, missing_flags
from antiphon.think.llama_settings import LlamaSettings

pytestmark = pytest.mark.unit


def test_missing_instructions_are_found():
    """The flags line of /proc/cpuinfo decides; a text without one decides nothing."""
    assert missing_flags("processor : 0\nflags\t\t: fpu sse4_2 avx2 fma\n") == frozenset()
    assert missing_flags("processor : 0\nflags\t\t: fpu sse4_2 avx\n") == {"avx2", "fma"}
    assert missing_flags("Features : asimd\n") == frozenset()


def test_an_old_processor_gets_a_remedy_instead_of_a_crash(monkeypatch, tmp_path):
    """The error comes before the import that would die."""
    facts = tmp_path / "cpuinfo"
    facts.write_text("flags : fpu avx\n")
    monkeypatch.setattr(llama_server.sys, "platform", "linux")
    monkeypatch.setattr(llama_server.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(llama_server, "Path", lambda _: facts)

    with pytest.raises(MachineError, match=r"AVX2 and FMA(.|\n)*hint"):
        check_processor()


def test_a_servers_error_is_ours_without_its_text():
    """Numbers are kept, quotations are not."""
    error = _failure({"type": "exceed_context_size_error", "message": "secret", "n_prompt_tokens": 9, "n_ctx": 4})

    assert isinstance(error, EngineError)
    assert "9" in error.message
    assert "secret" not in str(error)
    assert "secret" not in str(_failure({"type": "server_error", "message": "secret"}))


@pytest.mark.parametrize(
    "field",
    [{"temperature": 3.0}, {"temperature": float("nan")}, {"seed": -1}, {"batch_tokens": 0}, {"template": "nonsense"}],
)
def test_settings_out_of_range_are_refused(field):
    """The message names the field or the value."""
    with pytest.raises(CallerError):
        LlamaSettings(**field)
