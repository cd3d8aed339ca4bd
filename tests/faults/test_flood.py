"""A flood of reports and lines does not keep a run from renewing its lease."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.suite.sampling import Sample
from support.waiting import wait_until

from resolute.api.experiments.v1 import allocations_service_pb2 as pb2
from resolute.api.experiments.v1 import allocations_service_pb2_grpc
from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.spool.format import Line, Stdtype
from resolute.contracts.times import seconds_of
from resolute.rpc.channel import open_channel
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.sender_thread import SenderThread
from resolute.spool.delivery.services import Delivery, LineDelivery, ReportDelivery
from resolute.spool.line_writer import LineWriter
from resolute.spool.report_writer import ReportWriter

CONFIG = """
name: renews
entrypoint: sleep 600
hyperparameters: {}
searcher: {name: single, metric: loss, max_length: 1}
"""
SENDERS = 4


@dataclass(frozen=True)
class Run:
    """A run under way, and what speaks for it."""

    order: LaunchOrder
    directory: RunDirectory
    spec: LaunchSpec

    def channel(self) -> grpc.Channel:
        """A channel that speaks for the run."""
        return open_channel(self.order.master, token=self.directory.read_token)

    @property
    def identity(self) -> RunIdentity:
        """Whose reports and lines they are."""
        return RunIdentity(trial_id=self.spec.trial_id, run=1, experiment_id=self.spec.experiment_id)


def running(cluster: EmbeddedCluster) -> Run:
    """The run of the cluster's only trial, once its entrypoint runs."""

    def runs() -> bool:
        trials = cluster.json("e", "list-trials", "1")
        return [each["state"] for each in trials] == ["RUNNING"]

    wait_until(runs, what="a run")
    (folder,) = (cluster.home / "runs").glob("*/0")
    directory = RunDirectory(folder)
    order = LaunchOrder.read(directory.launch_file)
    with open_channel(order.master, token=directory.read_token) as channel:
        stub = allocations_service_pb2_grpc.AllocationsServiceStub(channel)
        request = pb2.GetLaunchSpecRequest(allocation_id=order.allocation_id)
        return Run(order, directory, stub.GetLaunchSpec(request).spec)


def senders(run: Run, folder: Path, stack: ExitStack, *, lines_each: int) -> Iterator[SenderThread]:
    """Real senders with much to send, each over a channel of its own."""
    for number in range(SENDERS):
        spool = folder / str(number)
        spool.mkdir()
        lines = LineWriter(spool, clock=SYSTEM_CLOCK)
        lines.append_lines([Line(1.0, Stdtype.STDOUT, b"x" * 100) for _ in range(lines_each)])
        reports = ReportWriter(spool, name=f"rank{number}")
        for step in range(lines_each // 4):
            reports.report("training", step, {"loss": 1.0 / (step + 1), "accuracy": 0.5})
        lines.close()
        reports.close()
        deliveries: tuple[Delivery, ...] = (
            LineDelivery.over(stack.enter_context(run.channel()), run.identity),
            ReportDelivery.over(stack.enter_context(run.channel()), run.identity),
        )
        for delivery in deliveries:
            yield SenderThread(SpoolSender(spool, delivery), name=f"flood-{number}{delivery.suffix}")


@pytest.mark.integration
def test_a_flood_does_not_delay_a_renewal_past_half_of_a_lease(tmp_path: Path, sample: Sample) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    with embedded(tmp_path / "home", slots=1) as cluster, ExitStack() as stack:
        cluster.det("e", "create", "config.yaml", ".", cwd=tmp_path)
        run = running(cluster)
        (tmp_path / "spools").mkdir()
        lines = sample.size(whole=40_000, part=15_000)
        threads = list(senders(run, tmp_path / "spools", stack, lines_each=lines))
        stub = allocations_service_pb2_grpc.AllocationsServiceStub(stack.enter_context(run.channel()))
        request = pb2.RenewLeaseRequest(allocation_id=run.order.allocation_id)
        taken, ttl = [], 0.0
        for thread in threads:
            thread.start()
        try:
            while not all(thread.drain(0.02) for thread in threads):
                began = time.monotonic()
                ttl = seconds_of(stub.RenewLease(request, timeout=60.0).ttl)
                taken.append(time.monotonic() - began)
        finally:
            for thread in threads:
                thread.stop()
        print(f"{len(taken)} renewals in a flood, the longest took {max(taken):.3f} s of {ttl:g} s")
        assert len(taken) >= 5
        assert max(taken) < ttl / 2
        trial = cluster.json("t", "describe", "1")[0]["trial"]
        assert (trial["state"], trial["restarts"], len(trial["runs"])) == ("RUNNING", 0, 1)
        cluster.det("e", "kill", "1")
