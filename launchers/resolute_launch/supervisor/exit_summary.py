"""How a run ended, put together from what was seen."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.api.experiments.v1.allocations_service_pb2 import EarlyExitReason
from resolute.contracts.atomic_files import read_json
from resolute.contracts.clock import Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.flags import Flags
from resolute_launch.container.entrypoint_process import HOOK
from resolute_launch.ranks.failures import OutputTail, describe, first_rank_failure

KILLED = 137
_PREFIX = "EARLY_EXIT_REASON_"
_PREFIXES = ("EXITED_REASON_", _PREFIX)
"""What scripts of different ages write before the name."""


@dataclass(slots=True)
class Observations:
    """What the supervisor has seen and done."""

    preempted: bool = False
    """Whether the run was asked to checkpoint and exit."""
    hook_finished: bool = False
    """Whether the shell came to the gate: the hook is done."""
    released: bool = False
    """Whether it was let through, to become the entrypoint."""
    forced: str = ""
    """Why the processes were made to end; empty if they were not."""
    start_failure: str = ""
    """What kept the entrypoint from running; empty if nothing did."""

    def force(self, why: str) -> None:
        """Notes why processes are made to end; the first reason stays."""
        self.forced = self.forced or why

    @property
    def start_cancelled(self) -> bool:
        """Whether nothing is to be started any more."""
        return self.preempted or bool(self.forced or self.start_failure)


def never_started(seen: Observations, *, clock: Clock) -> ExitRecord:
    """The end of a run whose entrypoint never ran."""
    now = clock.time()
    if seen.start_failure:
        return ExitRecord(
            exit_code=1, failure=seen.start_failure, failed_before_entrypoint=True, end_time=now
        )
    if seen.preempted and not seen.forced:
        # Nothing ran, so nothing was lost: it has done what it was asked for.
        return ExitRecord(exit_code=0, acknowledged=True, end_time=now)
    return ExitRecord(exit_code=KILLED, failure=seen.forced, failed_before_entrypoint=True, end_time=now)


def ended(
    exit_code: int,
    seen: Observations,
    *,
    run: RunDirectory,
    flags: Flags,
    words: OutputTail,
    clock: Clock,
) -> ExitRecord:
    """The end of a run whose shell was started.

    Args:
        exit_code: Exit code of the shell, or of the entrypoint that it became.
        seen: What was seen on the way.
        run: The run directory.
        flags: What the trial said by them.
        words: The last of its output.
        clock: Tells when.
    """
    if not seen.released:
        if not seen.start_cancelled:
            seen.start_failure = _hook_failure(exit_code, seen, words)
        return never_started(seen, clock=clock)
    failure, end_time = "", clock.time()
    if exit_code:
        first = first_rank_failure(run)
        failure = seen.forced or describe(exit_code, words, first)
        # Ending its other ranks may take longer than it takes other containers to notice and fail too.
        end_time = first.time if first else end_time
    return ExitRecord(
        exit_code=exit_code,
        # One that left only at SIGTERM, and well, left because of the signal.
        acknowledged=flags.acknowledged or (not exit_code and seen.preempted and bool(seen.forced)),
        early_exit_reason=early_exit(run),
        failure=failure,
        end_time=end_time,
    )


def early_exit(run: RunDirectory) -> str:
    """Returns why the trial's own code ended early, by a name of the contract; empty without a known one."""
    try:
        content = read_json(run.early_exit_file) or {}
    except ValueError:
        return ""
    name = str(content.get("reason", ""))
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name if f"{_PREFIX}{name}" in EarlyExitReason.keys() else ""  # noqa: SIM118  # an enum is no dict


def _hook_failure(exit_code: int, seen: Observations, words: OutputTail) -> str:
    if seen.hook_finished:
        return f"the shell ended at the gate with exit code {exit_code}, before it could run the entrypoint"
    if not exit_code:
        return f"{HOOK} ended its shell with 'exit', so the entrypoint could not run; use 'return' instead"
    said = words.of(None)
    title = f"{HOOK} failed with exit code {exit_code}; it is sourced with 'set -e'"
    return f"{title}\n{said}" if said else title
