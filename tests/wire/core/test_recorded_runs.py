"""Runs that were recorded without a cluster arrive with the times at which they began and ended."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

import pytest
from support.clocks import ManualClock
from support.clusters.tenants import tenants
from support.services.in_process import Running
from support.waiting import wait_until

from resolute.cli.main import run as run_command
from resolute.client.connection.endpoint import find_endpoint
from resolute.client.connection.session import Session
from resolute.client.schema.records import RunRecord
from resolute.client.schema.states import RunOutcome
from resolute.client.services import Services
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.core.checkpoint.files.record import RECORDS
from resolute.core.distributed import DummyDistributedContext
from resolute.core.preempt import PreemptMode
from resolute.core.reporting.offline import FileReporter
from resolute.core.tensorboard import TensorboardMode
from resolute.core.unmanaged import context as unmanaged
from resolute.core.unmanaged.config import Config
from resolute.core.unmanaged.recorded_checkpoints import RecordedCheckpoints
from resolute.core.unmanaged.recording import Recording, begin_recording, recorded_runs, recording_parts
from resolute.core.unmanaged.renewal import renewing
from resolute.core.unmanaged.sync import sync, sync_all, sync_recorded
from resolute.errors import ConflictError, DeadlineError
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.report_writer import append_refusals
from resolute_experiments.transitions.signals import allocation_id
from resolute_serving.context import Role, TrialRun, User

Result = TypeVar("Result")
SECONDS = 60.0
"""How long the runs lasted."""


def on_services(tmp_path: Path, work: Callable[[Services, Running], Result]) -> Result:
    """Calls something with real services, as an admin."""

    async def serve() -> Result:
        async with tenants(tmp_path / "services") as platform:
            token = platform.running.signer.user(User("admin", Role.ADMIN, 1), ttl=3600.0)
            endpoint = replace(find_endpoint(platform.running.address, environment={}), token=lambda: token)
            with Session(endpoint) as session:
                return await asyncio.to_thread(work, Services(session), platform.running)

    return asyncio.run(asyncio.wait_for(serve(), 300))


def sent(run: OfflineRun, tmp_path: Path) -> RunRecord:
    """Sends a run twice, through real services; returns what they keep."""

    def send(services: Services, _: Running) -> RunRecord:
        first = sync(services, run, timeout=120.0)
        assert sync(services, run, timeout=120.0).trial.runs == first.trial.runs
        (kept,) = first.trial.runs
        return kept

    return on_services(tmp_path, send)


def begun(runs: Path, *, trial: str = "", at: float = 1000.0) -> tuple[OfflineRun, Recording]:
    """A run that is being recorded, of a trial of its own unless one is named."""
    external = {"external_experiment_id": trial, "external_trial_id": trial}
    run = OfflineRun.create(runs, run_id=str(uuid.uuid4()), name="recorded", now=at, **external)
    recording = begin_recording(run, address="")
    with closing(FileReporter.of_rank(run.directory, 0)) as reporter:
        reporter.report("training", 1, {"loss": 0.5})
    return run, recording


def ended(run: OfflineRun, recording: Recording) -> OfflineRun:
    """The run, after its script has ended."""
    ExitRecord(exit_code=0, end_time=run.started_at + SECONDS).write(run.exit_file)
    recording.lock.release()
    return run


def recorded(tmp_path: Path, clock: ManualClock, record: Callable[[OfflineRun], None]) -> OfflineRun:
    """A run whose files were written at the times of a clock: what is sent, a while after its beginning."""
    run = OfflineRun.create(tmp_path, run_id=str(uuid.uuid4()), name="long ago", now=clock.time())
    record(run)
    os.utime(run.directory / "run.json", (clock.time(), clock.time()))
    clock.advance(SECONDS)
    for path in run.spool.iterdir():
        os.utime(path, (clock.time(), clock.time()))
    return run


def when(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=timezone.utc)


def at(clock: ManualClock) -> datetime:
    return when(clock.time())


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


def test_a_run_is_sent_after_the_earlier_ones_of_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    monkeypatch.setenv("RESOLUTE_OFFLINE_DIR", str(runs))
    first, going_on = begun(runs, trial="shared")
    second = ended(*begun(runs, trial="shared", at=2000.0))
    other = ended(*begun(runs, trial="other", at=3000.0))

    def send(services: Services, running: Running) -> list[RunRecord]:
        monkeypatch.setenv("RESOLUTE_MASTER", running.address)
        monkeypatch.setenv("RESOLUTE_TOKEN", services.session.endpoint.token())
        config = Config(external_experiment_id="shared", external_trial_id="shared")
        with unmanaged.begin(
            config=config,
            client=None,
            distributed=DummyDistributedContext(),
            checkpoint_storage=None,
            preempt_mode=PreemptMode.WorkersAskChief,
            tensorboard_mode=TensorboardMode.AUTO,
        ) as context:
            assert context.info is not None
            assert context.info.trial.trial_id == 0
        assert not other.exists()
        assert [run.run_id for run in recorded_runs(runs)][:2] == [first.run_id, second.run_id]
        assert len(recorded_runs(runs)) == 3
        ended(first, going_on)
        assert sync_recorded(services, runs, timeout=120.0) == {}
        assert list(runs.iterdir()) == []
        # It is known already: this only finds its trial.
        return list(services.trials.begin(first).trial.runs)

    kept = on_services(tmp_path, send)
    assert [run.start_time for run in kept][:2] == [when(1000.0), when(2000.0)]
    assert [run.outcome for run in kept] == [RunOutcome.COMPLETED] * 3


def test_a_run_is_sent_when_the_last_of_its_processes_has_ended(tmp_path: Path) -> None:
    run, recording = begun(tmp_path / "runs")
    other_rank = recording_parts(
        run.directory,
        recording.info,
        distributed=DummyDistributedContext(),
        preempt_mode=PreemptMode.WorkersAskChief,
    )
    ended(run, recording)

    def send(services: Services, _: Running) -> None:
        with pytest.raises(ConflictError, match="still being recorded"):
            sync(services, run, timeout=120.0)
        for close in other_rank.closers:
            close()
        assert sync(services, run, timeout=120.0, remove=True).trial.runs
        assert not run.directory.exists()

    on_services(tmp_path, send)


def test_a_run_is_sent_with_a_new_token_after_an_attempt_that_was_cut_short(tmp_path: Path) -> None:
    run, recording = begun(tmp_path / "runs")
    parts = recording_parts(
        run.directory,
        recording.info,
        distributed=DummyDistributedContext(),
        preempt_mode=PreemptMode.WorkersAskChief,
    )
    with parts.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint):
        (path / "step").write_text("1")
    for close in parts.closers:
        close()
    ended(run, recording)

    def send(services: Services, running: Running) -> str:
        trial, number = (attempt := services.trials.begin(run)).trial, attempt.run
        allocation = allocation_id(trial.uuid, number)
        claims = TrialRun(trial.uuid, number, trial.experiment_uuid, allocation, "Uncategorized")
        RunDirectory(run.directory).token_file.write_text(running.signer.trial(claims, ttl=-60))
        sync(services, run, timeout=120.0)
        (kept,) = services.checkpoints.of_trial(trial.uuid)
        return kept.uuid

    assert on_services(tmp_path, send) == checkpoint


def test_a_directory_that_cannot_be_read_keeps_no_script_from_its_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = tmp_path / "runs"
    torn = ended(*begun(runs, trial="shared"))
    (torn.directory / "recorded.json").write_text("{")
    damaged = ended(*begun(runs, trial="shared"))
    records = RecordedCheckpoints(damaged.directory).base / RECORDS
    records.mkdir(parents=True)
    (records / "x.json").write_text("{")
    unknown = ended(*begun(runs))
    (unknown.directory / "run.json").write_text("{")
    caplog.clear()
    run, recording = begun(runs, trial="shared")
    assert recording.info.latest_checkpoint is None
    for each in (torn, damaged, unknown):
        assert str(each.directory) in caplog.text
    recording.lock.release()
    assert {each.run_id for each in recorded_runs(runs)} == {damaged.run_id, run.run_id}


def test_a_run_with_refused_reports_is_left_for_the_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = ended(*begun(tmp_path / "runs"))
    append_refusals(run.spool / "rank0.metrics", [{"sequence": 7, "message": "a bad name"}])

    def send(services: Services, _: Running) -> None:
        sync_recorded(services, run.directory.parent, timeout=120.0)
        assert "a bad name" in caplog.text
        assert f"`resolute sync {run.directory}`" in caplog.text
        assert recorded_runs(run.directory.parent) == []
        assert sync(services, run, timeout=120.0).refusals == ("a bad name",)

    on_services(tmp_path, send)


def test_the_command_sends_what_it_can_and_says_what_it_could_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    live, going_on = begun(runs, trial="shared")
    later = ended(*begun(runs, trial="shared", at=2000.0))
    broken = ended(*begun(runs, at=3000.0))
    (broken.directory / "run.json").write_text("{")
    good = ended(*begun(runs, at=4000.0))

    def send(services: Services, running: Running) -> int:
        monkeypatch.setenv("RESOLUTE_MASTER", running.address)
        monkeypatch.setenv("RESOLUTE_TOKEN", services.session.endpoint.token())
        return run_command(["sync", str(runs)], program="resolute")

    assert on_services(tmp_path, send) == 1
    out, err = capsys.readouterr()
    assert f"{good.run_id}: trial" in out
    assert f"{live.directory} is still being recorded" in err
    assert f"{later.directory} waits for the earlier run" in err
    assert str(broken.directory) in err
    going_on.lock.release()


def test_a_run_is_renewed_while_it_is_sent(tmp_path: Path) -> None:
    run = ended(*begun(tmp_path / "runs"))
    token_file = RunDirectory(run.directory).token_file

    def send(services: Services, _: Running) -> None:
        attempt = services.trials.begin(run)
        with renewing(services.session.endpoint, attempt, token_file, pause=0.01):
            first = token_file.stat().st_mtime_ns
            wait_until(lambda: token_file.stat().st_mtime_ns != first, what="a new token")

    on_services(tmp_path, send)


def test_one_deadline_holds_for_all_runs(tmp_path: Path) -> None:
    clock = ManualClock()
    runs = [ended(*begun(tmp_path / "runs", at=at)) for at in (1000.0, 2000.0)]

    def send(services: Services, _: Running) -> None:
        outcomes = sync_all(services, runs, timeout=60.0, total=60.0, clock=clock)
        assert not isinstance(next(outcomes)[1], Exception)
        clock.advance(60.0)
        assert isinstance(next(outcomes)[1], DeadlineError)

    on_services(tmp_path, send)
