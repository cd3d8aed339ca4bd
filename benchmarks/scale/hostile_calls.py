"""How long leases take to be renewed, and the services to stop, while calls ask for all that they may.

    python benchmarks/scale/hostile_calls.py [--renewals N]

Against a whole cluster in a process of its own, all at the same time:

- callers who have configs of 1 MiB, the most that one may have, and of 4 MiB checked, one after the other
- callers who simulate a search that would take minutes

Meanwhile a supervisor renews its lease every 50 ms. The allocation is none that exists: its call passes
authentication, the bounds of requests and the read of the database, as that of a run does. Each figure stands
beside its limit; the program fails if one is missed.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import os

import grpc
import psutil

from benchmarks.embedded import Embedded, embedded
from benchmarks.standalone import say
from resolute.api.experiments.v1 import allocations_service_pb2 as allocations
from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.searcher.v1 import search_spec_pb2 as specs
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.client.connection.home import Home
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import NotFoundError, ResoluteError
from resolute.rpc.channel import open_channel
from resolute_embedded.state_directory import StateDirectory
from resolute_serving.auth.tokens import TokenSigner, load_or_create_key
from resolute_serving.context import TrialRun

LIMIT_MS = 250.0
LIMIT_STOP_SECONDS = 15.0
RUN = TrialRun(trial_id="none", run=1, experiment_id="none", allocation_id="none", workspace="none")
CONFIGS = tuple(
    "hyperparameters:\n" + "".join(f"  h{number}: {number}\n" for number in range(count))
    for count in (55_000, 220_000)
)
"""As large as a config may be, and as large as a message may be."""


def check_config(channel: grpc.Channel) -> None:
    """Has large configs checked."""
    for config in CONFIGS:
        request = experiments.ValidateConfigRequest(config_yaml=config)
        ExperimentsServiceStub(channel).ValidateConfig(request, timeout=120)


def simulate(channel: grpc.Channel) -> None:
    """Simulates for as long as the service allows."""
    method = specs.AdaptiveAshaMethod(
        max_length=2**40,
        max_trials=50_000,
        divisor=4.0,
        max_rungs=5,
        max_concurrent_trials=16,
        mode=specs.ADAPTIVE_MODE_STANDARD,
    )
    curve = searcher.SimulateSearchRequest.Curve(lengths=range(20_000), metrics=[0.5] * 20_000)
    request = searcher.SimulateSearchRequest(
        spec=specs.SearchSpec(metric="loss", smaller_is_better=True, adaptive_asha=method), curves=[curve]
    )
    SearcherServiceStub(channel).SimulateSearch(request, timeout=120)


def repeat(call: Callable[[grpc.Channel], None], channel: grpc.Channel, stopped: threading.Event) -> None:
    """Calls again and again; refusals are what the service owes such callers."""
    while not stopped.is_set():
        try:
            call(channel)
        except ResoluteError:
            stopped.wait(0.05)


def renewals(channel: grpc.Channel, count: int) -> list[float]:
    """Milliseconds that each renewal takes."""
    stub, taken = AllocationsServiceStub(channel), []
    for _ in range(count):
        began = time.perf_counter()
        try:
            stub.RenewLease(allocations.RenewLeaseRequest(allocation_id=RUN.allocation_id), timeout=60)
        except NotFoundError:
            taken.append((time.perf_counter() - began) * 1000)
        time.sleep(0.05)
    return taken


def supervisor_channel(cluster: Embedded) -> grpc.Channel:
    """A channel with the token of a run."""
    home = Home(cluster.home)
    state, endpoint = StateDirectory(home), home.read_endpoint()
    assert endpoint is not None
    key = load_or_create_key(state.signing_key)
    signer = TokenSigner(key, cluster_id=state.cluster_id(), clock=SYSTEM_CLOCK)
    token = signer.trial(RUN, ttl=3600)
    return open_channel(endpoint.address, token=lambda: token)


def measure(count: int) -> tuple[list[float], list[float], float]:
    """Returns the renewals alone, those among hostile calls, and the seconds that stopping takes."""
    stopped = threading.Event()
    with embedded() as cluster, supervisor_channel(cluster) as channel:
        alone = renewals(channel, count)
        threads = [
            threading.Thread(target=repeat, args=(call, cluster.channel, stopped), name=call.__name__)
            for call in (check_config, simulate) * 3
        ]
        for thread in threads:
            thread.start()
        time.sleep(2.0)
        among = renewals(channel, count)
        process, began = psutil.Process(cluster.pid), time.perf_counter()
        os.kill(cluster.pid, signal.SIGTERM)
        process.wait(60)
        taken = time.perf_counter() - began
        stopped.set()
        for thread in threads:
            thread.join()
    return alone, among, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--renewals", type=int, default=300)
    alone, among, stopping = measure(parser.parse_args().renewals)
    slow = statistics.quantiles(among, n=100)[-1]
    say(f"renewals alone, median           {statistics.median(alone):7.1f} ms")
    say(f"renewals among hostile, median   {statistics.median(among):7.1f} ms")
    say(f"renewals among hostile, p99      {slow:7.1f} ms   (limit {LIMIT_MS:.0f})")
    say(f"stopping among hostile           {stopping:7.1f} s    (limit {LIMIT_STOP_SECONDS:.0f})")
    if slow > LIMIT_MS or stopping > LIMIT_STOP_SECONDS:
        sys.exit("a limit was missed")


if __name__ == "__main__":
    main()
