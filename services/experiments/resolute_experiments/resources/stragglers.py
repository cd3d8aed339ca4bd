"""Containers that may wait for ever for another of their run, which has failed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy.engine import Connection

from resolute_experiments.context import ServiceContext
from resolute_experiments.store import runs

_SECONDS = 60.0
"""For how long containers continue once another of their run has failed: most frameworks notice it."""


class Stragglers:
    """The runs of one engine of which a part has failed while another continues.

    Args:
        core: The service's database and clock.
    """

    def __init__(self, core: ServiceContext) -> None:
        self._core = core
        self._since: dict[str, float] = {}
        """Since when a part of them has failed; monotonic seconds."""

    async def overdue(self, distributed: Sequence[runs.Run]) -> list[str]:
        """Names the allocations whose other containers have gone on for long enough.

        Args:
            distributed: Every run of the engine that has several containers and has not ended.
        """

        def broken(connection: Connection) -> list[str]:
            ranks = {
                run.allocation_id: runs.containers_of(connection, run.allocation_id) for run in distributed
            }
            return [name for name, containers in ranks.items() if _has_failed_container(containers)]

        found = await self._core.database.read(broken) if distributed else []
        now = self._core.clock.monotonic()
        self._since = {each: self._since.get(each, now) for each in found}
        return [each for each, since in self._since.items() if now - since >= _SECONDS]

    async def mark(self, allocation_id: str) -> None:
        """Notes that what still runs of an allocation is ended because of the rest, and is no cause."""
        await self._core.database.write(partial(runs.mark_stragglers, allocation_id=allocation_id))


def _has_failed_container(containers: Sequence[runs.Container]) -> bool:
    """Whether a container has failed while another continues."""
    failed = any(container.exit_code or container.lost for container in containers)
    return failed and not all(container.over for container in containers)
