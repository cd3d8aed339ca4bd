"""The calls by which a client drives a search on a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from resolute.api.searcher.v1 import operation_pb2
from resolute.client.remote.searches import PendingEvents
from resolute.client.schema.states import ExperimentState
from resolute.client.services import Services
from resolute.errors import NotFoundError


class ClusterSearchClient:
    """The search of one experiment.

    Args:
        services: The cluster.
        experiment_id: UUID of the experiment.
    """

    def __init__(self, services: Services, experiment_id: str) -> None:
        self._services = services
        self._id = experiment_id

    def poll(self, *, wait: float) -> PendingEvents:
        """Returns the events that wait for an answer; waits some seconds for one.

        None are there while the experiment waits for its search to be created, which is soon after it was
        submitted.
        """
        try:
            return self._services.searches.poll(self._id, wait=wait)
        except NotFoundError:
            return PendingEvents(events=(), progress={}, over=False)

    def post(self, operations: Sequence[operation_pb2.Operation], *, answers: int) -> None:
        """Answers an event, and all before it."""
        self._services.searches.post(self._id, operations, answers=answers)

    def experiment_state(self) -> ExperimentState:
        """Returns the state of the experiment."""
        return self._services.experiments.get(self._id).state
