"""What the parts of the experiments service share, for tests of one part."""

from __future__ import annotations

from resolute.contracts.clock import Clock
from resolute_experiments.context import ServiceContext
from resolute_experiments.topics import Topic
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier


def context(database: Database, clock: Clock, *, notifier: Notifier[Topic] | None = None) -> ServiceContext:
    """The service's database, with a notifier of its own unless one is given."""
    return ServiceContext(
        database=database,
        notifier=notifier or Notifier(),
        clock=clock,
        cluster_id="cluster",
        preemption_timeout=60.0,
    )


class NoMetricsCopy:
    """The copy of validations where nothing is validated."""

    async def refresh(self) -> None:
        """Copies nothing."""


class NoGuard:
    """Judges nothing."""

    async def look_at(self, trial_id: str) -> None:
        """Finds no bad report."""
