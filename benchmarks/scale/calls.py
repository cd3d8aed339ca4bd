"""What a call costs the control plane, beside an empty call to a bare asyncio server of gRPC.

    python benchmarks/scale/calls.py [--calls N] [--rounds N]

Both are measured in turns, a few hundred calls one after the other. Costs are processor time of the server's
process, all its threads; the program fails if a ratio misses its limit.

- ``refused``: a call without a token
- ``read``: GetCurrentUser; ``empty``: a list of no experiments
- ``list``: 100 experiments in one page
- ``write``: CreateWorkspace, durable
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import grpc

from benchmarks.embedded import Embedded, embedded, processor_seconds_of
from benchmarks.scale._bare_server import METHOD
from benchmarks.standalone import say
from resolute.api.experiments.v1 import access_service_pb2 as access
from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.api.experiments.v1 import workspaces_service_pb2 as workspaces
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.experiments.v1.workspaces_service_pb2_grpc import WorkspacesServiceStub
from resolute.errors import UnauthenticatedError
from resolute.rpc.channel import open_channel

_LISTED = 100
_CONFIG = """
name: bench
entrypoint: sleep 3600
searcher: {name: single, metric: loss, max_length: 1}
"""


@dataclass(frozen=True)
class Measured:
    """One kind of call."""

    name: str
    call: Callable[[], object]
    pid: int
    limit: float
    """Most times the cost of an empty call."""


def calls(running: Embedded, anonymous: grpc.Channel) -> Iterator[Measured]:
    """The calls to the control plane, in order; the list is filled between them."""
    users, refused = AccessServiceStub(running.channel), AccessServiceStub(anonymous)
    lead, places = ExperimentsServiceStub(running.channel), WorkspacesServiceStub(running.channel)

    def refuse() -> None:
        try:
            refused.GetCurrentUser(access.GetCurrentUserRequest())
        except UnauthenticatedError:
            return
        raise AssertionError("a call without a token was answered")

    def create() -> None:
        request = workspaces.CreateWorkspaceRequest(name=uuid.uuid4().hex, request_id=str(uuid.uuid4()))
        places.CreateWorkspace(request)

    yield Measured("refused", refuse, running.pid, 1.5)
    yield Measured("read", lambda: users.GetCurrentUser(access.GetCurrentUserRequest()), running.pid, 2.5)
    yield Measured(
        "empty", lambda: lead.ListExperiments(experiments.ListExperimentsRequest()), running.pid, 2.5
    )
    yield Measured("write", create, running.pid, 5.0)
    spec = experiments.ExperimentSpec(config_yaml=_CONFIG, paused=True)
    for _ in range(_LISTED):
        lead.CreateExperiment(
            experiments.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec), timeout=60
        )

    def list_all() -> None:
        page = lead.ListExperiments(experiments.ListExperimentsRequest(page_size=_LISTED))
        assert len(page.experiments) == _LISTED

    yield Measured("list", list_all, running.pid, 5.0)


def cost_ms(kind: Measured, count: int) -> float:
    """Processor milliseconds of the server for one call."""
    before = processor_seconds_of(kind.pid)
    for _ in range(count):
        kind.call()
    return (processor_seconds_of(kind.pid) - before) * 1000 / count


def beside(kind: Measured, bare: Measured, *, count: int, rounds: int) -> tuple[float, float, float]:
    """Milliseconds of a call, those of an empty call, and the median of their ratios."""
    cost_ms(kind, count), cost_ms(bare, count)
    turns = [(cost_ms(kind, count), cost_ms(bare, count)) for _ in range(rounds)]
    own, empty = (statistics.median(turn[side] for turn in turns) for side in (0, 1))
    return own, empty, statistics.median(mine / theirs for mine, theirs in turns)


@contextmanager
def bare_server() -> Iterator[Measured]:
    """Serves empty calls from a process of its own until the block ends."""
    program = Path(__file__).with_name("_bare_server.py")
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        with open_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.unary_unary(METHOD)
            yield Measured("bare", lambda: call(b""), process.pid, 1.0)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=300, help="in each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="one kind of call")
    options = parser.parse_args()
    missed = False
    with bare_server() as bare, embedded() as running, open_channel(running.address) as anonymous:
        for kind in calls(running, anonymous):
            if options.only not in (None, kind.name):
                continue
            own, empty, ratio = beside(kind, bare, count=options.calls, rounds=options.rounds)
            missed |= ratio > kind.limit
            say(
                f"{kind.name:<8} {own:6.2f} ms of processor   {ratio:5.2f} x an empty call of {empty:.2f} ms"
                f"   (limit {kind.limit:.1f})"
            )
    if missed:
        sys.exit("a limit was missed")


if __name__ == "__main__":
    main()
