"""A configuration and an agent in -> a server that listens, loads, serves, and ends in order on a signal.

It listens before it loads, so that whoever asks is told that it loads. The first SIGTERM or Ctrl-C lets nobody in any
more and replies in progress end; the second ends at once.
Threads: the event loop of `serve`; models load and close in others.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import ssl
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from antiphon.core.clock import MILLISECOND_NS, MonotonicClock
from antiphon.core.errors import AntiphonError, CallerError, MachineError
from antiphon.serve.app import make_app
from antiphon.serve.gpu_metrics import GpuMetrics
from antiphon.serve.job_metrics import JobMetrics
from antiphon.serve.keys import refuse_open_door
from antiphon.serve.log_lines import SessionLog, written
from antiphon.serve.loop_watch import LagReport, LoopWatch, log_stall
from antiphon.serve.reception import Offer, Reception
from antiphon.serve.websocket import HttpProtocol, SocketProtocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from types import FrameType

    from starlette.applications import Starlette

    from antiphon.config import Config
    from antiphon.gpu.engine_lane import Gpu
    from antiphon.runtime import Runtime
    from antiphon.scheduling.cpu_lanes import CpuScheduler
    from antiphon.serve.line import PickUp
    from antiphon.serve.metrics import Metrics
    from antiphon.serve_settings import ServeSettings

HASTY_DRAIN_S = 2.0  # after Ctrl-C somebody waits at a keyboard
STRAGGLERS_S = 1.0  # for what is left when the drain is over
BACKLOG = 128
INTERRUPTED = 130  # as a shell reports a program that Ctrl-C ended


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What is to be served."""

    offer: Offer
    config: Config
    load: Callable[[], Awaitable[Runtime]]
    pick_up: PickUp
    metrics: Metrics
    reread: Callable[[], Config] | None = None  # the settings anew, as SIGHUP asks for; None: they stay


class Server(uvicorn.Server):
    """uvicorn's server, which sees its callers off before it goes."""

    def __init__(self, config: uvicorn.Config, reception: Reception, *, drain_s: float) -> None:
        super().__init__(config)
        self.stopped_by = 0  # the signal; 0: none
        self.reception = reception
        self._drain_s = drain_s
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """A signal came; runs between two steps of the main thread."""
        if self.should_exit:
            self.force_exit = True
            self._loop.call_soon_threadsafe(self.reception.hurry)
        self.should_exit = True
        self.stopped_by = sig

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        SessionLog().info("server.draining", sessions=self.reception.open_sessions)
        hasty = self.stopped_by == signal.SIGINT
        if not self.force_exit:
            await self.reception.drain(min(self._drain_s, HASTY_DRAIN_S) if hasty else self._drain_s)
        await super().shutdown(sockets)
        if self.force_exit:  # which uvicorn would leave the application to find out
            await self.lifespan.shutdown()


def run(house: House, *, on_ready: Callable[[str, int], None], verbose: bool = False) -> int:
    """Serve until a signal comes, with log lines on standard error: the process's exit code.

    After a second signal it does not return: calls into engines that are in progress would be waited for.

    Raises: as `serve`.
    """
    with asyncio.Runner() as runner:
        level = logging.DEBUG if verbose else logging.INFO
        with written(level=level, on_lost=house.metrics.log_lines_lost.inc):
            stopped_by, at_once = runner.run(
                serve(house, on_ready=lambda server, where: on_ready(where, server.reception.capacity))
            )
        code = INTERRUPTED if stopped_by == signal.SIGINT else 0
        if at_once:
            sys.stdout.flush()
            os._exit(code)
    return code


async def serve(house: House, *, on_ready: Callable[[Server, str], None]) -> tuple[int, bool]:
    """Serve until a signal comes: which it was, and whether a second one wanted it to end at once.

    `on_ready` gets the server and its address when callers are let in.

    Raises:
        CallerError: the address may not be listened on, or is taken; the certificate, or the folder to record into, is
            of no use.
        and whatever `house.load` raises.
    """
    settings = house.config.serve
    refuse_open_door(settings)
    tls = _tls(settings)
    clock = MonotonicClock()
    reception = Reception(house.offer, house.config, pick_up=house.pick_up, metrics=house.metrics, clock=clock)
    sockets = listen(settings.host, settings.port)
    failures: list[Exception] = []

    async def load(server: Server) -> Runtime | None:
        try:
            runtime = await house.load()
        except Exception as error:  # noqa: BLE001 - told once the server has ended
            failures.append(error)
            server.should_exit = True
            return None
        if runtime.scheduler is not None:
            JobMetrics(house.metrics).follow(runtime.scheduler)
            _reread_on_hangup(house, runtime.scheduler, runtime.gpu)
        if runtime.gpu is not None:
            GpuMetrics(house.metrics).follow(runtime.gpu)
        gc.collect()
        gc.freeze()  # what is loaded lives as long as we do: looking through it held the loop for 60 ms and more
        gc.collect()  # so that the next full one is due by what sessions leave alone
        reception.open_doors(runtime)
        if not server.should_exit:
            on_ready(server, address(sockets, has_tls=tls is not None))
        return runtime

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        report = LagReport(
            lag=house.metrics.loop_lag.observe,
            stall=lambda _s: house.metrics.stalls.inc(),
            held=lambda at: log_stall(at) if reception.condition == "ready" else None,  # loading is no surprise
        )
        loading = asyncio.create_task(load(server))
        with LoopWatch(report, clock=clock, stall_ns=settings.stall_ms * MILLISECOND_NS).watching():
            yield
        hurried = asyncio.create_task(reception.hurried.wait())
        await asyncio.wait([loading, hurried], return_when=asyncio.FIRST_COMPLETED)
        if not hurried.done() and (runtime := loading.result()):
            await asyncio.to_thread(runtime.close)
        for task in (loading, hurried):  # a load in progress goes on in its thread, and nobody waits for it
            task.cancel()

    server = Server(_uvicorn(make_app(reception, lifespan), settings, tls), reception, drain_s=settings.drain_s)
    try:
        await server.serve(sockets)
    finally:
        for each in sockets:
            each.close()
    if failures:
        raise failures[0]
    SessionLog().info("server.stopped", signal=server.stopped_by, at_once=server.force_exit)
    return server.stopped_by, server.force_exit


def _uvicorn(app: Starlette, settings: ServeSettings, tls: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=HttpProtocol,
        ws=SocketProtocol,
        ws_max_size=settings.message_bytes,
        ws_ping_interval=settings.ping_s,
        ws_ping_timeout=settings.ping_s,
        ws_per_message_deflate=False,  # speech does not shrink, and would wait for the attempt
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(STRAGGLERS_S),
        ssl_context_factory=(lambda _config, _default: tls) if tls is not None else None,
    )


def _reread_on_hangup(house: House, scheduler: CpuScheduler, gpu: Gpu | None) -> None:
    """SIGHUP: schedule by the thresholds that the settings have now; all else that changed there waits for a start."""
    reread = house.reread
    if reread is None or not hasattr(signal, "SIGHUP"):  # Windows has none
        return
    lines = SessionLog()

    def read_again() -> None:
        try:
            rules = reread().scheduling
            scheduler.adjust(rules)
            if gpu is not None:
                gpu.lane.adjust(rules)
        except AntiphonError as error:
            lines.error("settings.refused", error)
            return
        lines.info("settings.reread")

    with suppress(RuntimeError, NotImplementedError, ValueError):  # not on the main thread: nobody signals us there
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, read_again)


def _tls(settings: ServeSettings) -> ssl.SSLContext | None:
    if not settings.certfile:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certfile, settings.keyfile or None)
    except (OSError, ValueError) as error:
        raise CallerError(
            f"the certificate cannot be used: {type(error).__name__}",
            hint="certfile and keyfile must be readable PEM files that belong together, without a password",
        ) from error
    return context


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address of `host`; port 0 takes one that is free.

    Raises:
        CallerError: the address is taken, none of this machine's, or needs a right that we lack.
    """
    hint = "choose another with --port, or end the program that has it"
    sockets: list[socket.socket] = []
    refused: OSError | None = None
    for family, kind, protocol, _, where in _addresses(host, port):
        one = socket.socket(family, kind, protocol)
        try:
            if hasattr(socket, "AF_INET6") and family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if sys.platform != "win32":  # where it would let two programs listen on one port
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((where[0], port or (sockets[0].getsockname()[1] if sockets else 0), *where[2:]))
            one.listen(BACKLOG)
            one.setblocking(False)
            sockets.append(one)
        except OSError as error:
            one.close()
            refused = error
            if error.errno == errno.EADDRINUSE:
                break
    if refused is not None and (not sockets or refused.errno == errno.EADDRINUSE):
        for each in sockets:
            each.close()
        raise CallerError(f"cannot listen on {host or '*'}:{port}: {refused.strerror}", hint=hint) from refused
    return sockets


def _addresses(host: str, port: int) -> Sequence[tuple[int, int, int, str, tuple[object, ...]]]:
    try:
        return socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise MachineError(f"the host {host} is unknown here", hint="use an address of this machine") from error


def address(sockets: Sequence[socket.socket], *, has_tls: bool) -> str:
    """Where clients connect to."""
    host, port = sockets[0].getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"{'wss' if has_tls else 'ws'}://{name}:{port}/v1/realtime"
