"""What became of containers: Slurm's word on the job, beside what their supervisors left."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.run.exit_record import ExitRecord
from resolute_experiments.resources.local.container import LocalContainer, containers_in
from resolute_experiments.resources.protocol import ContainerReport, ContainerState
from resolute_experiments.resources.slurm.jobs import Job, JobState
from resolute_experiments.resources.slurm.submission import (
    LEFT_FILE,
    OUTPUT_FILE,
    STOP_FILE,
    SUBMITTED_FILE,
)

_TAIL_CHARACTERS = 2000
_OWN_FAULT = frozenset({"COMPLETED", "FAILED", "LAUNCH_FAILED"})
"""States of jobs that a next job would end in too, if no supervisor ever started."""
_OF_JOBS = {
    JobState.QUEUED: ContainerState.QUEUED,
    JobState.STARTING: ContainerState.STARTING,
    JobState.RUNNING: ContainerState.RUNNING,
}


def container_reports(runs: Path, allocation_id: str, job: Job | None) -> list[ContainerReport]:
    """Tells the state of every container of an allocation by rank. Blocks for a short while.

    Args:
        runs: Where run directories lie.
        allocation_id: The allocation.
        job: Its job; None of one that Slurm does not know, or not any more.
    """
    return [_report(container, job) for container in containers_in(runs, allocation_id)]


def is_over(container: LocalContainer) -> bool:
    """Whether the keeper of a container has told that nothing of it runs any more."""
    return (container.run.path / LEFT_FILE).exists()


def _report(container: LocalContainer, job: Job | None) -> ContainerReport:
    folder = container.run.path.parent
    record, reason = container.exit_record(), "" if job is None else _reason(job)
    live, over = job is not None and job.state is not JobState.ENDED, is_over(container)
    if job is not None and live and not over:
        state = _OF_JOBS[job.state]
        return _say(container, state, reason=reason if state is ContainerState.QUEUED else "")
    began = container.run.supervisor_file.exists()
    if job is None and not (began or over or (folder / SUBMITTED_FILE).exists()):
        return _say(container, ContainerState.UNKNOWN)
    if not over:
        # Its keeper went with it, and Slurm will forget the job.
        (container.run.path / LEFT_FILE).touch()
    if record is None and began:
        container.note_loss()
    elif record is None and (folder / STOP_FILE).exists():
        # It was taken out of the queue: nothing ran, so nothing was lost.
        record = ExitRecord(exit_code=0, acknowledged=True)
    elif record is None and job is not None and (live or job.slurm_state in _OWN_FAULT):
        record = _never_started(container, folder)
    return _say(container, ContainerState.ENDED, record, reason=reason)


def _never_started(container: LocalContainer, folder: Path) -> ExitRecord:
    words = "".join(
        log.read_text(errors="replace")[-_TAIL_CHARACTERS:]
        for log in (folder / OUTPUT_FILE, container.run.log_file)
        if log.exists()
    )
    failure = f"the supervisor of the run did not start on its node:\n{words.strip()}"
    return ExitRecord(exit_code=1, failure=failure, failed_before_entrypoint=True)


def _reason(job: Job) -> str:
    words = f"job {job.id} of Slurm is {job.slurm_state}"
    return f"{words} ({job.reason})" if job.reason else words


def _say(
    container: LocalContainer, state: ContainerState, record: ExitRecord | None = None, *, reason: str = ""
) -> ContainerReport:
    return ContainerReport(
        allocation_id=container.allocation_id,
        container_rank=container.rank,
        state=state,
        exit=record,
        reason=reason,
    )
