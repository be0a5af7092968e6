"""The events of the `openai` package -> what is taken down, and what the client sends in return.

Both of the package's clients, async and sync, have the same events. It knows no connection.
"""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING

from telephone import BYTES_PER_MS, RATE_HZ, TOOL, Sheet, look_up_price

if TYPE_CHECKING:
    from openai.types.realtime import (
        RealtimeClientEventParam,
        RealtimeServerEvent,
        RealtimeSessionCreateRequestParam,
        ResponseFunctionCallArgumentsDoneEvent,
    )


def session(tool: str | None) -> RealtimeSessionCreateRequestParam:
    """The settings of a conversation, with a tool if one is asked for."""
    settings: RealtimeSessionCreateRequestParam = {
        "type": "realtime",
        "output_modalities": ["audio"],
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": RATE_HZ},
                "transcription": {"model": "whisper-1"},
                "turn_detection": {"type": "semantic_vad"},
            },
            "output": {"format": {"type": "audio/pcm", "rate": RATE_HZ}},
        },
    }
    if tool:
        settings["tools"] = [TOOL]  # type: ignore[list-item] # a plain dict, as most programs have it
        settings["tool_choice"] = {"type": "function", "name": "look_up_price"} if tool == "forced" else "auto"
    return settings


class Conversation:
    """The client's half of the protocol."""

    def __init__(self, sheet: Sheet, tool: str | None) -> None:
        self._sheet = sheet
        self._tool = tool
        self._playing: tuple[str, str] | None = None  # response, item
        self._has_output = False  # of a tool, which the model has not seen yet

    def take(self, event: RealtimeServerEvent) -> list[RealtimeClientEventParam]:
        """Take an event down and say what is to be sent because of it."""
        sheet = self._sheet
        if event.type == "response.created":
            sheet.reply(event.response.id or "")
        elif event.type == "response.output_audio.delta":
            self._playing = (event.response_id, event.item_id)
            sheet.played(event.response_id, base64.b64decode(event.delta))
        elif event.type == "response.output_audio_transcript.delta":
            sheet.said(event.response_id, event.delta)
        elif event.type == "conversation.item.input_audio_transcription.completed":
            sheet.heard(event.transcript)
        elif event.type == "input_audio_buffer.speech_started":
            return self._stop_playing()
        elif event.type == "response.function_call_arguments.done":
            return self._use_tool(event)
        elif event.type == "response.done":
            sheet.ended(event.response.id or "", event.response.status or "")
            return self._ask_for_reply()
        elif event.type == "error":
            sheet.failed(f"{event.error.code}: {event.error.message}")
        return []

    def _stop_playing(self) -> list[RealtimeClientEventParam]:
        """Throw away what has not been played yet, and say how much was, so that the model knows what was heard."""
        if self._playing is None:
            return []
        (response, item), self._playing = self._playing, None
        reply = self._sheet.reply(response)
        if reply.began_s is None:
            return []
        played_ms = int((time.monotonic() - reply.began_s) * 1000)
        if played_ms >= reply.sound_ms:
            return []
        del reply.sound[played_ms * BYTES_PER_MS :]
        return [{"type": "conversation.item.truncate", "item_id": item, "content_index": 0, "audio_end_ms": played_ms}]

    def _use_tool(self, event: ResponseFunctionCallArgumentsDoneEvent) -> list[RealtimeClientEventParam]:
        self._sheet.reply(event.response_id).is_call = True
        output = look_up_price(**json.loads(event.arguments))
        self._sheet.called(event.name, event.arguments, output)
        self._has_output = True
        return [
            {
                "type": "conversation.item.create",
                "item": {"type": "function_call_output", "call_id": event.call_id, "output": output},
            }
        ]

    def _ask_for_reply(self) -> list[RealtimeClientEventParam]:
        """After a tool; without its being forced again, which would never end."""
        if not self._has_output:
            return []
        self._has_output = False
        if self._tool == "forced":
            return [{"type": "response.create", "response": {"tool_choice": "none"}}]
        return [{"type": "response.create"}]
