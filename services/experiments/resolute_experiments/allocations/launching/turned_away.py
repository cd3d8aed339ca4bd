"""Runs that a full pool did not accept. They wait, and are retried one after the other."""

from __future__ import annotations

from collections.abc import Collection

from resolute_experiments.store.runs import Run


class TurnedAway:
    """Runs that an engine refused for lack of capacity, such as a limit on the jobs of one user."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._full: set[str] = set()
        """Pools that had no room for a run since all asked again."""

    def __contains__(self, run: Run) -> bool:
        """Whether a run was turned away when it asked last."""
        return run.allocation_id in self._reasons

    def reason(self, allocation_id: str) -> str:
        """Says why an allocation was turned away, in the engine's words; empty if it was not."""
        return self._reasons.get(allocation_id, "")

    def ask_again(self, live: Collection[str]) -> None:
        """Lets the runs ask again.

        Args:
            live: Allocations that were not settled. The others are forgotten.
        """
        self._full.clear()
        self._reasons = {name: reason for name, reason in self._reasons.items() if name in live}

    def would_be_again(self, run: Run) -> bool:
        """Whether a run need not ask, as another one of its pool has just been turned away."""
        return run in self and run.resource_pool in self._full

    def add(self, run: Run, reason: str) -> None:
        """Notes that a run was turned away."""
        self._full.add(run.resource_pool)
        self._reasons[run.allocation_id] = reason

    def remove(self, run: Run) -> None:
        """Notes that a run was let in, or does not want to be any more."""
        self._reasons.pop(run.allocation_id, None)
