"""How long leases take to be renewed while many callers ask for all that they may, and what that costs.

    python benchmarks/scale/siege.py [--seconds N] [--on embedded|embedded-postgresql|apart]

``make siege`` runs it on each arrangement: ``resolute up`` on SQLite and on PostgreSQL, and services apart on
PostgreSQL behind a gateway. All at the same time, by four users in a process of its own:

- 600 followers of a log of 32 MB, who read nothing
- 2,000 watches of an experiment
- 200 submissions of experiments
- 12 hostile bodies: configs of 4 MiB, searches whose simulation would take minutes, and 12 MB of JSON

Meanwhile a supervisor renews its lease every 50 ms. The allocation is none that exists: its call passes
authentication, the bounds of requests and the read of the database, as that of a run does. After each renewal
comes an empty call to a server that does nothing else: what that takes is the machine's own delay, which the
besiegers cause too. Memory, descriptors and bytes of logs are those of all processes of the control plane.
The trial that runs ends when it is asked to: what trials get to checkpoint in is not what stopping costs.
Each figure stands beside its limit; the program fails if one is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import grpc
import psutil
from faults.harness.fault_cluster import FaultCluster
from faults.harness.service_queries import channel_to
from support.databases.postgres import crashable_postgres
from support.processes.clean_ending import end_cleanly
from support.services.logs import columns, line

from benchmarks.apart import apart
from benchmarks.scale._bare_server import METHOD as BARE_METHOD
from benchmarks.standalone import say
from resolute.api.experiments.v1 import access_service_pb2 as access
from resolute.api.experiments.v1 import allocations_service_pb2 as allocations
from resolute.api.experiments.v1 import trials_service_pb2 as trials
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute.api.experiments.v1.user_pb2 import USER_ROLE_EDITOR
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.contracts.calls.tls import ClientTls
from resolute.errors import NotFoundError, ResoluteError
from resolute.rpc.channel import open_channel

USERS = 4
LOG_BATCHES, LINES_OF_BATCH, LINE_BYTES = 32, 1_000, 1_000
LIMIT_MS = 250.0
LIMIT_GROWTH_MIB = 512.0
LIMIT_DESCRIPTORS = 400
LIMIT_LOG_MIB = 1.0
LIMIT_STOP_SECONDS = 30.0
_EVERY = 0.05
_HEARTBEAT = 5.0
"""Seconds between heartbeats of the run whose experiment is watched: a watch ends with its experiment."""
_FIRST = 10.0
"""Seconds of the siege before renewals count: until all have come."""


@dataclass(frozen=True, kw_only=True)
class Besieged:
    """A cluster that is up."""

    address: str
    operator: Callable[[], grpc.Channel]
    """Opens a channel of an administrator."""
    runs_address: str
    """Where runs reach it."""
    processes: Sequence[psutil.Process]
    logs: Sequence[Path]
    stop: Callable[[], None]
    url: str = ""
    authority: Path | None = None
    """Who signed its certificate; None for a plain port."""

    def run_channel(self, token: str) -> grpc.Channel:
        """A channel of a run."""
        tls = ClientTls(authority=self.authority.read_bytes()) if self.authority else None
        return open_channel(self.runs_address, token=lambda: token, tls=tls)

    def needs(self) -> tuple[float, int, float]:
        """MiB of memory, descriptors, and MiB of logs."""
        memory = sum(process.memory_full_info().uss for process in self._alive())
        descriptors = sum(process.num_fds() for process in self._alive())
        return memory / 2**20, descriptors, sum(log.stat().st_size for log in self.logs) / 2**20

    def _alive(self) -> Iterator[psutil.Process]:
        return (process for process in self.processes if process.is_running())


@dataclass
class Figures:
    """What was measured."""

    alone: list[float] = field(default_factory=list)
    among: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    """Renewals that failed, by what they failed with."""
    memory: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)
    stopping: float = 0.0

    def note(self, needs: tuple[float, int, float]) -> None:
        """Adds what the cluster needs now."""
        for values, value in zip((self.memory, self.descriptors, self.logs), needs, strict=True):
            values.append(value)  # type: ignore[attr-defined] # numbers of either kind

    def missed(self) -> bool:
        """Says each figure beside its limit; whether one was missed."""
        rows = [
            ("renewals in the siege, p99", _p99(self.among), "ms", LIMIT_MS),
            ("renewals that failed", float(self.failed.total()), "", 0.0),
            ("memory gained", max(self.memory) - self.memory[0], "MiB", LIMIT_GROWTH_MIB),
            ("descriptors gained", float(max(self.descriptors) - self.descriptors[0]), "", LIMIT_DESCRIPTORS),
            ("logs written", self.logs[-1] - self.logs[0], "MiB", LIMIT_LOG_MIB),
            ("stopping in the siege", self.stopping, "s", LIMIT_STOP_SECONDS),
        ]
        say(f"{'renewals alone, median':32}{statistics.median(self.alone):9.1f} ms")
        say(f"{'renewals in the siege, median':32}{statistics.median(self.among):9.1f} ms")
        say(f"{'renewals in the siege, longest':32}{max(self.among):9.1f} ms")
        say(f"{'an empty server there, median':32}{statistics.median(self.bare):9.1f} ms")
        say(f"{'an empty server there, p99':32}{_p99(self.bare):9.1f} ms")
        say(f"{'renewals that were measured':32}{len(self.among):7}")
        for cause, count in self.failed.most_common(5):
            say(f"{count} renewals failed: {cause}")
        for name, value, unit, limit in rows:
            say(f"{name:32}{value:9.1f} {unit:4} (limit {limit:g})")
        return any(value > limit for _, value, _, limit in rows)


def _p99(values: Sequence[float]) -> float:
    """What one of a hundred exceeds: the longest of fewer than that."""
    return sorted(values)[-1 - len(values) // 100]


@contextmanager
def bare() -> Iterator[Callable[[], float]]:
    """A server that does nothing but answer; calls it, and returns how many milliseconds that took."""
    command = [sys.executable, str(Path(__file__).with_name("_bare_server.py"))]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(server.stdout.readline())}") as channel:
            empty: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(BARE_METHOD)

            def call() -> float:
                began = time.perf_counter()
                empty(b"", wait_for_ready=True, timeout=60)
                return (time.perf_counter() - began) * 1000

            call()
            yield call
    finally:
        server.kill()
        server.wait()


@contextmanager
def embedded(folder: Path, *, postgresql: bool) -> Iterator[Besieged]:
    """``resolute up`` with one slot, on SQLite or PostgreSQL."""
    with ExitStack() as stack:
        cluster = FaultCluster(folder / "h", slots=1, environment={"RESOLUTE_NO_HTTP": ""})
        if postgresql:
            cluster.postgres = stack.enter_context(crashable_postgres())
            cluster.database_url = cluster.postgres.new_database()
        running = [cluster]

        def stop() -> None:
            if running:
                cluster.down()
                running.clear()

        stack.callback(stop)
        cluster.up()
        endpoint = json.loads((cluster.home / "endpoint.json").read_text())
        yield Besieged(
            address=endpoint["address"],
            url=endpoint.get("http_url", ""),
            runs_address=f"127.0.0.1:{(cluster.home / 'runs-port').read_text()}",
            operator=lambda: channel_to(cluster),  # type: ignore[arg-type, return-value]
            processes=[psutil.Process(endpoint["pid"])],
            logs=[cluster.home / "up.log"],
            stop=stop,
        )


@contextmanager
def services_apart(folder: Path) -> Iterator[Besieged]:
    """Each service as the process of a unit of systemd, on PostgreSQL, behind the gateway."""
    with apart(folder) as services:
        units = services.units.values()

        def stop() -> None:
            for unit in units:
                unit.stop()

        yield Besieged(
            address=services.address,
            runs_address=services.runs_address,
            authority=services.authority,
            operator=services.operator,
            processes=services.processes,
            logs=[unit.log for unit in units],
            stop=stop,
        )


def users(channel: grpc.Channel) -> list[str]:
    """Makes users; returns a token of each."""
    stub, tokens = AccessServiceStub(channel), []
    for number in range(USERS):
        user = stub.CreateUser(
            access.CreateUserRequest(
                request_id=str(uuid.uuid4()), name=f"user{number}", role=USER_ROLE_EDITOR
            )
        ).user
        wanted = access.CreateTokenRequest(request_id=str(uuid.uuid4()), user_id=user.user_id)
        wanted.ttl.FromSeconds(86_400)
        tokens.append(stub.CreateToken(wanted).bearer_token)
    return tokens


def long_log(besieged: Besieged, channel: grpc.Channel) -> trials.BeginRunResponse:
    """Begins a run with a long log."""
    begun = TrialsServiceStub(channel).BeginRun(
        trials.BeginRunRequest(external_run_id=str(uuid.uuid4()), name="siege")
    )
    with besieged.run_channel(begun.token) as own:
        for number in range(LOG_BATCHES):
            batch = logs.IngestLinesRequest(
                trial_id=begun.trial.trial_id,
                run=begun.run,
                source="logs",
                experiment_id=begun.trial.experiment_id,
                first_sequence=number * LINES_OF_BATCH,
                lines=columns(line("x" * LINE_BYTES) for _ in range(LINES_OF_BATCH)),
            )
            LogsServiceStub(own).IngestLines(batch)
    return begun


def renew(channel: grpc.Channel, begun: trials.BeginRunResponse, figures: Figures, into: list[float]) -> None:
    """Renews a lease once."""
    lease = f"{begun.trial.trial_id}.{begun.run}"
    began = time.perf_counter()
    try:
        AllocationsServiceStub(channel).RenewLease(
            allocations.RenewLeaseRequest(allocation_id=lease), timeout=60
        )
    except NotFoundError:
        into.append((time.perf_counter() - began) * 1000)
    except ResoluteError as error:
        figures.failed[f"{type(error).__name__}: {error}"] += 1
    time.sleep(_EVERY)


def measure(besieged: Besieged, *, seconds: float) -> Figures:
    """Besieges a cluster, and stops it before the siege ends."""
    figures = Figures()
    with besieged.operator() as operator:
        tokens, begun = users(operator), long_log(besieged, operator)
    program = str(Path(__file__).with_name("_besiegers.py"))
    authority = str(besieged.authority or "")
    command = [sys.executable, program, besieged.address, besieged.url, begun.trial.trial_id, authority]
    with besieged.run_channel(begun.token) as supervisor, bare() as empty:
        for _ in range(100):
            renew(supervisor, begun, figures, figures.alone)
        figures.note(besieged.needs())
        attack = subprocess.Popen(
            [*command, str(seconds + 120)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert attack.stdin is not None
            attack.stdin.write("\n".join(tokens))
            attack.stdin.close()
            ends = time.monotonic() + seconds
            counts = time.monotonic() + min(_FIRST, seconds / 3)
            heartbeat = time.monotonic()
            while (now := time.monotonic()) < ends:
                renew(supervisor, begun, figures, figures.among if now > counts else [])
                if now > heartbeat:
                    heartbeat = now + _HEARTBEAT
                    TrialsServiceStub(supervisor).RenewRun(
                        trials.RenewRunRequest(trial_id=begun.trial.trial_id, run=begun.run), timeout=60
                    )
                figures.bare.append(empty())
                if len(figures.among) % 100 == 1:
                    figures.note(besieged.needs())
            figures.note(besieged.needs())
            began = time.perf_counter()
            besieged.stop()
            figures.stopping = time.perf_counter() - began
        finally:
            attack.terminate()
            assert attack.stdout is not None
            say(attack.stdout.read().strip())
            attack.wait()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--on", choices=("embedded", "embedded-postgresql", "apart"), default="embedded")
    options = parser.parse_args()
    end_cleanly()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="resolute-siege-")))
        besieged = stack.enter_context(
            services_apart(folder)
            if options.on == "apart"
            else embedded(folder, postgresql=options.on == "embedded-postgresql")
        )
        say(f"{options.on}, {options.seconds:.0f} s")
        figures = measure(besieged, seconds=options.seconds)
    if figures.missed():
        sys.exit("a limit was missed")


if __name__ == "__main__":
    main()
