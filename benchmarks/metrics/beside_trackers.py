"""How fast reports of ten metrics become durable, beside FastTrackML's real server and beside trackio.

    python benchmarks/metrics/beside_trackers.py [--reports N] [--seconds S]

Both are made to be quicker than MLflow (`beside_mlflow.py`): FastTrackML takes MLflow's calls with a server
in Go, trackio writes into SQLite from the training process itself, without any server. Each has an
environment of its own; RESOLUTE_BENCH_FASTTRACKML and RESOLUTE_BENCH_TRACKIO name the interpreters of others:

    python3 -m venv .cache/fasttrackml && .cache/fasttrackml/bin/pip install 'mlflow-skinny<3'
    .cache/fasttrackml/bin/pip install --no-deps fasttrackml==0.6.0
    python3 -m venv .cache/trackio && .cache/trackio/bin/pip install trackio==0.43.*

Ours is one trial with a trainer and a supervisor of its own, until the last report is durable (``live 1`` of
`beside_mlflow.py`). trackio's SQLite is told to fsync each commit; what FastTrackML's does is left as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.metrics.beside_mlflow import live
from benchmarks.standalone import say

_HERE = Path(__file__).resolve().parent
_CACHE = _HERE.parents[1] / ".cache"
_REPORTS_TO_TRACKIO = 20_000


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A tracker that is measured.

    Attributes:
        name: What it is called, also by pip.
        load: The program that drives it, with its arguments.
        goal: Least ratio of our values a second to its.
    """

    name: str
    load: tuple[str, ...]
    goal: float

    @property
    def python(self) -> Path:
        """The interpreter that has it."""
        named = os.environ.get(f"RESOLUTE_BENCH_{self.name.upper()}")
        return Path(named or _CACHE / self.name / "bin" / "python")

    def measure(self) -> dict[str, Any]:
        """Runs it; returns its figures."""
        command = [str(self.python), str(_HERE / self.load[0]), *self.load[1:]]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        figures: dict[str, Any] = json.loads(output.splitlines()[-1])
        return figures


def compared(peer: Peer, *, values: float, call_us: float) -> bool:
    """Prints a peer's figures beside ours; returns whether ours met the goals."""
    theirs = peer.measure()
    faster, cheaper = values / theirs["batch_values"], theirs["async_call_us"] / call_us
    singles = theirs.get("single_calls")
    alone = f", one at a time {singles:,.0f} calls/s" if singles else ""
    say(
        f"{peer.name} {theirs['version']}: {theirs['batch_values']:,.0f} values/s{alone}, "
        f"a call {theirs['async_call_us']:,.1f} us"
    )
    say(f"ours / {peer.name}, values {faster:10.2f} x   (goal {peer.goal:g} x)")
    say(f"{peer.name} / ours, time of a call {cheaper:.2f} x   (goal 1 x)")
    return bool(faster >= peer.goal and cheaper >= 1)


def main() -> int:
    """Prints what was measured; returns 1 when a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", type=int, default=200_000, help="reports of ours (default: 200000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="per way to log to FastTrackML")
    options = parser.parse_args()
    peers = (
        Peer(
            name="fasttrackml",
            load=("_mlflow_load.py", str(options.seconds), "fasttrackml"),
            goal=10,
        ),
        Peer(name="trackio", load=("_trackio_load.py", str(_REPORTS_TO_TRACKIO)), goal=5),
    )
    here = [peer for peer in peers if peer.python.exists()]
    for peer in peers:
        if peer not in here:
            say(f"absent: {peer.name}; see the top of this file for how it is installed")
    if not here:
        return 0
    values, call_us = live(1, options.reports)
    say(f"ours: {values:,.0f} values/s, a call {call_us:.1f} us")
    met = [compared(peer, values=values, call_us=call_us) for peer in here]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
