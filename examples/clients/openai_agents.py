"""A caller whose program is written with the `openai-agents` package: `python openai_agents.py order.flac`.

Plays the file as a microphone would, prints what was understood and said, and writes the reply's sound to reply.wav.
The package keeps the history, runs the tool and truncates what was not heard by itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeModelSendRawMessage, RealtimeRunner, RealtimeSession
from telephone import Microphone, Sheet, look_up_price, options

if TYPE_CHECKING:
    import argparse

    from agents.realtime import RealtimeModelEvent


async def speak(microphone: Microphone, session: RealtimeSession) -> None:
    """Send the microphone's sound."""
    async for chunk in microphone:
        await session.send_audio(chunk)


async def listen(session: RealtimeSession, sheet: Sheet) -> None:
    """Take events until the conversation is over."""
    async for event in session:
        if event.type == "audio":
            sheet.played(event.audio.response_id, event.audio.data)
        elif event.type == "tool_end":
            sheet.called(event.tool.name, event.arguments, event.output)
        elif event.type == "raw_model_event":
            take(event.data, sheet)
        elif event.type == "error":
            sheet.failed(str(event.error))
        if sheet.is_done():
            return


def take(event: RealtimeModelEvent, sheet: Sheet) -> None:
    """Take down what the package hands on as the server said it."""
    if event.type == "input_audio_transcription_completed":
        sheet.heard(event.transcript)
    elif event.type == "transcript_delta":
        sheet.said(event.response_id, event.delta)
    elif event.type == "raw_server_event" and event.data["type"] == "response.done":
        response = event.data["response"]
        sheet.reply(response["id"]).is_call = any(item["type"] == "function_call" for item in response["output"])
        sheet.ended(response["id"], response["status"])


def agent(session_of: dict[str, RealtimeSession], tool: str | None) -> RealtimeAgent[None]:
    """A barista, with the tool if one is asked for; what it is told replaces what the server's own agent is told."""

    @function_tool(name_override="look_up_price")
    async def price(drink: str) -> str:
        """Looks up what a drink costs."""
        if tool == "forced":  # or the next reply would have to use it, too
            settings = {"session": {"type": "realtime", "tool_choice": "none"}}
            await session_of["this"].model.send_event(
                RealtimeModelSendRawMessage(message={"type": "session.update", "other_data": settings})
            )
        return look_up_price(drink)

    instructions = "You are the barista of a small coffee shop. Answer the customer in one short sentence."
    return RealtimeAgent(name="barista", instructions=instructions, tools=[price] if tool else [])


async def call(chosen: argparse.Namespace) -> None:
    """Hold the conversation."""
    microphone = Microphone()
    sheet = Sheet("openai-agents", microphone, chosen)
    session_of: dict[str, RealtimeSession] = {}
    settings = {"tool_choice": "required"} if chosen.tool == "forced" else {}
    runner = RealtimeRunner(
        agent(session_of, chosen.tool), config={"model_settings": settings, "tracing_disabled": True}
    )
    where = {"url": f"{chosen.url}/realtime?model=antiphon", "api_key": chosen.key}
    async with await runner.run(model_config=where) as session:
        session_of["this"] = session
        microphone.say(chosen.file)
        speaking = asyncio.create_task(speak(microphone, session))
        try:
            await asyncio.wait_for(listen(session, sheet), chosen.limit_s)
        except TimeoutError:
            sheet.failed(f"not over after {chosen.limit_s:.0f} s")
        microphone.hang_up()
        await speaking
    sheet.close()


if __name__ == "__main__":
    asyncio.run(call(options(__doc__ or "")))
