"""How soon a trial sees that it is to stop, and what it costs to ask.

    python benchmarks/preemption/latency.py [--watchers N] [--signals N] [--json]

- ``signal``: from the moment a person's pause is sent until ``should_preempt()`` is True in the trial's
  process: through the experiments service and its disk, the preemption service, the supervisor's watch, and
  the memory that supervisor and trial share. Meanwhile other supervisors watch their own allocations.
- ``ask``: one ``should_preempt()`` of a lone rank while nothing has changed

Each figure stands beside its limit; the program fails if one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
import timeit
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import grpc
from sqlalchemy.engine import Connection

from benchmarks.embedded import Embedded, embedded
from benchmarks.standalone import say
from resolute.api.experiments.v1 import experiment_pb2, experiments_service_pb2, experiments_service_pb2_grpc
from resolute.api.preemption.v1 import preemption_service_pb2, preemption_service_pb2_grpc
from resolute.client.connection.home import Home
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.core.distributed import DummyDistributedContext
from resolute.core.preempt import PreemptContext
from resolute_experiments.states import ExperimentState, RunOutcome, TrialState
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.transitions.signals import allocation_id
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.control_plane.signal_state import SignalState
from resolute_launch.control_plane.signal_watcher import SignalWatcher
from resolute_serving.database.engine import create_engine

_POLL_SECONDS = 0.0002
"""Between two questions of the trial: a fast training step."""
_CHANNELS = 20
_ASKS = 200_000
_SIGNAL_LIMIT_MS = 50.0
_ASK_LIMIT_US = 2.0


@dataclass(frozen=True)
class Figure:
    """One measurement."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether it is within its limit."""
        return self.value <= self.limit


def insert_runs(home: Path, count: int) -> dict[int, str]:
    """Writes experiments with a running trial each, which no machine knows; returns allocations by number."""
    engine = create_engine(
        f"sqlite:///{home / 'databases' / 'experiments.sqlite'}", name="bench", writes=True
    )
    try:
        with engine.begin() as connection:
            return dict(_insert_one(connection) for _ in range(count))
    finally:
        engine.dispose()


def _insert_one(connection: Connection) -> tuple[int, str]:
    experiment_id, trial_id = str(uuid.uuid4()), str(uuid.uuid4())
    experiment = experiments.insert(
        connection,
        {
            **dict.fromkeys(("name", "description", "failure", "definition_sha256"), ""),
            "id": experiment_id,
            "request_id": experiment_id,
            "labels": [],
            "state": ExperimentState.ACTIVE.value,
            "archived": False,
            "owner": "bench",
            "workspace": "Uncategorized",
            "project": "Uncategorized",
            "config": {
                "resources": {"slots_per_trial": 0},
                "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True},
            },
            "progress": 0.0,
            "revision": 1,
            "created_at": time.time(),
            "definition_size": 0,
            "search_created": True,
            "action_cursor": 0,
        },
        b"",
    )
    trials.insert(
        connection,
        {
            **dict.fromkeys(("status", "explanation", "source_checkpoint_id", "latest_checkpoint_id"), ""),
            **dict.fromkeys(("seed", "restarts", "steps_completed", "settled_length"), 0),
            "id": trial_id,
            "experiment_id": experiment_id,
            "request_id": trial_id,
            "state": TrialState.RUNNING.value,
            "hparams": {},
            "run": 1,
            "metadata": {},
            "closed": False,
            "kill_requested": False,
            "queued_at": 0.0,
            "created_at": 0.0,
        },
    )
    allocation = allocation_id(trial_id, 1)
    runs.insert(
        connection,
        {
            "trial_id": trial_id,
            "run": 1,
            "allocation_id": allocation,
            "experiment_id": experiment_id,
            # Of no engine that is here: none shall try to start them.
            "resource_pool": "elsewhere",
            "outcome": RunOutcome.UNSPECIFIED.value,
            "failure": "",
            "slot_ids": [],
            "started_at": time.time(),
            "trace_id": "",
            "signal_revision": 0,
            "preempt": False,
            "kill": False,
            "signal_reason": "",
            "acknowledged": False,
        },
        placements=[()],
    )
    return experiment.number, allocation


def watch_many(address: str, token: str, count: int, ready: Pipe) -> None:
    """A process with the watches of many other supervisors; ends with the pipe."""

    async def one(stub: Any) -> None:
        subscription = preemption_service_pb2.SignalSubscription(
            key="other", allocation_id=f"other-{uuid.uuid4()}"
        )
        request = preemption_service_pb2.WatchSignalsRequest(subscriptions=[subscription])
        watch = stub.WatchSignals(request, metadata=(("authorization", f"Bearer {token}"),))
        await watch.read()
        ready.send(1)
        async for _ in watch:
            continue

    async def body() -> None:
        # Of its own each: else gRPC makes one connection of all.
        options = [[("grpc.use_local_subchannel_pool", 1)] for _ in range(_CHANNELS)]
        channels = [grpc.aio.insecure_channel(address, options=option) for option in options]
        stubs = [preemption_service_pb2_grpc.PreemptionServiceStub(channel) for channel in channels]
        tasks = [asyncio.create_task(one(stubs[i % _CHANNELS])) for i in range(count)]
        await asyncio.to_thread(_until_closed, ready)
        for task in tasks:
            task.cancel()
        for channel in channels:
            await channel.close()

    asyncio.run(body())


def _until_closed(pipe: Pipe) -> None:
    try:
        pipe.recv()
    except EOFError:
        return


def trial(pipe: Pipe) -> None:
    """The trial's process: asks at every step, and tells when it first heard of each signal."""
    while True:
        try:
            path = pipe.recv()
        except EOFError:
            return
        preempt = PreemptContext(DummyDistributedContext(), open_signal=partial(Flags, path)).start()
        pipe.send("asking")
        while not preempt.should_preempt():
            time.sleep(_POLL_SECONDS)
        pipe.send(time.monotonic())


@contextmanager
def process(target: Any, *arguments: Any) -> Iterator[Pipe]:
    """Runs a function in a process of its own, which ends when its pipe is closed."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    child = context.Process(target=target, args=(*arguments, theirs))
    child.start()
    theirs.close()
    try:
        yield mine
    finally:
        mine.close()
        child.join(30)


def signal_times(running: Embedded, *, watchers: int, signals: int) -> list[float]:
    """Seconds from each pause to the moment at which the trial's process knew of it."""
    endpoint = Home(running.home).read_endpoint()
    assert endpoint is not None
    token = endpoint.token_path.read_text()
    allocations = insert_runs(running.home, signals)
    lead = experiments_service_pb2_grpc.ExperimentsServiceStub(running.channel)
    taken = []
    with (
        process(watch_many, endpoint.address, token, watchers) as others,
        process(trial) as asking,
        tempfile.TemporaryDirectory() as folder,
    ):
        for _ in range(watchers):
            others.recv()
        for number, allocation in allocations.items():
            flags = Path(folder) / allocation
            signal_state = SignalState(Flags.create(flags), clock=SYSTEM_CLOCK, preemption_timeout=60.0)
            order = LaunchOrder(allocation_id=allocation, master=endpoint.address, token="")
            watch = SignalWatcher(ControlPlane(running.channel, order), signal_state, notify=lambda: None)
            watch.start()
            asking.send(flags)
            asking.recv()
            time.sleep(0.05)  # the watch is open by then, as that of a trial that runs
            key = experiment_pb2.ExperimentKey(number=number)
            sent = time.monotonic()
            lead.PauseExperiment(experiments_service_pb2.PauseExperimentRequest(experiment=key))
            taken.append(asking.recv() - sent)
            watch.stop()
    return sorted(taken)


def ask_us() -> float:
    """Microseconds of one question while nothing has changed: the best of several rounds."""
    with tempfile.TemporaryDirectory() as folder:
        flags = Flags.create(Path(folder) / "flags")
        preempt = PreemptContext(DummyDistributedContext(), open_signal=lambda: flags).start()
        with closing(preempt):
            return min(timeit.repeat(preempt.should_preempt, number=_ASKS, repeat=5)) / _ASKS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    options = parser.parse_args()
    with embedded() as running:
        taken = signal_times(running, watchers=options.watchers, signals=options.signals)
    figures = [
        Figure("signal p99", 1000 * taken[int(len(taken) * 0.99)], _SIGNAL_LIMIT_MS, "ms"),
        Figure("ask", ask_us(), _ASK_LIMIT_US, "us"),
    ]
    if options.json:
        say(json.dumps([asdict(figure) for figure in figures]))
    else:
        median = 1000 * taken[len(taken) // 2]
        say(f"{len(taken)} signals beside {options.watchers} watchers, median {median:.1f} ms")
        for figure in figures:
            share = figure.value / figure.limit
            say(f"{figure.name:<11} {figure.value:7.2f} {figure.unit}   {share:5.2f} of the limit")
    if not all(figure.met for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
