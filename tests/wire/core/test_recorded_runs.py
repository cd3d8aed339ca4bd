"""Runs that were recorded without a cluster arrive with the times at which they began and ended."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from support.clocks import ManualClock
from support.clusters.tenants import tenants

from resolute.client.connection.endpoint import find_endpoint
from resolute.client.connection.session import Session
from resolute.client.schema.records import RunRecord
from resolute.client.schema.states import RunOutcome
from resolute.client.services import Services
from resolute.contracts.run.exit_record import ExitRecord
from resolute.core.reporting.offline import FileReporter
from resolute.core.unmanaged.recording import begin_recording
from resolute.core.unmanaged.sync import sync
from resolute.runtime.offline_run import OfflineRun
from resolute_serving.context import Role, User

SECONDS = 60.0
"""How long the runs lasted."""


def sent(run: OfflineRun, tmp_path: Path) -> RunRecord:
    """Sends a run twice, through real services; returns what they keep."""

    def send(services: Services) -> RunRecord:
        with services.session:
            first = sync(services, run, timeout=120.0)
            assert sync(services, run, timeout=120.0).trial.runs == first.trial.runs
        (kept,) = first.trial.runs
        return kept

    async def serve() -> RunRecord:
        async with tenants(tmp_path / "services") as platform:
            token = platform.running.signer.user(User("admin", Role.ADMIN, 1), ttl=3600.0)
            endpoint = replace(find_endpoint(platform.running.address, environment={}), token=lambda: token)
            return await asyncio.to_thread(send, Services(Session(endpoint)))

    return asyncio.run(asyncio.wait_for(serve(), 300))


def recorded(tmp_path: Path, clock: ManualClock, record: Callable[[OfflineRun], None]) -> OfflineRun:
    """A run whose files were written at the times of a clock: what is sent, a while after its beginning."""
    run = OfflineRun.create(tmp_path, run_id=str(uuid.uuid4()), name="long ago", now=clock.time())
    record(run)
    os.utime(run.directory / "run.json", (clock.time(), clock.time()))
    clock.advance(SECONDS)
    for path in run.spool.iterdir():
        os.utime(path, (clock.time(), clock.time()))
    return run


def at(clock: ManualClock) -> datetime:
    return datetime.fromtimestamp(clock.time(), tz=timezone.utc)


def test_a_run_that_was_killed_ended_when_it_recorded_last(tmp_path: Path) -> None:
    clock = ManualClock()
    reporters: list[FileReporter] = []

    def record(run: OfflineRun) -> None:
        recording = begin_recording(run, address="")
        reporter = FileReporter.of_rank(run.directory, 0)
        reporter.report("training", 1, {"loss": 0.5})
        reporters.append(reporter)
        # The kernel drops the lock of a process that is killed; nobody closes its reporter.
        recording.lock.release()

    began = at(clock)
    run = recorded(tmp_path, clock, record)
    kept = sent(run, tmp_path)
    assert (kept.outcome, kept.start_time, kept.end_time) == (RunOutcome.FAILED, began, at(clock))
    assert "without saying how" in kept.failure
    # Who sends it again, after an attempt that was cut short, says the same.
    written = ExitRecord.read(run.exit_file)
    assert written is not None
    assert written.end_time == clock.time()
    reporters[0].close()


def test_a_run_that_was_closed_ended_when_it_recorded_last(tmp_path: Path) -> None:
    clock = ManualClock()

    def record(run: OfflineRun) -> None:
        reporter = FileReporter.of_rank(run.directory, 0)
        reporter.report("training", 1, {"loss": 0.5})
        reporter.close()

    began = at(clock)
    kept = sent(recorded(tmp_path, clock, record), tmp_path)
    assert (kept.outcome, kept.start_time, kept.end_time) == (RunOutcome.COMPLETED, began, at(clock))
