"""A caller who uses the `openai` package's async client: `python openai_async.py order.flac`.

Plays the file as a microphone would, prints what was understood and said, and writes the reply's sound to reply.wav.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

from openai import AsyncOpenAI
from openai_events import Conversation, session
from telephone import Microphone, Sheet, options

if TYPE_CHECKING:
    import argparse

    from openai.resources.realtime.realtime import AsyncRealtimeConnection


async def speak(microphone: Microphone, connection: AsyncRealtimeConnection) -> None:
    """Send the microphone's sound."""
    async for chunk in microphone:
        await connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())


async def listen(connection: AsyncRealtimeConnection, conversation: Conversation, sheet: Sheet) -> None:
    """Take events until the conversation is over."""
    async for event in connection:
        for answer in conversation.take(event):
            await connection.send(answer)
        if sheet.is_done():
            return


async def call(chosen: argparse.Namespace) -> None:
    """Hold the conversation."""
    microphone = Microphone()
    sheet = Sheet("openai, async", microphone, chosen)
    client = AsyncOpenAI(api_key=chosen.key, websocket_base_url=chosen.url)
    async with client.realtime.connect(model="antiphon") as connection:
        await connection.session.update(session=session(chosen.tool))
        microphone.say(chosen.file)
        speaking = asyncio.create_task(speak(microphone, connection))
        try:
            await asyncio.wait_for(listen(connection, Conversation(sheet, chosen.tool), sheet), chosen.limit_s)
        except TimeoutError:
            sheet.failed(f"not over after {chosen.limit_s:.0f} s")
        microphone.hang_up()
        await speaking
    sheet.close()


if __name__ == "__main__":
    asyncio.run(call(options(__doc__ or "")))
