"""Combines the exits of a run's containers into one."""

from __future__ import annotations

from collections.abc import Sequence

from resolute_experiments.exits.policy import EarlyExit, Exit
from resolute_experiments.store.runs import Container, Run


def summarize_exit(
    run: Run, containers: Sequence[Container], *, now: float, notice_seconds: float
) -> tuple[Exit, str]:
    """Makes one exit of how the containers of a run ended: what happened first is the cause of the rest.

    Args:
        run: The run.
        containers: Its containers, all of which have ended.
        now: The time.
        notice_seconds: How long after a container was lost its loss is noticed at the latest.

    Returns:
        The exit, and why the run failed or its code left early, for people; else empty.
    """
    in_order = sorted(containers, key=_ended_at)
    failed = [container for container in in_order if container.exit_code]
    early = [container.early_exit_reason for container in in_order if container.early_exit_reason]
    if failed:
        noticed_by = _ended_at(failed[0]) + notice_seconds
        # What the code itself says is no consequence of a loss.
        lost = not early and any(_was_lost_by(container, noticed_by) for container in containers)
    else:
        lost = any(container.lost for container in containers)
    overdue = run.signal_deadline is not None and now >= run.signal_deadline
    exit_ = Exit(
        forced=run.preempt and overdue,
        lost=lost,
        exit_code=(failed[0].exit_code or 0) if failed else 0,
        acknowledged=any(container.acknowledged for container in containers),
        early_exit=EarlyExit(early[0]) if early else EarlyExit.NONE,
    )
    # A container that another one's loss made fail can only tell what it saw of that.
    telling = [] if lost else sorted(in_order, key=lambda container: not container.early_exit_reason)
    failures = [container.failure for container in telling if container.failure]
    return exit_, failures[0] if failures else ""


def _ended_at(container: Container) -> float:
    # Only what ended before ends were dated has no date: it was before all that have.
    return container.ended_at or 0.0


def _was_lost_by(container: Container, time: float) -> bool:
    return container.lost and not container.straggler and _ended_at(container) <= time
