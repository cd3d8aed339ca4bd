"""The reported exit of a run, derived from the supervisor's observations."""

from __future__ import annotations

from dataclasses import dataclass, field

from resolute.contracts.clock import Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.early_exit import EarlyExit
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.runtime.redaction import Secrets
from resolute_launch.container.startup_hook import HOOK
from resolute_launch.gpus.xid_errors import XidErrors
from resolute_launch.processes.memory_kills import MemoryKills
from resolute_launch.ranks.failures import OutputTail, describe, first_rank_failure

KILLED, TERMINATED = 137, 143
"""Exit codes of what SIGKILL and SIGTERM ended."""


@dataclass(slots=True)
class Observations:
    """The observations and actions of the supervisor."""

    preempted: bool = False
    """Whether the run was asked to checkpoint and exit."""
    hook_finished: bool = False
    """Whether the shell has reached the start barrier: the startup hook has finished."""
    released: bool = False
    """Whether the shell was released, to become the entrypoint."""
    forced: str = ""
    """Why the processes were terminated; empty if they were not."""
    start_failure: str = ""
    """Why the entrypoint could not be started; empty if it could."""
    stood_still: str = ""
    """What kept the run when it ended by itself after it had not moved for long; empty if it moved."""
    memory_kills: MemoryKills = field(default_factory=MemoryKills)
    """What the kernel killed for lack of memory while the run lasted."""
    xid_errors: XidErrors | None = None
    """Errors of GPUs in the kernel's log; None for a run without GPUs."""
    node: str = ""
    """Name of the machine."""

    def force(self, why: str) -> None:
        """Records why processes are terminated; the first reason stays."""
        self.forced = self.forced or why

    @property
    def start_cancelled(self) -> bool:
        """Whether nothing may be started any more."""
        return self.preempted or bool(self.forced or self.start_failure)


def before_start(observations: Observations, *, clock: Clock) -> ExitRecord:
    """Returns the exit record of a run whose entrypoint never ran."""
    now = clock.time()
    if observations.start_failure:
        return ExitRecord(
            exit_code=1, failure=observations.start_failure, failed_before_entrypoint=True, end_time=now
        )
    if observations.preempted and not observations.forced:
        # Nothing ran, so nothing was lost: the run did what the signal asked for.
        return ExitRecord(exit_code=0, acknowledged=True, end_time=now)
    return ExitRecord(
        exit_code=KILLED, failure=observations.forced, failed_before_entrypoint=True, end_time=now
    )


def after_start(
    exit_code: int,
    observations: Observations,
    *,
    run: RunDirectory,
    flags: Flags,
    words: OutputTail,
    secrets: Secrets,
    clock: Clock,
) -> ExitRecord:
    """Returns the exit record of a run whose shell was started.

    Args:
        exit_code: Exit code of the shell, or of the entrypoint that it became.
        observations: Records what happened.
        run: The run directory.
        flags: The flags shared with the trial.
        words: The last lines of its output, without secrets.
        secrets: Masked in the reason that the code itself gave for its end.
        clock: Tells the time of the end.
    """
    if not observations.released:
        if not observations.start_cancelled:
            observations.start_failure = _hook_failure(exit_code, observations, words)
        return before_start(observations, clock=clock)
    failure, end_time = "", clock.time()
    early = EarlyExit.read(run.early_exit_file, mask=secrets.mask)
    # Machines that are taken away, such as several nodes of a preempted job of Slurm, may tell every process.
    taken = exit_code == TERMINATED and observations.preempted and not observations.forced
    if exit_code and not taken:
        first = first_rank_failure(run)
        # Terminating the other ranks may take longer than other containers take to notice and fail too.
        failed_at = first.time if first else end_time
        xid = observations.xid_errors
        failure = observations.forced or describe(
            exit_code,
            words,
            first,
            memory=observations.memory_kills.explain(),
            node=observations.node,
            xid="" if xid is None else xid.latest(ago=end_time - failed_at),
        )
        if observations.stood_still and not observations.forced:
            failure += f"\nbefore its end nothing of the run moved: {observations.stood_still}"
        end_time = failed_at
    return ExitRecord(
        exit_code=exit_code,
        # An entrypoint that exits with 0 after SIGTERM exits because of the signal.
        acknowledged=flags.acknowledged
        or taken
        or (not exit_code and observations.preempted and bool(observations.forced)),
        early_exit_reason=early.reason,
        # What the code itself says of its end tells more than the code that its processes exited with.
        failure=early.message or failure,
        end_time=end_time,
        initialized_at=run.read_ready(),
    )


def _hook_failure(exit_code: int, observations: Observations, words: OutputTail) -> str:
    if observations.hook_finished:
        return f"the shell ended with exit code {exit_code} before it could run the entrypoint"
    if not exit_code:
        return f"{HOOK} ended its shell with 'exit', so the entrypoint could not run; use 'return' instead"
    output = words.of(None)
    title = f"{HOOK} failed with exit code {exit_code}; it is sourced with 'set -e'"
    return f"{title}\n{output}" if output else title
