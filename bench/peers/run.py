"""Servers, ours and others, side by side -> a result.json for each, and a table.

    bench/peers/make_environment pipecat; bench/peers/make_environment speech-to-speech
    python bench/peers/run.py --kinds clean,hesitation --clips 12 --out results/peers

Clips are cut into blocks. Each block is said to one server after the other, each started for it alone and ended after
it, in an order that turns from block to block. So no server has to share the machine with another one, and all of them
share what the machine does over an hour. Each begins with turns that are thrown away. Servers' logs, which hold what
was said, go to .peers/run.
Runs in this repository's environment; peers run in theirs. Threads: one event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

from merging import merged, table
from processes import TICKS_PER_S, Process, Watch, free_port, running
from settings import AGENT, ENVIRONMENTS, ROOT, SERVERS, Server, models

from antiphon.agent import read_agent
from antiphon.core.errors import AntiphonError, CallerError, PeerError
from antiphon.lab.clips import MANIFEST, choose, read_corpus
from antiphon.lab.measure import measure
from antiphon.lab.plan import BenchPlan
from antiphon.lab.report import write_report
from antiphon.lab.result import Outcome
from antiphon.lab.schedule import SCENARIOS, Habits
from antiphon.lab.store import write_run
from antiphon.lab.validity import reasons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.lab.clips import Clip
    from antiphon.lab.result import Run, Turn

IDLE_S = 3.0  # that a server is watched while nobody calls
FIRST_REPLY_S = 60.0  # a server may load things in its first reply: 16 s were seen
PAUSE_S = 1.0  # between two calls: a server that takes one caller at a time frees its place late


@dataclass(slots=True)
class Account:
    """What is gathered of one server."""

    server: Server
    runs: list[Run] = field(default_factory=list)
    ready_s: list[float] = field(default_factory=list)
    idle_cores: list[float] = field(default_factory=list)
    busy_cores: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)

    def notes(self) -> list[str]:
        """What it costs, in words."""
        words = "takes the vocabulary" if self.server.takes_vocabulary else "takes no vocabulary"
        idle, busy = max(self.idle_cores), sum(self.busy_cores) / len(self.busy_cores)
        return [
            f"ready after {max(self.ready_s):.1f} s at most; {words}",
            f"{idle:.3f} cores idle, {busy:.2f} in calls, {max(self.rss_mib):.0f} MiB, its models' server included",
        ]


async def main(arguments: argparse.Namespace) -> None:
    """Measure all servers, block by block, and write what came of it after each."""
    servers = [SERVERS[name] for name in arguments.servers]
    for server in servers:
        _ = server.python  # says which environment is missing before anything is started
    blocks = cut(arguments)
    accounts = [Account(server) for server in servers]
    for number, clips in enumerate(blocks):
        folder = arguments.work / "blocks" / str(number)
        write_corpus(clips, folder)
        for account in turned(accounts, number):
            print(f"block {number + 1} of {len(blocks)}: {account.server.name}", flush=True)
            await measure_block(account, folder, arguments)
        write_all([account for account in accounts if account.runs], arguments)


def cut(arguments: argparse.Namespace) -> list[list[Clip]]:
    """So many clips of each kind, dealt out to the blocks, each with its share of each kind."""
    corpus = read_corpus(arguments.corpus)
    kinds = [kind.strip() for kind in arguments.kinds.split(",") if kind.strip()]
    blocks: list[list[Clip]] = [[] for _ in range(min(arguments.blocks, arguments.clips))]
    for kind in kinds:
        for place, clip in enumerate(choose(corpus, kinds=[kind], limit=arguments.clips, seed=arguments.seed)):
            blocks[place % len(blocks)].append(clip)
    return blocks


def turned(accounts: Sequence[Account], number: int) -> list[Account]:
    """Another one begins each block, and every second block goes backwards."""
    first = number % len(accounts)
    order = [*accounts[first:], *accounts[:first]]
    return order[::-1] if number % 2 else order


def write_corpus(clips: Sequence[Clip], folder: Path) -> None:
    """A corpus of these clips alone, its sounds linked to where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for clip in clips:
        link = folder / clip.name
        link.unlink(missing_ok=True)
        link.symlink_to(clip.path.resolve())
        entry = {"file": clip.name, "kind": clip.kind, "slots": dict(clip.slots), "text": clip.text}
        lines.append(entry | {"speech_start_s": clip.speech_start_s, "speech_end_s": clip.speech_end_s})
    (folder / MANIFEST).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


async def measure_block(account: Account, corpus: Path, arguments: argparse.Namespace) -> None:
    """Start the server and what it needs, say the block to it, and end them."""
    server, logs = account.server, arguments.work / "logs"
    async with AsyncExitStack() as stack:
        agent = read_agent(AGENT)
        language_model_port, voice_port, port = free_port(), free_port(), free_port()
        processes: list[Process] = []
        if server.needs_models:
            command = [str(SERVERS["antiphon"].python), str(Path(__file__).with_name("model_server.py"))]
            command += ["--port", str(language_model_port), "--voice-port", str(voice_port)]
            command += ["--reply-tokens", str(agent.max_tokens)]
            started = running(command, port=voice_port, variables={}, log=logs / f"models-for-{server.name}.log")
            processes.append(await stack.enter_async_context(started))
        found = models(agent, language_model_port=language_model_port, voice_port=voice_port)
        command = [str(server.python), *server.command(found, port)]
        started = running(command, port=port, variables=server.variables, log=logs / f"{server.name}.log")
        processes.append(await stack.enter_async_context(started))
        account.ready_s.append(processes[-1].ready_s)
        account.runs.append(await say(account, processes, corpus, arguments))


async def say(account: Account, processes: Sequence[Process], corpus: Path, arguments: argparse.Namespace) -> Run:
    """The block's run, its load as the machine shows it: the servers' own work is no others' load."""
    plan = BenchPlan(
        url=f"ws://127.0.0.1:{processes[-1].port}/v1/realtime",
        name=account.server.name,
        corpus=corpus,
        scenario=arguments.scenario,
        seed=arguments.seed,
        patience_s=arguments.patience_s,
        wants_stamps=False,
    )
    await wake(plan, arguments.warm_up)
    account.idle_cores.append(sum([await process.idle_cores(IDLE_S) for process in processes]))
    watch, before_s = Watch(processes), sum(process.cpu_s() for process in processes)
    run = await measure(plan, on_turn=show, habits=Habits(pause_s=PAUSE_S))
    load = watch.report()
    passed_s = load["ticks"] / TICKS_PER_S / (os.cpu_count() or 1)
    account.busy_cores.append((sum(process.cpu_s() for process in processes) - before_s) / passed_s)
    account.rss_mib.append(sum(process.rss_mib() for process in processes))
    return replace(run, load={**load, "is_valid": not reasons(load)})


async def wake(plan: BenchPlan, turns: int) -> None:
    """Say something else to a new server, as often as is asked for, and wait for however long its first replies take.

    Raises:
        PeerError: it does not answer.
    """
    if not turns:
        return
    outcomes: list[Outcome] = []

    async def take(turn: Turn) -> None:
        outcomes.append(turn.outcome)

    strange = replace(plan, corpus=None, turns=turns, patience_s=FIRST_REPLY_S)
    await measure(strange, on_turn=take, habits=Habits(pause_s=PAUSE_S, ruler_turns=0))
    if outcomes[-1] is not Outcome.ANSWERED:
        raise PeerError(f"{plan.name} does not answer: {outcomes[-1]}", hint="read its log in .peers/run")


async def show(turn: Turn) -> None:
    """One turn on a line of its own."""
    shown = "" if turn.v2v_ms is None else f"{turn.v2v_ms:.0f} ms"
    print(f"  {turn.kind:12} {turn.clip:32} {turn.outcome:9} {shown:>9}  {turn.error}", flush=True)


def write_all(accounts: Sequence[Account], arguments: argparse.Namespace) -> None:
    """Each server's result, and all of them in one table and one report."""
    runs = []
    for account in accounts:
        server = account.server
        settings = {
            **account.runs[0].settings,
            "corpus": arguments.corpus.name,
            "kinds": arguments.kinds.split(","),
            "turns": sum(len(run.turns) for run in account.runs),
            "blocks": len(account.runs),
            "peer": {
                "settings": dict(server.settings),
                "takes_vocabulary": server.takes_vocabulary,
                "packages": packages(server),
            },
        }
        run = merged(account.runs, name=server.name, settings=settings, notes=account.notes())
        write_run(run, arguments.out / server.name)
        runs.append(run)
    text = table(runs)
    (arguments.out / "table.md").write_text(text, encoding="utf-8")
    write_report(runs[0], arguments.out, others=runs[1:])
    print("\n" + text, flush=True)


def packages(server: Server) -> dict[str, str]:
    """The versions that the server runs on."""
    where = [str(path) for path in server.python.parents[1].glob("lib/python*/site-packages")]
    wanted = {"pipecat-ai", "speech-to-speech", "faster-whisper", "ctranslate2", "onnxruntime", "torch", "antiphon"}
    return {found.name: found.version for found in distributions(path=where) if found.name in wanted}


def arguments_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--servers", default=",".join(SERVERS), help=f"of {', '.join(SERVERS)}")
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--kinds", default="clean,hesitation", help="of the corpus")
    parser.add_argument("--clips", type=int, default=12, help="of each kind (12)")
    parser.add_argument("--blocks", type=int, default=3, help="that they are said in (3)")
    parser.add_argument(
        "--warm-up", type=int, default=2, help="turns of other clips before each block, thrown away (2)"
    )
    parser.add_argument("--scenario", default="single", choices=SCENARIOS)
    parser.add_argument("--patience-s", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "peers")
    arguments = parser.parse_args()
    arguments.servers = [name.strip() for name in arguments.servers.split(",")]
    arguments.out = arguments.out.resolve()
    arguments.work = ENVIRONMENTS / "run" / arguments.out.name  # not with the results: logs hold what was said
    return arguments


if __name__ == "__main__":
    told = arguments_of()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or servers would outlive us
    try:
        if unknown := sorted(set(told.servers) - set(SERVERS)):
            raise CallerError(f"there is no server {unknown[0]!r}", hint=f"there are {', '.join(SERVERS)}")
        asyncio.run(main(told))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except AntiphonError as error:
        raise SystemExit(f"error: {error.message}\nhint: {error.hint}") from error
