"""Talks to the page in Chromium, over a WebSocket and over WebRTC in turns, and puts its latencies beside the server's.

Regime: `antiphon serve` as a process of its own with real models and replies of a dozen tokens, Chromium without a
window on the same machine, the bundled orders as its microphone. Both share the cores with the engines, so absolute
figures are worse than a caller's elsewhere; what the two ways differ by is the point, and how far page and server are
apart. Rounds alternate between the ways. Turns whose reply broke off before it sounded have no figure and are counted.

Over WebRTC the browser holds what comes back in a buffer of its own, which nobody can take out: it tells for how long
(`jitterBufferDelay`), and that stands beside the rest. What its sound devices take, by its own word (`baseLatency`,
`outputLatency`), is in neither figure and is noted.

The browser is no part of the run in the eyes of `load`: its time counts as others'. So `is_valid` there says nothing,
steal does. Takes about 40 s for each way and round. Needs scripts/browser.

Usage: python bench/page_latency.py [--rounds N] [--ways websocket,webrtc] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np
import soundfile
from playwright.async_api import Page, async_playwright

from antiphon.audio.files import read
from antiphon.audio.resample import resample
from antiphon.lab.machine import Load, fingerprint
from corpus_turns import percentile
from server_process import ServerProcess

ROOT = Path(__file__).parents[1]
RATE_HZ = 48_000
CLIPS = ("order", "short_order", "order", "short_order")
BUFFER_MS = """(async () => {
  for (const one of (await antiphon.transport.peer?.getStats?.())?.values() ?? []) {
    if (one.type === "inbound-rtp") return 1000 * one.jitterBufferDelay / one.jitterBufferEmittedCount;
  }
  return 0;
})()"""
DEVICES_MS = (
    "[antiphon.sound.context.baseLatency, antiphon.sound.context.outputLatency].map((s) => Math.round(1000 * s))"
)
REST_S = 5.0  # for a reply of a dozen tokens to end
AGENT = """
from antiphon import Agent

agent = Agent(
    instructions="You are the barista of a small coffee shop. Answer the customer in one short sentence.",
    vocabulary=("triple shot", "cappuccino", "skim milk", "sugar"),
    max_tokens=12,
)
"""


def microphone(file: Path) -> float:
    """Write what Chromium is to hear; return how long it is, in seconds."""
    quiet = np.random.default_rng(1).normal(0.0, 0.0002, round(REST_S * RATE_HZ)).astype(np.float32)
    parts = [quiet[: RATE_HZ * 2]]
    for name in CLIPS:
        pcm, rate_hz = read(Path(str(resources.files("antiphon").joinpath(f"assets/{name}.flac"))))
        parts += [resample(pcm, rate_hz, RATE_HZ), quiet]
    soundfile.write(file, np.concatenate(parts), RATE_HZ, subtype="PCM_16")
    return sum(map(len, parts)) / RATE_HZ


async def talk(page: Page, address: str, way: str, seconds: float) -> list[dict[str, object]]:
    """One round: the turns as the page knows them."""
    await page.add_init_script(f"localStorage.setItem('antiphon.settings', '{{\"transport\": \"{way}\"}}')")
    await page.goto(address)
    await page.click("#talk")
    await asyncio.sleep(seconds)
    turns: list[dict[str, object]] = await page.evaluate(
        "antiphon.turns.all.map(({page, server, outcome}) => ({page, server, outcome, way: antiphon.way}))"
    )
    gaps = await page.evaluate("antiphon.gaps")
    held_ms = await page.evaluate(BUFFER_MS)
    devices_ms = await page.evaluate(DEVICES_MS)
    for turn in turns:
        print(
            f"{way}: page {turn['page']}, server {turn['server']}; {gaps} gaps, held {held_ms:.0f}",
            file=sys.stderr,
            flush=True,
        )
    told = {"gaps": gaps, "held_by_browser_ms": held_ms, "device_ms": devices_ms}
    return [{**turn, **told} for turn in turns]


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """All rounds."""
    ways = arguments.ways.split(",")
    found: dict[str, list[dict[str, object]]] = {way: [] for way in ways}
    load = Load()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "barista.py").write_text(AGENT, encoding="utf-8")
        seconds = microphone(folder / "microphone.wav")
        flags = [
            *("--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
            f"--use-file-for-fake-audio-capture={folder / 'microphone.wav'}%noloop",
        ]
        async with ServerProcess([str(folder / "barista.py")]) as server, async_playwright() as driver:
            address = server.url.replace("ws://", "http://").partition("v1/")[0]
            for _ in range(arguments.rounds):
                for way in ways:
                    browser = await driver.chromium.launch(executable_path=arguments.chromium, args=flags)
                    try:
                        found[way] += await talk(await browser.new_page(), address, way, seconds)
                    finally:
                        await browser.close()
    return {
        "schema": "antiphon.page_latency/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "load": load.report(),
        "ways": {way: {**summary(turns), "each": turns} for way, turns in found.items()},
    }


def summary(turns: list[dict[str, object]]) -> dict[str, object]:
    """One way's figures, ms."""
    whole = [turn for turn in turns if turn["page"] is not None and turn["server"] is not None]
    page = [float(str(turn["page"])) for turn in whole]
    server = [float(str(turn["server"])) for turn in whole]
    apart = [one - other for one, other in zip(page, server, strict=True)]
    held = [float(str(turn["held_by_browser_ms"])) for turn in whole]
    return {
        "turns": len(whole),
        "without_figure": len(turns) - len(whole),
        "page_p50_ms": percentile(page, 0.5),
        "page_p95_ms": percentile(page, 0.95),
        "server_p50_ms": percentile(server, 0.5),
        "server_p95_ms": percentile(server, 0.95),
        "page_minus_server_p50_ms": percentile(apart, 0.5),
        "page_minus_server_p95_ms": percentile(apart, 0.95),
        "held_by_browser_p50_ms": percentile(held, 0.5),
        "without_browsers_buffer_p50_ms": percentile([ms - kept for ms, kept in zip(apart, held, strict=True)], 0.5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="of each way")
    parser.add_argument("--ways", default="websocket,webrtc")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "page_latency.json")
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments))
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    ways = result["ways"]
    assert isinstance(ways, dict)
    print(json.dumps({way: {key: value for key, value in told.items() if key != "each"} for way, told in ways.items()}))


if __name__ == "__main__":
    main()
