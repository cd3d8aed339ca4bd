"""What a run costs the control plane: hundreds of them at once, on an engine that starts no processes.

    python benchmarks/scale/simulated_runs.py [--runs 100 300 1000] [--minutes 1] [--on embedded|apart]

A whole cluster, ``resolute up`` on SQLite or separate services on PostgreSQL behind a gateway, has a pool
of an engine of its own (`_simulated_engine.py`). As supervisors do, each run renews its lease every third
of its time, and ten times a minute it reports a batch of ten metrics. Measured are the processor time of
the control plane for a run and minute, which must not grow with their number, and the share of a core that
all take together, which says where one process ends: at a whole one. Separate services are counted
together, without PostgreSQL.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import grpc

from benchmarks.apart import apart
from benchmarks.embedded import embedded
from benchmarks.standalone import say
from resolute.api.experiments.v1 import allocations_service_pb2, experiments_service_pb2
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.contracts.spool.format import Report
from resolute.spool.delivery.requests import RunIdentity, reports_request
from resolute.spool.reader import Chunk

MOST_MS = 60.0
"""Of processor for a run and minute."""
MOST_GROWTH = 1.3
"""Of that cost from the fewest runs to the most."""
_SECONDS = 6.0
"""Between two reports of a run."""
_LEASES = 2
"""A lease is renewed with every second report: at least every third of its time."""
_START_SECONDS = 600.0
_CALLERS = 8
_POOLS = """
default_resource_pool: simulated
resource_pools: [{pool_name: simulated, engine: simulated, slots: SLOTS}]
engines: {simulated: {type: bench-simulated}}
"""
_CONFIG = """
name: simulated
entrypoint: "true"
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
searcher: {name: random, metric: loss, max_length: 1000000, max_trials: RUNS, max_concurrent_trials: RUNS}
"""


@dataclass
class Run:
    """A run that calls as its supervisor would."""

    allocation_id: str
    identity: RunIdentity
    token: str
    source: str = field(default_factory=lambda: str(uuid.uuid4()))
    sequence: int = 0
    steps: int = 0

    @classmethod
    def read(cls, file: Path) -> Run:
        """Reads what the engine wrote down."""
        token = file.read_text()
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        identity = RunIdentity(trial_id=claims["sub"], run=claims["run"], experiment_id=claims["experiment"])
        return cls(file.name, identity, token)

    def call(self, channel: grpc.Channel) -> None:
        """Reports once, and renews the lease in its turn."""
        metadata = (("authorization", f"Bearer {self.token}"),)
        if self.steps % _LEASES == 0:
            renewal = allocations_service_pb2.RenewLeaseRequest(allocation_id=self.allocation_id, pid=1)
            AllocationsServiceStub(channel).RenewLease(renewal, metadata=metadata)
        self.steps += 1
        values = {f"metric_{number}": self.steps * 0.5 for number in range(10)}
        report = Report("training", self.steps, time.time(), values)
        chunk = Chunk(first_sequence=self.sequence, content=[report], ends=[1], end=1)
        request = reports_request(self.identity, source=self.source, chunk=chunk)
        MetricsServiceStub(channel).IngestReports(request, metadata=metadata)
        self.sequence += 1


@dataclass(frozen=True)
class Cluster:
    """A cluster whose pool has the engine."""

    operator: grpc.Channel
    open: Callable[[], grpc.Channel]
    """Opens a channel whose calls bring their own token."""
    processor_seconds: Callable[[], float]


def started(cluster: Cluster, folder: Path, count: int) -> list[Run]:
    """Submits a search, and waits until all of its trials run."""
    spec = experiments_service_pb2.ExperimentSpec(config_yaml=_CONFIG.replace("RUNS", str(count)))
    request = experiments_service_pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
    ExperimentsServiceStub(cluster.operator).CreateExperiment(request)
    deadline = time.monotonic() + _START_SECONDS
    while len(files := [path for path in folder.iterdir() if not path.name.startswith(".")]) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(files)} of {count} runs have begun")
        time.sleep(0.2)
    return [Run.read(path) for path in files]


def cycles(runs: list[Run], channels: list[grpc.Channel], minutes: float) -> Iterator[float]:
    """Lets all runs call in turn for some minutes; yields how late each cycle was."""
    ends = time.monotonic() + minutes * 60
    with ThreadPoolExecutor(_CALLERS) as pool:
        while (begun := time.monotonic()) < ends:
            calls = [
                pool.submit(run.call, channels[number % len(channels)]) for number, run in enumerate(runs)
            ]
            for call in calls:
                call.result()
            left = _SECONDS - (time.monotonic() - begun)
            yield max(-left, 0.0)
            time.sleep(max(left, 0.0))


def measured(count: int, minutes: float, *, on: str) -> float:
    """Milliseconds of processor for a run and minute, with so many at once; prints a line."""
    with tempfile.TemporaryDirectory(prefix="resolute-bench-runs-") as text, ExitStack() as stack:
        folder = Path(text)
        cluster = stack.enter_context(_cluster(folder, on=on, slots=count))
        begun = time.monotonic()
        runs = started(cluster, folder / "runs", count)
        took = time.monotonic() - begun
        channels = [stack.enter_context(cluster.open()) for _ in range(_CALLERS)]
        list(cycles(runs, channels, 0.1))
        before, begun = cluster.processor_seconds(), time.monotonic()
        late = max(cycles(runs, channels, minutes))
        used, wall = cluster.processor_seconds() - before, time.monotonic() - begun
    cost = used / count / (wall / 60) * 1000
    say(
        f"{count:5} runs, begun in {took:.0f} s: {cost:.1f} ms of processor a run and minute   "
        f"(limit {MOST_MS:g}), {100 * used / wall:.1f} % of a core; latest cycle {late:.1f} s late"
    )
    return cost


@contextmanager
def _cluster(folder: Path, *, on: str, slots: int) -> Iterator[Cluster]:
    variables = _install(folder, slots)
    if on == "apart":
        with apart(folder / "apart", variables=variables) as services, services.operator() as operator:
            yield Cluster(operator, services.bare_channel, services.processor_seconds)
        return
    os.environ |= variables
    with embedded() as cluster:
        yield Cluster(
            cluster.channel, lambda: grpc.insecure_channel(cluster.address), cluster.processor_seconds
        )


def _install(folder: Path, slots: int) -> dict[str, str]:
    """Makes the engine known to the cluster that starts next, without installing a distribution.

    Returns:
        The variables by which the experiments service has its pool.
    """
    (folder / "runs").mkdir()
    (folder / "apart").mkdir()
    info = folder / "bench_simulated-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-simulated\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[resolute.engines]\nbench-simulated = _simulated_engine:create_engine\n"
    )
    (folder / "pools.yaml").write_text(_POOLS.replace("SLOTS", str(slots)))
    here = str(Path(__file__).resolve().parent)
    paths = (str(folder), here, os.environ.get("PYTHONPATH"))
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "RESOLUTE_BENCH_RUNS": str(folder / "runs"),
        "RESOLUTE_RESOURCE_POOLS": str(folder / "pools.yaml"),
    }


def main() -> int:
    """Prints what was measured; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--on", choices=("embedded", "apart"), default="embedded")
    options = parser.parse_args()
    costs = [measured(count, options.minutes, on=options.on) for count in options.runs]
    say(f"most / fewest {max(costs) / costs[0]:.2f} x   (limit {MOST_GROWTH:g} x)")
    return 0 if max(costs) <= min(MOST_MS, MOST_GROWTH * costs[0]) else 1


if __name__ == "__main__":
    sys.exit(main())
