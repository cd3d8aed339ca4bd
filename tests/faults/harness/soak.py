"""A long row of short experiments: what a control plane needs must not grow with what it has done.

Run as ``make soak``; with ``--unmanaged`` the experiments are begun and ended by calls alone, without
processes. One cluster is up all the time. Memory, descriptors and threads of its control plane are read each
hundred experiments; what it needs more after a warm-up is divided by the experiments since then. The time of
the list of experiments is measured at the end.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from faults.harness.fault_cluster import FaultCluster
from faults.harness.service_queries import address_of, channel_to
from support.clusters.embedded import EmbeddedCluster
from support.processes.clean_ending import end_cleanly
from support.waiting import wait_until

from resolute.api.experiments.v1 import run_pb2, trials_service_pb2_grpc
from resolute.api.experiments.v1 import trials_service_pb2 as pb2
from resolute.client import Client, Experiment, ExperimentState
from resolute.rpc.channel import open_channel

EXPERIMENTS = 1000
WARM_UP = 200
MOST_BYTES_PER_EXPERIMENT = 10_000
MOST_DESCRIPTORS = 20
"""Descriptors that may come on top in all: those of the last runs, and idle connections to a database."""
MOST_THREADS = 8
MOST_LIST_SECONDS = 0.6
_EVERY = 100
_AT_ONCE = 4
_SETTLE_SECONDS = 60.0
_CONFIG = {
    "name": "soak",
    "entrypoint": "echo done",
    "searcher": {"name": "single", "metric": "loss", "max_length": 1},
    "resources": {"slots_per_trial": 1},
    "max_restarts": 0,
}


@dataclass(frozen=True)
class Needs:
    """What the control plane holds at one moment."""

    experiments: int
    """Experiments that have ended."""
    memory: int
    """Bytes that are its own: what it shares with files is not counted."""
    descriptors: int
    threads: int

    def __str__(self) -> str:
        return (
            f"{self.experiments:6} experiments: {self.memory / 1e6:7.1f} MB, "
            f"{self.descriptors:4} descriptors, {self.threads:3} threads"
        )


@dataclass(frozen=True)
class Growth:
    """What the control plane needs more than after the warm-up."""

    experiments: int
    """Experiments since then."""
    memory: int
    descriptors: int
    threads: int

    @property
    def bytes_per_experiment(self) -> float:
        """Memory per experiment."""
        return self.memory / max(self.experiments, 1)

    def __str__(self) -> str:
        return (
            f"over the last {self.experiments} experiments: {self.bytes_per_experiment:+.0f} bytes each, "
            f"{self.descriptors:+} descriptors, {self.threads:+} threads"
        )


@dataclass
class SoakResult:
    """The measurements of one soak."""

    needs: list[Needs] = field(default_factory=list)
    list_seconds: float = 0.0
    failed: int = 0

    def growth(self, *, warm_up: int) -> Growth:
        """Compares what was needed after the warm-up with what was needed at the end."""
        first = next((one for one in self.needs if one.experiments >= warm_up), self.needs[0])
        last = self.needs[-1]
        return Growth(
            experiments=last.experiments - first.experiments,
            memory=last.memory - first.memory,
            descriptors=last.descriptors - first.descriptors,
            threads=last.threads - first.threads,
        )

    def violations(self, *, warm_up: int) -> Iterator[str]:
        """Says what grew, or is slow."""
        growth = self.growth(warm_up=warm_up)
        if growth.bytes_per_experiment > MOST_BYTES_PER_EXPERIMENT:
            yield f"memory grows by {growth.bytes_per_experiment:.0f} bytes per experiment"
        if growth.descriptors > MOST_DESCRIPTORS:
            yield f"descriptors grew by {growth.descriptors}"
        if growth.threads > MOST_THREADS:
            yield f"threads grew by {growth.threads}"
        if self.list_seconds > MOST_LIST_SECONDS:
            yield f"the list of experiments took {self.list_seconds:.2f} s"
        if self.failed:
            yield f"{self.failed} experiments did not complete"


def needs_of(cluster: EmbeddedCluster, *, experiments: int) -> Needs:
    """Reads what the control plane of a cluster holds now."""
    process = psutil.Process(json.loads((cluster.home / "endpoint.json").read_text())["pid"])
    return Needs(
        experiments=experiments,
        memory=process.memory_full_info().uss,
        descriptors=process.num_fds(),
        threads=process.num_threads(),
    )


def soak(
    cluster: EmbeddedCluster, *, experiments: int, unmanaged: bool = False, every: int = _EVERY
) -> SoakResult:
    """Runs short experiments, a few at once, and measures now and then while none runs.

    Args:
        cluster: The cluster; it is up.
        experiments: How many.
        unmanaged: Whether they have no processes.
        every: Experiments between two measurements.
    """
    result = SoakResult()
    with cluster.client() as client:
        done = 0
        while done < experiments:
            count = min(every, experiments - done)
            result.failed += _unmanaged_batch(cluster, count) if unmanaged else _batch(client, count)
            done = min(done + every, experiments)
            _settle(cluster)
            result.needs.append(needs_of(cluster, experiments=done))
            print(result.needs[-1], flush=True)
    result.list_seconds = min(_timed_list(cluster) for _ in range(5))
    return result


def _batch(client: Client, count: int) -> int:
    failed = 0
    running: list[Experiment] = []
    for _ in range(count):
        if len(running) == _AT_ONCE:
            failed += _failed(running.pop(0))
        running.append(client.create_experiment(_CONFIG))
    return failed + sum(map(_failed, running))


def _unmanaged_batch(cluster: EmbeddedCluster, count: int) -> int:
    with channel_to(cluster) as person, open_channel(address_of(cluster)) as anyone:
        stub = trials_service_pb2_grpc.TrialsServiceStub(person)
        own = trials_service_pb2_grpc.TrialsServiceStub(anyone)
        _begin_and_end(stub, own, count)
    return 0


def _begin_and_end(stub: Any, own: Any, count: int) -> None:
    for _ in range(count):
        begun = stub.BeginRun(pb2.BeginRunRequest(external_run_id=str(uuid.uuid4()), name="soak"))
        token = (("authorization", f"Bearer {begun.token}"),)
        trial_id, run = begun.trial.trial_id, begun.run
        own.RenewRun(pb2.RenewRunRequest(trial_id=trial_id, run=run), metadata=token)
        ended = pb2.EndRunRequest(trial_id=trial_id, run=run, outcome=run_pb2.RUN_OUTCOME_COMPLETED)
        own.EndRun(ended, metadata=token)


def _failed(experiment: Experiment) -> bool:
    return experiment.wait(interval=0.1) is not ExperimentState.COMPLETED


def _settle(cluster: EmbeddedCluster) -> None:
    """Waits until the directories of all runs are gone: the last work for a run."""
    runs = cluster.home / "runs"
    wait_until(lambda: not any(runs.glob("*")), seconds=_SETTLE_SECONDS, what="runs to be cleaned up")


def _timed_list(cluster: EmbeddedCluster) -> float:
    began = time.perf_counter()
    cluster.run("det", "e", "list")
    return time.perf_counter() - began


@contextmanager
def _cluster() -> Iterator[EmbeddedCluster]:
    home = Path(tempfile.mkdtemp(prefix="soak-"))
    cluster = FaultCluster(home / "h", slots=_AT_ONCE)
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()
        shutil.rmtree(home, ignore_errors=True)


def main() -> int:
    """Runs one soak.

    Returns:
        0 when nothing grew.
    """
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS)
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="experiments before growth counts")
    parser.add_argument("--unmanaged", action="store_true", help="run no processes")
    options = parser.parse_args()
    began = time.monotonic()
    with _cluster() as cluster:
        result = soak(cluster, experiments=options.experiments, unmanaged=options.unmanaged)
    print(result.growth(warm_up=options.warm_up))
    print(
        f"the list of experiments took {result.list_seconds:.2f} s; the soak {time.monotonic() - began:.0f} s"
    )
    violations = list(result.violations(warm_up=options.warm_up))
    print("; ".join(violations) or "nothing grew")
    return 1 if violations else 0


if __name__ == "__main__":
    end_cleanly()
    sys.exit(main())
