"""Steps that all ranks take together: if one rank fails, all of them raise, and none keeps waiting."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from resolute.core.distributed import CollectiveError, DistributedContext

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[_T]):
    value: _T | None = None
    failure: str = ""


def run_on_all_ranks(dist: DistributedContext, step: Callable[[], _T]) -> list[_T]:
    """Runs a step on every rank.

    Args:
        dist: The processes; each of them calls this with a step of its own.
        step: What this process does.

    Returns:
        What the steps of all ranks returned, by rank.

    Raises:
        Exception: The error of this rank's step, if it failed.
        RuntimeError: Another rank's step failed; the message names it.
    """
    return _run_and_exchange(step, dist.allgather)


def run_on_local_ranks(dist: DistributedContext, step: Callable[[], _T]) -> list[_T]:
    """As ``run_on_all_ranks``, among the processes of this machine."""
    return _run_and_exchange(step, dist.allgather_local)


def _run_and_exchange(
    step: Callable[[], _T], exchange: Callable[[_Outcome[_T]], list[_Outcome[_T]]]
) -> list[_T]:
    try:
        outcome = _Outcome(value=step())
    except Exception as failure:
        with contextlib.suppress(CollectiveError):
            exchange(_Outcome(failure=f"{type(failure).__name__}: {failure}"))
        raise
    outcomes = exchange(outcome)
    failures = [f"rank {rank}: {other.failure}" for rank, other in enumerate(outcomes) if other.failure]
    if failures:
        raise RuntimeError("another process failed: " + "; ".join(failures))
    # A step may well return None, which is why the value is not looked at.
    return [other.value for other in outcomes]  # type: ignore[misc]
