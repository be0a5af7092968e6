"""`antiphon serve [AGENT.PY]`: hold conversations over the network, in OpenAI's Realtime protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from antiphon.cli.config import add_flags, resolve
from antiphon.cli.device import add_device, on_device

if TYPE_CHECKING:
    import argparse

    from antiphon.config import Config
    from antiphon.serve.server import House
    from antiphon.serve_settings import ServeSettings

NAME = "antiphon"  # of an agent that no file names


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    parser = subparsers.add_parser(
        "serve",
        help="hold conversations over the network",
        description="Listens for clients of OpenAI's Realtime protocol and holds their conversations.",
        epilog="Every flag has a setting, see `antiphon config`; --set capacity.conversations=N says how many at once.",
    )
    parser.add_argument("agent_file", nargs="?", type=Path, metavar="AGENT.PY", help="a Python file with `agent`")
    parser.add_argument("--agent", type=Path, metavar="FILE", help="the same")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (8000); 0: any that is free")
    parser.add_argument(
        "--key",
        action="append",
        metavar="KEY",
        help="clients must show this key; may be repeated. Other users of this machine can see it in the list of "
        "processes: ANTIPHON_SERVE_KEYS, a comma list, is safer",
    )
    parser.add_argument(
        "--allow-anyone", action="store_true", help="listen for other machines without asking for a key"
    )
    parser.add_argument(
        "--origin", action="append", metavar="URL", help="a web page that may connect; may be repeated; *: all"
    )
    parser.add_argument("--certfile", metavar="PEM", help="certificate chain: serve wss:// and https://")
    parser.add_argument("--keyfile", metavar="PEM", help="its private key")
    parser.add_argument(
        "--trace-decisions",
        type=Path,
        metavar="FILE",
        help="append a line of JSON for each engine call: how long it waited, for whom, and why",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="write what happens in each conversation and what is decided into a file in DIR; it holds what was said",
    )
    parser.add_argument("--verbose", action="store_true", help="log each turn's beginning too")
    add_device(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal: 0 after SIGTERM, 130 after Ctrl-C."""
    from antiphon.agent import Agent, read_agent
    from antiphon.core.errors import CallerError
    from antiphon.serve import server
    from antiphon.serve.house import build

    file = arguments.agent or arguments.agent_file
    if arguments.agent and arguments.agent_file:
        raise CallerError("two agents are named", hint="name one file, with or without --agent")
    config = settled(arguments)
    agent = read_agent(file) if file else Agent()
    house = build(agent, config, name=file.stem if file else NAME, reread=lambda: settled(arguments))
    return server.run(
        house,
        on_ready=lambda address, capacity: print(greeting(house, address, capacity), flush=True),
        verbose=arguments.verbose,
    )


def settled(arguments: argparse.Namespace) -> Config:
    """The settings of file, environment and flags, as they are now."""
    config = on_device(resolve(arguments).config, arguments)
    trace = str(arguments.trace_decisions or config.scheduling.trace)
    folder = str(arguments.record or config.record.folder)
    return replace(
        config,
        serve=with_flags(config.serve, arguments),
        scheduling=replace(config.scheduling, trace=trace),
        record=replace(config.record, folder=folder),
    )


def with_flags(settings: ServeSettings, arguments: argparse.Namespace) -> ServeSettings:
    """The settings under the command's own flags; keys and origins add to those that are set."""
    given = {name: getattr(arguments, name) for name in ("host", "port", "certfile", "keyfile")}
    changed = {name: value for name, value in given.items() if value is not None}
    return replace(
        settings,
        keys=(*settings.keys, *(arguments.key or ())),
        origins=(*settings.origins, *(arguments.origin or ())),
        allow_anyone=settings.allow_anyone or arguments.allow_anyone,
        **changed,
    )


def greeting(house: House, address: str, capacity: int) -> str:
    """The line that says it is ready, and the one that says where the page is."""
    keys = "a key is needed" if house.config.serve.keys else "no key is needed"
    count = f"{capacity} conversations" if capacity != 1 else "1 conversation"
    ready = f"Ready: {address}  models: {', '.join(house.offer.models)}; {count} at once; {keys}"
    return f"{ready}\nOpen {page(address)} to talk to it"


def page(address: str) -> str:
    """Where a browser on this machine finds the page of the server whose conversations are held at `address`."""
    parts = urlsplit(address)
    host = "localhost" if parts.hostname in ("0.0.0.0", "::") else parts.netloc.rpartition(":")[0]  # noqa: S104
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{host}:{parts.port}/"
