"""The database is killed, answers are dropped, disks fill up, services are away: points equal reports."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults.metrics.evidence import check, drain
from faults.metrics.programs import value_at
from faults.metrics.test_kills import Trainer, environment, last_in
from support.clocks import ManualClock
from support.databases.postgres import crashable_postgres
from support.file_systems import small_file_system
from support.services.processes.killable import ServiceProcess, some_run
from support.suite.sampling import Sample

from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.errors import QuotaError, UnavailableError
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import ReportDelivery
from resolute.spool.report_writer import ReportWriter
from resolute_serving.context import TrialRun

_SUPERVISOR = str(Path(__file__).with_name("programs.py"))


@pytest.mark.integration
def test_kills_of_the_database_under_load_lose_nothing_and_double_nothing(
    tmp_path: Path, sample: Sample
) -> None:
    generator, run, spool = random.Random(sample.number), some_run(), tmp_path / "spool"
    spool.mkdir()
    with (
        crashable_postgres() as postgres,
        ServiceProcess("metrics", tmp_path, database_url=postgres.new_database()) as service,
    ):
        trainer = Trainer(spool, 0)
        supervisor = subprocess.Popen(
            [sys.executable, _SUPERVISOR, "send", str(spool)], env=environment(service, run)
        )
        for _ in range(sample.size(whole=4, part=2)):
            trainer.await_steps(trainer.said + generator.randrange(200, 800))
            postgres.kill()
            trainer.await_steps(trainer.said + generator.randrange(50, 300))
            postgres.start()
            time.sleep(generator.random())
        supervisor.kill()
        supervisor.wait()
        trainer.kill()
        drain(service, run, spool)
        check(service, run, last_in(spool, default=trainer.said) + 1)


@contextmanager
def sending(
    service: ServiceProcess, run: TrialRun, spool: Path, *, clock: ManualClock, drop: float = 0.0
) -> Iterator[SpoolSender]:
    """A sender whose calls are real; some of their answers are lost on the way back."""
    generator = random.Random(3)
    identity = RunIdentity(run.trial_id, run.run, run.experiment_id)
    with service.channel(run) as channel:
        stub = MetricsServiceStub(channel)

        def ingest(request: Any) -> Any:
            answer = stub.IngestReports(request, timeout=30)
            if generator.random() < drop:
                raise UnavailableError("the answer was lost")
            return answer

        delivery = ReportDelivery(
            identity, ingest=ingest, validate=lambda _: searcher.ReportValidationsResponse()
        )
        sender = SpoolSender(spool, delivery, clock=clock, jitter=lambda: 0.5)
        yield sender
        sender.close()


def report(writer: ReportWriter, step: int) -> None:
    """Reports what ``check`` expects."""
    writer.report("training", step, {"value": value_at(step), "step": step})


def pump_all(sender: SpoolSender, clock: ManualClock) -> None:
    """Sends until nothing is left, whatever fails in between."""
    for _ in range(10_000):
        if sender.drained():
            return
        if not sender.pump():
            clock.advance(1.0)
    raise AssertionError("the spool is not drained")


@pytest.mark.integration
def test_dropped_acknowledgements_double_nothing(tmp_path: Path) -> None:
    run, spool, clock = some_run(), tmp_path / "spool", ManualClock()
    spool.mkdir()
    writer = ReportWriter(spool)
    with (
        ServiceProcess("metrics", tmp_path) as service,
        sending(service, run, spool, clock=clock, drop=0.5) as sender,
    ):
        for step in range(6000):
            report(writer, step)
            if step % 100 == 0:
                sender.pump()
                clock.advance(0.5)
        writer.close()
        pump_all(sender, clock)
        check(service, run, 6000)


@pytest.mark.integration
def test_thirty_minutes_without_the_service_delay_and_lose_nothing(tmp_path: Path, sample: Sample) -> None:
    run, spool, clock = some_run(), tmp_path / "spool", ManualClock()
    spool.mkdir()
    writer = ReportWriter(spool, clock=clock)
    step = 0
    with (
        ServiceProcess("metrics", tmp_path) as service,
        sending(service, run, spool, clock=clock) as sender,
    ):
        for minute in range(32):
            # The service is there for a minute before and after.
            if minute == 1:
                service.kill()
            if minute == 31:
                service.start()
            for _ in range(600):
                report(writer, step)
                step += 1
                clock.advance(0.1)
            # While nobody answers, an attempt takes most of a second.
            if minute < 2 or minute % sample.size(whole=1, part=6) == 0:
                sender.pump()
        assert writer.unacknowledged > 0
        writer.close()
        pump_all(sender, clock)
        check(service, run, step)


def report_until_full(writer: ReportWriter) -> int:
    """Reports until no room is left; gives the first step that was not taken."""
    step = 0
    while True:
        try:
            report(writer, step)
        except QuotaError:
            return step
        step += 1


def fill(disk: Path) -> Path:
    """Takes all the room of a disk, and gives the file that takes it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return ballast


@pytest.mark.integration
def test_a_full_disk_of_the_trainer_is_an_error_there_and_loses_nothing_before_or_after(
    tmp_path: Path,
) -> None:
    run, clock = some_run(), ManualClock()
    with (
        small_file_system(tmp_path / "disk", "1m") as disk,
        ServiceProcess("metrics", tmp_path) as service,
    ):
        spool, ballast = disk / "spool", disk / "ballast"
        ballast.write_bytes(b"x" * (512 << 10))
        spool.mkdir()
        writer = ReportWriter(spool)
        step = report_until_full(writer)
        assert step > 1000
        with sending(service, run, spool, clock=clock) as sender:
            while sender.pump():
                pass
            with pytest.raises(QuotaError, match="free some space"):
                report(writer, step)
            # With some room, reports continue where they stopped.
            ballast.unlink()
            for further in range(step, step + 1000):
                report(writer, further)
            writer.close()
            pump_all(sender, clock)
        check(service, run, step + 1000)


@pytest.mark.integration
def test_a_full_disk_of_the_service_delays_and_loses_nothing(tmp_path: Path) -> None:
    run, spool, clock = some_run(), tmp_path / "spool", ManualClock()
    spool.mkdir()
    writer = ReportWriter(spool)
    with (
        small_file_system(tmp_path / "disk", "4m") as disk,
        ServiceProcess("metrics", tmp_path, database_url=f"sqlite:///{disk / 'metrics.sqlite'}") as service,
        sending(service, run, spool, clock=clock) as sender,
    ):
        for step in range(2000):
            report(writer, step)
        sender.pump()
        ballast = fill(disk)
        for step in range(2000, 20_000):
            report(writer, step)
        writer.close()
        for _ in range(5):
            sender.pump()
            clock.advance(10.0)
        assert not sender.drained()
        ballast.unlink()
        pump_all(sender, clock)
        check(service, run, 20_000)
