"""Containers that may wait forever for a failed container of their run."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from resolute_experiments.allocations.leases import Leases
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import runs

_SECONDS = 60.0
"""For how long containers continue once another of their run has failed: most frameworks notice it."""


class Stragglers:
    """The runs of one engine in which one container has failed while another continues.

    Args:
        core: The service's database and clock.
        leases: Tells which containers have renewed recently.
    """

    def __init__(self, core: ServiceContext, leases: Leases) -> None:
        self._core = core
        self._leases = leases
        self._since: dict[str, float] = {}
        """Since when a part of them has failed; monotonic seconds."""

    async def overdue(self, distributed: Sequence[runs.Run]) -> list[str]:
        """Names the allocations whose other containers have gone on for long enough.

        Args:
            distributed: Every run of the engine that has several containers and has not ended.
        """

        def broken(connection: Connection) -> list[Sequence[runs.Container]]:
            members = [runs.containers_of(connection, run.allocation_id) for run in distributed]
            return [containers for containers in members if _has_failed_container(containers)]

        containers = await self._core.database.read(broken) if distributed else []
        for each in containers:
            # Those without a renewal in this process count from now on.
            self._silent(each)
        allocation_ids = [each[0].allocation_id for each in containers]
        now = self._core.clock.monotonic()
        self._since = {each: self._since.get(each, now) for each in allocation_ids}
        return [each for each, since in self._since.items() if now - since >= _SECONDS]

    async def mark(self, allocation_id: str) -> None:
        """Notes that what still runs of an allocation is ended because of the rest, and is no cause.

        A container that fell silent is not among them: it is gone with its machine, which the engine has not
        noticed yet, and the rest failed of that.
        """

        def work(connection: Connection) -> None:
            silent = self._silent(runs.containers_of(connection, allocation_id))
            runs.mark_stragglers(connection, allocation_id=allocation_id, silent=silent)

        await self._core.database.write(work)

    def _silent(self, containers: Sequence[runs.Container]) -> list[int]:
        """The ranks of those that have not ended, by what is known, and did not renew for a lease."""
        return [
            container.container_rank
            for container in containers
            if not container.over
            and self._leases.silence(container.allocation_id, container.container_rank) >= self._leases.ttl
        ]


def _has_failed_container(containers: Sequence[runs.Container]) -> bool:
    """Whether a container has failed while another continues."""
    failed = any(container.exit_code or container.lost for container in containers)
    return failed and not all(container.over for container in containers)
