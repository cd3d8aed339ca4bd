"""The history of a trial as the directory of an unmanaged run, which is sent like any other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from resolute.client.schema.records import ExperimentRecord, LineRecord, TrialRecord
from resolute.client.schema.states import RunOutcome, TrialState
from resolute.client.services import Services
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.spool.format import Line, Stdtype
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.line_writer import LineWriter
from resolute.spool.report_writer import ReportWriter

_STDTYPES = {"stdout": Stdtype.STDOUT, "stderr": Stdtype.STDERR}
_LINES_AT_ONCE = 1000
_NO_LIMIT = 1 << 62
"""Nothing is sent before all is recorded, so that no room is made."""


@dataclass
class _ReportedTime:
    """A clock with the time of the report that is being recorded."""

    now: float = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def record_history(
    source: Services, trial: TrialRecord, directory: Path, *, run_id: str, metadata: Mapping[str, Any]
) -> OfflineRun:
    """Records the metrics and the lines of a trial, unless they are recorded already.

    Args:
        source: The cluster that has them.
        trial: The trial.
        directory: Gets the directory ``run``; it is there once it is whole.
        run_id: UUID of the run on the other cluster.
        metadata: Of the trial there.

    Raises:
        QuotaError: The disk is full.
    """
    whole = directory / "run"
    if whole.exists():
        return OfflineRun.load(whole)
    scratch = directory / "recording"
    shutil.rmtree(scratch, ignore_errors=True)
    experiment = source.experiments.get(trial.experiment_uuid)
    run = OfflineRun.create(
        scratch,
        run_id=run_id,
        name=experiment.name,
        now=_unix(trial.create_time),
        hparams=trial.hparams,
        metadata=metadata,
        config=_config(experiment),
    )
    last = max(run.started_at, _unix(trial.end_time), _record_reports(source, trial, run))
    _record_lines(source, trial, run)
    _exit_record(trial, last).write(run.exit_file)
    run.directory.rename(whole)
    return OfflineRun.load(whole)


def _exit_record(trial: TrialRecord, end_time: float) -> ExitRecord:
    """How the trial ended, as far as a run outside of a cluster can tell: it completed, or why not."""
    if trial.state is TrialState.COMPLETED:
        return ExitRecord(exit_code=0, end_time=end_time)
    last = trial.runs[-1] if trial.runs else None
    invalid = last is not None and last.outcome is RunOutcome.INVALID_HP
    failure = last.failure if last is not None else ""
    return ExitRecord(
        exit_code=1,
        early_exit_reason=RunOutcome.INVALID_HP.value if invalid else "",
        failure=failure or trial.explanation or f"it was {trial.state.name} when it was promoted",
        end_time=end_time,
    )


def _config(experiment: ExperimentRecord) -> dict[str, Any]:
    metric, smaller = experiment.searcher_metric, experiment.smaller_is_better
    return {
        "description": experiment.description,
        "labels": list(experiment.labels),
        "searcher": {"metric": metric, "smaller_is_better": smaller} if metric else {},
    }


def _record_reports(source: Services, trial: TrialRecord, run: OfflineRun) -> float:
    """Records all reports; returns the time of the last."""
    clock, last = _ReportedTime(), 0.0
    writer = ReportWriter(run.spool, limit=_NO_LIMIT, clock=clock)
    for report in source.metrics.reports(trial):
        clock.now = _unix(report.end_time)
        last = max(last, clock.now)
        writer.report(report.group, report.steps_completed, report.metrics)
    writer.close()
    return last


def _record_lines(source: Services, trial: TrialRecord, run: OfflineRun) -> None:
    writer = LineWriter(run.spool, limit=_NO_LIMIT)
    lines = map(_line, source.logs.list(trial.uuid))
    for some in _batches(lines):
        writer.append_lines(some)
    writer.close()


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    while some := list(islice(lines, _LINES_AT_ONCE)):
        yield some


def _line(line: LineRecord) -> Line:
    # As processes of several ranks mark their lines themselves.
    mark = "" if line.rank is None else f"[rank={line.rank}] "
    text = f"{mark}{line.message}".encode()
    return Line(_unix(line.time), _STDTYPES.get(line.stdtype, Stdtype.PLATFORM), text)


def _unix(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
