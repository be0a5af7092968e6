"""Does the simulation say what a live run says: the same figure of both, from the same record of jobs.

Regime: `--live N=FILE` is what a server with N callers wrote by --trace-decisions; `--simulated FILE` what `antiphon
simulate --json` found, several for several seeds. The figure is the simulation's own: for each reply that got sound,
from when the first job of its claim was asked for to when its first piece of sound was made. A reply whose beginning
was made ahead sounds sooner than that says, so this is not what a caller hears; it compares schedules. Ratios are
simulated to live; with few turns a live P95 is nearly its maximum, and the counts say so.

    python bench/simulated_and_live.py --live 1=a.jsonl --live 4=b.jsonl --simulated s0.json --simulated s1.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from antiphon.core.stamps import Stage
from antiphon.lab.machine import fingerprint
from antiphon.lab.statistics import percentile
from antiphon.scheduling.decisions import Decision, read_decisions

ROOT = Path(__file__).parents[1]
AWAITED = {"playback", "confirmed", "draft"}


def replies_ms(path: Path) -> list[float]:
    """Of each claim that got sound."""
    claims: dict[int, list[Decision]] = defaultdict(list)
    for row in read_decisions(path):
        if row.caller and not row.failed and row.ended_ns > row.began_ns:
            claims[row.claim].append(row)
    found = []
    for rows in claims.values():
        sounds = [row.ended_ns for row in rows if row.stage == Stage.SPEAK and row.urgency in AWAITED]
        if sounds:
            found.append((min(sounds) - min(row.asked_ns for row in rows)) / 1e6)
    return found


def lane_ms(path: Path) -> dict[str, float]:
    """What each engine was at work for, for a reply, as jobs counted it."""
    took: dict[str, float] = defaultdict(float)
    for row in read_decisions(path):
        if row.caller:
            took[row.lane] += row.took_ns / 1e6
    count = max(1, len(replies_ms(path)))
    return {lane: round(value / count, 1) for lane, value in sorted(took.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", action="append", required=True, metavar="N=FILE")
    parser.add_argument("--simulated", action="append", required=True, type=Path)
    parser.add_argument("--order", default="laxity")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "simulated_and_live.json")
    arguments = parser.parse_args()
    runs = [json.loads(path.read_text(encoding="utf-8"))["outcomes"] for path in arguments.simulated]
    rows = []
    for word in arguments.live:
        count, _, name = word.partition("=")
        live = replies_ms(Path(name))
        same = [one for run in runs for one in run if one["order"] == arguments.order and one["callers"] == int(count)]
        row: dict[str, object] = {"callers": int(count), "live_replies": len(live), "lane_ms": lane_ms(Path(name))}
        for part in (50, 95):
            lived = percentile(live, part)
            simulated = [one[f"ready_p{part}_ms"] for one in same]
            row[f"p{part}"] = {
                "live_ms": round(lived, 1),
                "simulated_ms": [round(one, 1) for one in simulated],
                "ratio": round(statistics.mean(simulated) / lived, 3),
            }
        rows.append(row)
        print(json.dumps(row))
    result = {
        "schema": "antiphon.simulated_and_live/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "rows": rows,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
