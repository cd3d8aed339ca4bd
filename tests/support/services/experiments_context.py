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


async def copy_nothing() -> None:
    """Copies metrics where there are none."""


async def judge_nothing(trial_id: str) -> None:
    """Judges a trial of an experiment without a guard."""
