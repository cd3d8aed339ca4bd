"""Containers that an engine has not started, each with the engine's reason."""

from __future__ import annotations

from collections.abc import Collection

from resolute_engines.protocol import ContainerReport


class WaitingContainers:
    """The waiting containers in one engine's last report. An allocation waits while any of them waits.

    Args:
        engine: Name of the engine, for messages.
    """

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._reasons: dict[str, dict[int, str]] = {}
        """Why each container waits, by allocation and rank; empty for one that has begun."""

    def __contains__(self, allocation_id: object) -> bool:
        """Whether any container of an allocation waits."""
        return any(self._of(allocation_id).values())

    def note(self, report: ContainerReport) -> None:
        """Notes what the engine says of a container."""
        reason = (report.reason or f"waits in the queue of {self._engine}") if report.waits else ""
        self._reasons.setdefault(report.allocation_id, {})[report.container_rank] = reason

    def reason(self, allocation_id: str) -> str:
        """Says why an allocation waits, by the first of its containers that does; empty if none does."""
        waiting = sorted((rank, reason) for rank, reason in self._of(allocation_id).items() if reason)
        if not waiting or self.nothing_began(allocation_id):
            return waiting[0][1] if waiting else ""
        rank, reason = waiting[0]
        return f"container {rank} waits: {reason}"

    def nothing_began(self, allocation_id: str) -> bool:
        """Whether the engine has reported of an allocation that all of it waits."""
        reasons = self._of(allocation_id)
        return bool(reasons) and all(reasons.values())

    def keep(self, live: Collection[str]) -> None:
        """Forgets all allocations but those."""
        self._reasons = {name: reasons for name, reasons in self._reasons.items() if name in live}

    def _of(self, allocation_id: object) -> dict[int, str]:
        return self._reasons.get(allocation_id, {}) if isinstance(allocation_id, str) else {}
