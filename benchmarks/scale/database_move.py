"""What the move of a home with 10,000 trials from SQLite into PostgreSQL costs, and that its searches go on.

    python benchmarks/scale/database_move.py [--experiments N] [--trials N]

Two searches of one seed train one trial after the other: one whole in the SQLite home, the other half there
and half after the move. Both must have made the same decisions. The other trials wait, and the logs of some
of their searches are replayed in PostgreSQL. Each figure stands beside its limit; the program fails if one is
missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.clusters.embedded import EmbeddedCluster, embedded
from support.databases.postgres import new_postgres
from support.waiting import wait_until

from benchmarks.scale.long_queue import submit_all
from benchmarks.standalone import say
from resolute.client.connection.home import Home
from resolute.rpc.channel import open_channel

LIMIT_SECONDS = 120.0
"""Of processor time."""
LIMIT_MIB = 512.0
_SECONDS = 1800.0
_BEFORE = 6
"""Trials that the second search has begun when it is moved."""
_REPLAYED = 5
_SEARCH = """
name: {name}
entrypoint: python3 train.py
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}, y: {{type: int, minval: 1, maxval: 1000}}}}
resources: {{priority: 1}}
reproducibility: {{experiment_seed: 7}}
searcher: {{name: adaptive_asha, metric: loss, max_length: 64, max_trials: 16, max_concurrent_trials: 1}}
"""
_SCRIPT = """
import resolute as det
from resolute import core

with core.init() as context:
    x = det.get_cluster_info().trial.hparams["x"]
    for operation in context.searcher.operations():
        loss = (x - 0.3) ** 2 + 1 / operation.length
        context.train.report_validation_metrics(operation.length, {"loss": loss})
        operation.report_completed(loss)
"""


@dataclass(frozen=True)
class Move:
    """What the command needed."""

    seconds: float
    processor: float
    mib: float


def search(cluster: EmbeddedCluster, folder: Path, name: str) -> str:
    """Submits one of the two searches; returns the number of the experiment."""
    code, config = folder / "code", folder / f"{name}.yaml"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(_SCRIPT)
    config.write_text(_SEARCH.format(name=name))
    cluster.det("e", "create", str(config), str(code))
    return next(str(one["id"]) for one in cluster.json("e", "list", "--all") if one["name"] == name)


def decisions(cluster: EmbeddedCluster, experiment: str) -> list[tuple[Any, ...]]:
    """Hyperparameters, length and state of each trial, in order."""
    trials = cluster.json("e", "list-trials", experiment)
    fields = ("hparams", "total_batches_processed", "state")
    return [tuple(str(trial.get(name)) for name in fields) for trial in sorted(trials, key=_number)]


def _slot(cluster: EmbeddedCluster) -> tuple[str, str]:
    """The machine of the only slot, and the slot."""
    (slot,) = cluster.json("slot", "list")
    return str(slot["node"]), str(slot["slot_id"])


def _number(trial: dict[str, Any]) -> int:
    return int(trial["id"])


def fill(home: Path, folder: Path, *, experiments: int, trials: int) -> list[tuple[Any, ...]]:
    """Makes the home; returns the decisions of the search that ends in it."""
    with embedded(home, slots=1) as cluster:
        whole = search(cluster, folder, "whole")
        cluster.det("e", "wait", whole, timeout=_SECONDS)
        moved = search(cluster, folder, "moved")
        wait_until(lambda: len(decisions(cluster, moved)) >= _BEFORE, seconds=_SECONDS, pause=0.2)
        cluster.det("e", "pause", moved)
        wait_until(
            lambda: all(state != "RUNNING" for _, _, state in decisions(cluster, moved)), seconds=_SECONDS
        )
        assert len(decisions(cluster, moved)) < len(decisions(cluster, whole)), "it ended before the move"
        cluster.run("resolute", "slot", "disable", *_slot(cluster))
        endpoint = Home(home).read_endpoint()
        assert endpoint is not None
        with open_channel(endpoint.address, token=endpoint.token_path.read_text) as channel:
            submit_all(channel, experiments=experiments, trials=trials)
        return decisions(cluster, whole)


def move(home: Path, url: str) -> Move:
    """Runs the command."""
    began = time.perf_counter()
    program = str(Path(sys.executable).with_name("resolute"))
    process = subprocess.Popen(
        [program, "db", "move", "--url", url], env={**os.environ, "RESOLUTE_HOME": str(home)}
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("the move failed")
    return Move(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def go_on(home: Path) -> list[tuple[Any, ...]]:
    """Serves the home from PostgreSQL; returns the decisions of the search that ends there."""
    with embedded(home, slots=1) as cluster:
        numbers = {one["name"]: str(one["id"]) for one in cluster.json("e", "list", "--all")}
        cluster.det("e", "activate", numbers["moved"])
        cluster.run("resolute", "slot", "enable", *_slot(cluster))
        cluster.det("e", "wait", numbers["moved"], timeout=_SECONDS)
        for number in [*numbers.values()][:: max(len(numbers) // _REPLAYED, 1)]:
            cluster.det("search", "replay", number, timeout=_SECONDS)
        return decisions(cluster, numbers["moved"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=100)
    parser.add_argument("--trials", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="resolute-move-") as name, new_postgres() as url:
        folder = Path(name)
        home = folder / "home"
        whole = fill(home, folder, experiments=options.experiments, trials=options.trials)
        size = sum(file.stat().st_size for file in (home / "databases").iterdir()) / 2**20
        needed = move(home, url)
        moved = go_on(home)
    say(f"{options.trials} trials of {options.experiments} experiments, {size:.0f} MiB of SQLite files")
    say(f"{'seconds':24}{needed.seconds:9.1f} s")
    say(f"{'processor time':24}{needed.processor:9.1f} s    (limit {LIMIT_SECONDS:g})")
    say(f"{'memory':24}{needed.mib:9.1f} MiB  (limit {LIMIT_MIB:g})")
    same = sum(one == other for one, other in zip(whole, moved, strict=False))
    say(f"{'equal decisions':24}{same:9} of {len(whole)}")
    if whole != moved or needed.processor > LIMIT_SECONDS or needed.mib > LIMIT_MIB:
        sys.exit("a limit was missed, or a decision was another one")


if __name__ == "__main__":
    main()
