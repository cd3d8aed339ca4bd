"""Derives the states of containers from Slurm's state of the job and the files of their supervisors."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.shim_files import LEFT, STOP
from resolute_engines.kit.reports import report_of
from resolute_engines.kit.run_directories.container import RunContainer, containers_in
from resolute_engines.protocol import ContainerReport, ContainerState
from resolute_engines.slurm.commands.jobs import Job, JobState
from resolute_engines.slurm.request import OUTPUT_FILE, SUBMITTED_FILE

_TAIL_CHARACTERS = 2000
_OWN_FAULT = frozenset({"COMPLETED", "FAILED", "LAUNCH_FAILED"})
"""States of jobs that a next job would end in too, if no supervisor ever started."""
_OUT_OF_MEMORY = "OUT_OF_MEMORY"
"""State of jobs of which something was killed for the memory that the job asked for."""
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


def lacks_an_end(runs: Path, allocation_id: str) -> bool:
    """Whether Slurm had the job of an allocation, and some supervisor has not reported its own end.

    Blocks for a short while.
    """
    containers = containers_in(runs, allocation_id)
    submitted = (runs / allocation_id / SUBMITTED_FILE).exists()
    return any(
        container.exit_record() is None
        for container in containers
        if submitted or container.run.supervisor_file.exists()
    )


def is_over(container: RunContainer) -> bool:
    """Whether the shim of a container has reported that nothing of it runs any more."""
    return (container.run.path / LEFT).exists()


def _report(container: RunContainer, job: Job | None) -> ContainerReport:
    record, reason = container.exit_record(), "" if job is None else _reason(job)
    live, over = job is not None and job.state is not JobState.ENDED, is_over(container)
    if job is not None and live and not over:
        state = _OF_JOBS[job.state]
        return report_of(container, state, reason=reason if state is ContainerState.QUEUED else "")
    began = container.run.supervisor_file.exists()
    if job is None and not (began or over or (container.run.path.parent / SUBMITTED_FILE).exists()):
        return report_of(container, ContainerState.UNKNOWN)
    if not over:
        # Its shim went with it, and Slurm will forget the job.
        (container.run.path / LEFT).touch()
    if record is None:
        if began:
            container.note_loss()
        record = _without_word(container, job, began=began)
    return report_of(container, ContainerState.ENDED, record, reason=reason)


def _without_word(container: RunContainer, job: Job | None, *, began: bool) -> ExitRecord | None:
    """The end of a container whose supervisor did not tell it, by Slurm's word; None if it was lost."""
    folder = container.run.path.parent
    if job is not None and job.slurm_state == _OUT_OF_MEMORY:
        return _out_of_memory(job)
    if began:
        return None
    if (folder / STOP).exists():
        # It was taken out of the queue.
        return ExitRecord.withdrawn()
    if job is not None and (job.state is not JobState.ENDED or job.slurm_state in _OWN_FAULT):
        return _never_started(container, folder)
    return None


def _never_started(container: RunContainer, folder: Path) -> ExitRecord:
    words = "".join(
        log.read_text(errors="replace")[-_TAIL_CHARACTERS:]
        for log in (folder / OUTPUT_FILE, container.run.log_file)
        if log.exists()
    )
    failure = f"the supervisor of the run did not start on its node:\n{words.strip()}"
    return ExitRecord(exit_code=1, failure=failure, failed_before_entrypoint=True)


def _out_of_memory(job: Job) -> ExitRecord:
    """The end of a container of which nothing was left to tell it, in a job that took too much memory."""
    return ExitRecord.out_of_memory(
        f"the memory of job {job.id} of Slurm",
        remedy=(
            "raise it by --mem, --mem-per-cpu or --mem-per-gpu in slurm.sbatch_args of the config or "
            "sbatch_args of the pool"
        ),
    )


def _reason(job: Job) -> str:
    words = f"job {job.id} of Slurm is {job.slurm_state}"
    return f"{words} ({job.reason})" if job.reason else words
