"""A caller who uses the `openai` package's sync client, with a thread to speak: `python openai_sync.py order.flac`.

Plays the file as a microphone would, prints what was understood and said, and writes the reply's sound to reply.wav.
"""

from __future__ import annotations

import base64
import threading
import time
from typing import TYPE_CHECKING

from openai import OpenAI
from openai_events import Conversation, session
from telephone import Microphone, Sheet, options

if TYPE_CHECKING:
    import argparse

    from openai.resources.realtime.realtime import RealtimeConnection


def speak(microphone: Microphone, connection: RealtimeConnection) -> None:
    """Send the microphone's sound."""
    for chunk in microphone:
        connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())


def listen(connection: RealtimeConnection, conversation: Conversation, sheet: Sheet, limit_s: float) -> None:
    """Take events until the conversation is over."""
    end_s = time.monotonic() + limit_s
    for event in connection:
        for answer in conversation.take(event):
            connection.send(answer)
        if sheet.is_done():
            return
        if time.monotonic() > end_s:
            sheet.failed(f"not over after {limit_s:.0f} s")
            return


def call(chosen: argparse.Namespace) -> None:
    """Hold the conversation."""
    microphone = Microphone()
    sheet = Sheet("openai, sync", microphone, chosen)
    client = OpenAI(api_key=chosen.key, websocket_base_url=chosen.url)
    with client.realtime.connect(model="antiphon") as connection:
        connection.session.update(session=session(chosen.tool))
        microphone.say(chosen.file)
        speaking = threading.Thread(target=speak, args=(microphone, connection), daemon=True)
        speaking.start()
        listen(connection, Conversation(sheet, chosen.tool), sheet, chosen.limit_s)
        microphone.hang_up()
        speaking.join()
    sheet.close()


if __name__ == "__main__":
    call(options(__doc__ or ""))
