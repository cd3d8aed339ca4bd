"""Reads Slurm's accounting records of ended jobs that the controller no longer has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import DataLossError, UnavailableError, UnimplementedError
from resolute_engines.slurm.commands.jobs import Job, JobState, state_of
from resolute_engines.slurm.commands.runner import SlurmCommands

_COLUMNS = ("JobIDRaw", "State", "ExitCode", "JobName")
"""The name comes last, as the only one that may have a bar in it."""
_ENDS = "BOOT_FAIL,CANCELLED,COMPLETED,DEADLINE,FAILED,NODE_FAIL,OUT_OF_MEMORY,PREEMPTED,TIMEOUT"
"""States that are asked for. Without any, jobs that were cancelled while they were held are left out."""
_DAYS = 30
"""For how long after their ends jobs are asked for: left alone, `sacct` begins at midnight."""
_TIMEOUT_SECONDS = 300.0
"""How long the end of a job is asked for in vain: a database that was away learns it once it is back."""
_PAUSE_SECONDS = 10.0
"""Time between two questions for one job."""
_UNANSWERED_PAUSE_SECONDS = 20.0
"""Time after a question that was not answered before the next one, whichever the job."""
_DEADLINE_SECONDS = 15.0
"""How long a question may take: no look at other jobs is taken meanwhile."""
_NO_FAILURE = "0:0"
"""No exit code, and no signal."""
_UNUSED_NAME = "resolute-doctor"
"""A name that no job has."""
_log = structlog.get_logger("slurm")


@dataclass(slots=True)
class _Wait:
    """The wait for the accounting record of a job."""

    until: float
    """When to give up."""
    again: float
    """When to ask again."""


class Accounting:
    """Calls ``sacct``, seldom, because the whole site shares its database.

    If the first call shows that the cluster has no accounting, there are no further calls.

    Args:
        commands: Runs Slurm's commands.
        clock: Measures pauses.
    """

    def __init__(self, commands: SlurmCommands, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._commands = replace(commands, deadline_seconds=min(commands.deadline_seconds, _DEADLINE_SECONDS))
        self._clock = clock
        self._kept = True
        self._waits: dict[str, _Wait] = {}
        self._again = clock.monotonic()
        self._problem = ""

    async def kept(self) -> bool:
        """Tells whether the cluster keeps accounting.

        Raises:
            UnavailableError: It does not answer.
        """
        await self._ask(_UNUSED_NAME)
        return self._kept

    async def find(self, name: str) -> Job | None:
        """Returns how a job ended that Slurm had, and of which the controller knows nothing.

        Of several jobs of the name it is the first that was submitted.

        Returns:
            None where the cluster keeps no accounting, or has not reported the end within five minutes.

        Raises:
            UnavailableError: Accounting does not answer, or does not know the end yet: ask again.
        """
        if not self._kept:
            return None
        now = self._clock.monotonic()
        wait = self._waits.setdefault(name, _Wait(until=now + _TIMEOUT_SECONDS, again=now))
        if now >= max(wait.again, self._again):
            wait.again = now + _PAUSE_SECONDS
            job = await self._try(name)
            if job is not None or not self._kept:
                self._waits.pop(name, None)
                return job
        if now < wait.until:
            raise UnavailableError(f"how job {name} of Slurm ended is not known yet: {self._problem}")
        _log.warning("how a job ended is not known", job=name, reason=self._problem)
        return None

    async def _try(self, name: str) -> Job | None:
        try:
            job = await self._ask(name)
        except UnavailableError as failure:
            if self._problem != str(failure):
                _log.warning("Slurm's accounting does not answer", reason=str(failure))
            self._problem = str(failure)
            self._again = self._clock.monotonic() + _UNANSWERED_PAUSE_SECONDS
            return None
        self._problem = "accounting has no record of its end"
        return job

    async def _ask(self, name: str) -> Job | None:
        question = [
            *("sacct", "--parsable2", "--noheader", "--allocations", f"--format={','.join(_COLUMNS)}"),
            # Relative: the clock of a login node may have another time zone.
            *(f"--starttime=now-{_DAYS}days", "--endtime=now", f"--state={_ENDS}", f"--name={name}"),
        ]
        try:
            printed = await self._commands.run(question, refusal=_not_kept)
        except UnimplementedError:
            self._kept = False
            return None
        self._kept = True
        return min(ended_jobs(printed, name=name), key=lambda job: job.id, default=None)


def ended_jobs(printed: str, *, name: str) -> list[Job]:
    """Reads lines of ``sacct``: the jobs of a name that have ended.

    Raises:
        DataLossError: A line is not what was asked for.
    """
    jobs = []
    for line in printed.splitlines():
        fields = line.split("|", len(_COLUMNS) - 1)
        if len(fields) < len(_COLUMNS) or not fields[0].isdecimal():
            raise DataLossError(f"sacct printed a line that is not a job: {line[:200]!r}")
        number, state, exit_code, named = fields
        # "CANCELLED by 1000" has the user's number.
        word, _, by = state.partition(" ")
        reason = by or ("" if exit_code == _NO_FAILURE else f"exit code {exit_code}")
        if named == name and state_of(word) is JobState.ENDED:
            jobs.append(Job(id=int(number), name=name, state=JobState.ENDED, slurm_state=word, reason=reason))
    return jobs


def _not_kept(complaint: str) -> UnimplementedError | None:
    disabled = "accounting storage is disabled" in complaint.lower()
    return UnimplementedError(f"sacct failed: {complaint}") if disabled else None
