"""A self-hosted voice conversation server that answers inside a human pause.

Importing this loads no model library and not even numpy; the names below load what they need when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.act.tool import Tool, tool
    from antiphon.agent import Agent
    from antiphon.core.errors import AntiphonError, CallerError, EngineError, MachineError, PeerError
    from antiphon.core.flow import AudioFrame, Transcript
    from antiphon.runtime import Runtime
    from antiphon.session import Session

__version__ = "0.1.0"

_WHERE = {
    "Agent": "antiphon.agent",
    "AntiphonError": "antiphon.core.errors",
    "AudioFrame": "antiphon.core.flow",
    "CallerError": "antiphon.core.errors",
    "EngineError": "antiphon.core.errors",
    "MachineError": "antiphon.core.errors",
    "PeerError": "antiphon.core.errors",
    "Runtime": "antiphon.runtime",
    "Session": "antiphon.session",
    "Tool": "antiphon.act.tool",
    "Transcript": "antiphon.core.flow",
    "tool": "antiphon.act.tool",
}

__all__ = [
    "Agent",
    "AntiphonError",
    "AudioFrame",
    "CallerError",
    "EngineError",
    "MachineError",
    "PeerError",
    "Runtime",
    "Session",
    "Tool",
    "Transcript",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'antiphon' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
