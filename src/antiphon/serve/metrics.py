"""Counts, gauges and histograms of one server, in a registry of its own -> the text that Prometheus reads.

Names and buckets stand here; observer.py and the server's edges feed them, and no logic does.
Units: seconds, as Prometheus has it. Threads: any; the library locks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from antiphon.serve.recent_turns import RecentTurns

if TYPE_CHECKING:
    from collections.abc import Callable

CONTENT_TYPE = CONTENT_TYPE_LATEST
REPLY_BUCKETS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
STAGE_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0)
LAG_BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.0225, 0.025),
    *(0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.0),
)
AGE_BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)


class Metrics:
    """Everything that a server counts; labels take few values, all known beforehand."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        self.recent = RecentTurns(now_s=time.time)
        self.turns = Counter(
            "antiphon_turns", "Turns of callers, by what became of them", ["outcome"], registry=registry
        )
        self.voice_to_voice = Histogram(
            "antiphon_voice_to_voice_seconds",
            "From the caller's last speech sample to the reply's first",
            ["outcome"],
            buckets=REPLY_BUCKETS,
            registry=registry,
        )
        self.impossible = Counter(
            "antiphon_impossible_latencies",
            "Turns whose reply seems to begin before the caller ended, of which no latency is filed",
            registry=registry,
        )
        self.stages = Histogram(
            "antiphon_stage_seconds",
            "What each stage of a turn took, by the turn's outcome",
            ["stage", "outcome"],
            buckets=STAGE_BUCKETS,
            registry=registry,
        )
        self.drafts = Counter(
            "antiphon_drafts", "Replies made unheard, by what became of them", ["fate"], registry=registry
        )
        self.stage_failures = Counter("antiphon_stage_failures", "Engine failures", ["stage"], registry=registry)
        self.tools = Counter("antiphon_tools", "Uses of the agent's tools", ["outcome"], registry=registry)
        self.sessions = Counter("antiphon_sessions", "Conversations begun", registry=registry)
        self.refused = Counter("antiphon_sessions_refused", "Callers turned away", ["reason"], registry=registry)
        self.ended = Counter("antiphon_sessions_ended", "Conversations over", ["reason"], registry=registry)
        self.session_seconds = Histogram(
            "antiphon_session_seconds",
            "How long conversations lasted",
            buckets=(1, 5, 15, 60, 180, 600, 1800, 3600),
            registry=registry,
        )
        self.send_age = Histogram(
            "antiphon_send_queue_age_seconds",
            "How long an event waited for its client's socket",
            buckets=AGE_BUCKETS,
            registry=registry,
        )
        self.calls = Gauge("antiphon_calls_open", "Calls by WebRTC, those still connecting included", registry=registry)
        self.call_packets = Counter(
            "antiphon_call_packets", "Packets of callers' sound, by what became of them", ["fate"], registry=registry
        )
        self.call_packets_waited = Counter(
            "antiphon_call_packets_waited", "Packets that waited for one before them", registry=registry
        )
        self.concealed = Counter(
            "antiphon_call_concealed_seconds", "Sound made up in place of lost packets", registry=registry
        )
        self.call_jitter = Histogram(
            "antiphon_call_jitter_seconds",
            "How much later than the quickest 19 of 20 packets came, read once a second of each call",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.5),
            registry=registry,
        )
        self.loop_lag = Histogram(
            "antiphon_event_loop_lag_seconds",
            "How late the event loop was",
            buckets=LAG_BUCKETS,
            registry=registry,
        )
        self.stalls = Counter("antiphon_event_loop_stalls", "Times that the event loop was held", registry=registry)
        self.log_lines_lost = Counter(
            "antiphon_log_lines_lost", "Log lines dropped, for nobody read them", registry=registry
        )
        self._open = Gauge("antiphon_sessions_open", "Conversations open now", registry=registry)

    def open_is(self, count: Callable[[], float]) -> None:
        """Where the number of open conversations is read, each time somebody asks."""
        self._open.set_function(count)

    def text(self) -> bytes:
        """The page for Prometheus."""
        return generate_latest(self.registry)
