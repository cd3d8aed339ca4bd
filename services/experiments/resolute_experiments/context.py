"""The context that all handlers of the experiments service share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.contracts.clock import Clock
from resolute.errors import InvalidArgumentError
from resolute_experiments.store import experiments, trials
from resolute_experiments.timing import Timing
from resolute_experiments.topics import Topic
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier


@dataclass(frozen=True, kw_only=True)
class ServiceContext:
    """The database, the clock and the notifier of this service."""

    database: Database
    """Its own database."""
    notifier: Notifier[Topic]
    """Tells of changes."""
    clock: Clock
    """Returns the time."""
    cluster_id: str
    """UUID of the cluster."""
    preemption_timeout: float
    """Seconds that trials get to checkpoint after a signal."""

    def timing(self) -> Timing:
        """Now, with the time that trials get."""
        return Timing(now=self.clock.time(), preemption_timeout=self.preemption_timeout)

    def experiment(self, connection: Connection, key: experiment_pb2.ExperimentKey) -> experiments.Experiment:
        """Reads the experiment that a request names.

        Raises:
            InvalidArgumentError: The request names none.
            NotFoundError: There is none.
        """
        kind = key.WhichOneof("key")
        if kind is None:
            raise InvalidArgumentError("the request names no experiment; give its number or its UUID")
        if kind == "number":
            return experiments.get(connection, number=key.number)
        return experiments.get(connection, experiment_id=key.experiment_id)

    def experiment_ids(
        self, connection: Connection, keys: Sequence[experiment_pb2.ExperimentKey]
    ) -> Sequence[str]:
        """Reads the UUIDs of what a request names, in one statement; raises what ``experiment`` does."""
        known = experiments.uuids(
            connection,
            numbers=[key.number for key in keys if key.HasField("number")],
            ids=[key.experiment_id for key in keys if key.HasField("experiment_id")],
        )
        return [
            known.get(key.number) or known.get(key.experiment_id) or self.experiment(connection, key).id
            for key in keys
        ]

    def trial(self, connection: Connection, key: trial_pb2.TrialKey) -> trials.Trial:
        """Reads the trial that a request names.

        Raises:
            InvalidArgumentError: The request names none.
            NotFoundError: There is none.
        """
        kind = key.WhichOneof("key")
        if kind is None:
            raise InvalidArgumentError("the request names no trial; give its number or its UUID")
        if kind == "number":
            return trials.get(connection, number=key.number)
        return trials.get(connection, trial_id=key.trial_id)
