"""Durable trial cycles over gRPC, beside Optuna's storage proxy and beside empty calls.

    python benchmarks/searcher/cycles.py [--trials N] [--peer-trials N] [--at-once N] [--json]

A cycle is one trial: it is created, reports to three rungs and gets a decision each time, and is closed. 16
trials are under way at once. Every answer waits until what it says is on the disk (SQLite, fsynced), on both
sides, and each server runs in a process of its own.

- ``ours``: actions followed on a stream; created, three completions, closed: five calls a trial
- ``empty``: as many calls that do nothing, through the same interceptors on the same channel
- ``optuna``: ``ask``, three times ``report`` and ``should_prune``, ``tell``, in 16 threads, on its proxy
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.services.stand_ins.platform_stub import PlatformStub

from benchmarks.standalone import Standalone, say, standalone
from resolute.api.searcher.v1 import action_pb2 as action_pb
from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute_serving.context import ServiceAccount
from resolute_serving.server.channels.peers import Peers

RUNGS = (4, 16, 64)
CALLS_A_CYCLE = 5
LEAST_TO_PEER = 30.0
LEAST_TO_EMPTY = 0.5


@dataclass
class Rates:
    """Trials a second, and empty calls a second."""

    trials: int
    peer_trials: int
    at_once: int
    ours: float = 0.0
    reports: float = 0.0
    empty_calls: float = 0.0
    optuna: float = 0.0
    optuna_reports: float = 0.0

    @property
    def to_empty(self) -> float:
        """Our cycles to cycles of empty calls."""
        return self.ours / (self.empty_calls / CALLS_A_CYCLE)

    def lines(self) -> list[str]:
        """What a person reads."""
        found = [
            f"{self.at_once} trials at once, durable",
            f"ours    {self.ours:9.1f} trials/s   {self.reports:.2f} reports a trial",
            f"empty   {self.empty_calls / CALLS_A_CYCLE:9.1f} cycles/s   {self.empty_calls:.0f} calls/s",
            f"ours / empty   {self.to_empty:.2f}",
        ]
        if self.optuna:
            found += [
                f"optuna  {self.optuna:9.1f} trials/s   {self.optuna_reports:.2f} reports a trial",
                f"ours / optuna  {self.ours / self.optuna:.1f}",
            ]
        return found


class Cycles:
    """Plays one search: a follower takes actions, workers play trials.

    Args:
        stub: The searcher.
        trials: Trials to play.
        at_once: How many at once.
    """

    def __init__(self, stub: Any, *, trials: int, at_once: int) -> None:
        self._stub = stub
        self._trials = trials
        self._at_once = at_once
        self._search_id = str(uuid.uuid4())
        self._created: asyncio.Queue[action_pb.Action.CreateTrial] = asyncio.Queue()
        self._numbers = count()
        self.closed = 0
        self.reports = 0

    async def play(self) -> float:
        """Plays to the end of the search and gives the seconds that it took."""
        method = spec_pb.AsyncHalvingMethod(
            num_rungs=len(RUNGS),
            max_length=RUNGS[-1],
            max_trials=self._trials,
            divisor=4.0,
            max_concurrent_trials=self._at_once,
            stop_once=True,
        )
        axis = spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(minval=0.0, maxval=1.0))
        spec = spec_pb.SearchSpec(
            metric="loss",
            smaller_is_better=True,
            seed=7,
            space=spec_pb.Space(hyperparameters={"x": axis}),
            async_halving=method,
        )
        began = time.perf_counter()
        await self._stub.CreateSearch(service_pb.CreateSearchRequest(search_id=self._search_id, spec=spec))
        workers = [asyncio.create_task(self._work()) for _ in range(self._at_once)]
        await self._follow()
        taken = time.perf_counter() - began
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return taken

    async def _follow(self) -> None:
        request = service_pb.FollowActionsRequest(search_id=self._search_id)
        async for response in self._stub.FollowActions(request):
            for action in response.actions:
                if action.HasField("create_trial"):
                    self._created.put_nowait(action.create_trial)

    async def _work(self) -> None:
        while True:
            trial = await self._created.get()
            # Later trials are better, so that each of them climbs all rungs.
            metric = 1.0 / (1 + next(self._numbers))
            created = event_pb.Event.TrialCreated(trial_key=trial.trial_key)
            await self._report(event_pb.Event(event_id=f"{trial.trial_id}/created", trial_created=created))
            for length in RUNGS:
                answer = await self._stub.CompleteOperation(
                    service_pb.CompleteOperationRequest(
                        trial_id=trial.trial_id, run=1, length=length, metric=metric
                    )
                )
                self.reports += 1
                if answer.operation.closed:
                    break
            closed = event_pb.Event.TrialClosed(trial_key=trial.trial_key)
            await self._report(event_pb.Event(event_id=f"{trial.trial_id}/closed", trial_closed=closed))
            self.closed += 1

    async def _report(self, event: event_pb.Event) -> None:
        await self._stub.ReportEvents(
            service_pb.ReportEventsRequest(search_id=self._search_id, events=[event])
        )


async def at_once(call: Callable[[], Awaitable[Any]], *, calls: int, workers: int) -> float:
    """Seconds that calls take, some at once."""

    async def work() -> None:
        for _ in range(calls // workers):
            await call()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers)))
    return time.perf_counter() - began


async def measure_ours(service: Standalone, rates: Rates, *, rounds: int) -> None:
    """Measures cycles and empty calls in turn; the best round of each counts."""
    token = service.signer.service(ServiceAccount("experiments"), ttl=3600)
    peers = Peers({"*": service.address}, token=lambda: token)
    channel = peers.channel("searcher")
    health: Any = health_pb2_grpc.HealthStub(channel)
    stub = PlatformStub(SearcherServiceStub, signer=service.signer, address=service.address)
    warm = Cycles(stub, trials=100, at_once=rates.at_once)
    await warm.play()
    for _ in range(rounds):
        cycles = Cycles(stub, trials=rates.trials, at_once=rates.at_once)
        taken = await cycles.play()
        rates.ours = max(rates.ours, cycles.closed / taken)
        rates.reports = cycles.reports / cycles.closed
        calls = rates.trials * CALLS_A_CYCLE
        taken = await at_once(
            lambda: health.Check(health_pb2.HealthCheckRequest()), calls=calls, workers=rates.at_once
        )
        rates.empty_calls = max(rates.empty_calls, calls / taken)
    await peers.close()


_PEER = """
import sys, optuna
optuna.logging.disable_default_handler()
from optuna.storages import RDBStorage, run_grpc_proxy_server
from concurrent.futures import ThreadPoolExecutor
storage = RDBStorage(sys.argv[1], engine_kwargs={"connect_args": {"timeout": 60}})
run_grpc_proxy_server(storage, host="127.0.0.1", port=int(sys.argv[2]), thread_pool=ThreadPoolExecutor(16))
"""


def measure_optuna(rates: Rates) -> None:
    """Measures Optuna's proxy in front of SQLite, with its default durability (fsync at each commit)."""
    import warnings

    warnings.simplefilter("ignore")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="resolute-bench-optuna-") as folder:
        command = [sys.executable, "-W", "ignore", "-c", _PEER, f"sqlite:///{folder}/peer.sqlite", str(port)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            storage = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=port)
            storage.wait_server_ready(timeout=60)
            study = optuna.create_study(
                storage=storage,
                sampler=optuna.samplers.RandomSampler(seed=7),
                pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=RUNGS[0], reduction_factor=4),
            )
            numbers = count()
            lock = threading.Lock()
            reports = [0]

            def work(_: int) -> None:
                trial = study.ask()
                trial.suggest_float("x", 0.0, 1.0)
                with lock:
                    metric = 1.0 / (1 + next(numbers))
                pruned = False
                for length in RUNGS:
                    trial.report(metric, length)
                    reports[0] += 1
                    if trial.should_prune():
                        pruned = True
                        break
                study.tell(trial, None if pruned else metric, state=_state(pruned=pruned))

            began = time.perf_counter()
            with ThreadPoolExecutor(rates.at_once) as pool:
                for _ in pool.map(work, range(rates.peer_trials)):
                    pass
            rates.optuna = rates.peer_trials / (time.perf_counter() - began)
            rates.optuna_reports = reports[0] / rates.peer_trials
        finally:
            process.kill()
            process.wait()


def _state(*, pruned: bool) -> Any:
    from optuna.trial import TrialState

    return TrialState.PRUNED if pruned else TrialState.COMPLETE


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    """Prints what was measured; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--peer-trials", type=int, default=100, help="0 leaves the peer out")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rates = Rates(trials=options.trials, peer_trials=options.peer_trials, at_once=options.at_once)
    with standalone("searcher") as service:
        asyncio.run(measure_ours(service, rates, rounds=options.rounds))
    if options.peer_trials:
        measure_optuna(rates)
    if options.json:
        say(json.dumps(asdict(rates)))
    else:
        for line in rates.lines():
            say(line)
    slow = bool(rates.optuna) and rates.ours < LEAST_TO_PEER * rates.optuna
    return 1 if slow or rates.to_empty < LEAST_TO_EMPTY else 0


if __name__ == "__main__":
    sys.exit(main())
