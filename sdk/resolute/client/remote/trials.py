"""The trials of experiments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from resolute.api.experiments.v1 import trials_service_pb2, trials_service_pb2_grpc
from resolute.client import convert
from resolute.client.records import TrialRecord
from resolute.client.remote.paging import all_items
from resolute.client.session import Session
from resolute.offline_run import OfflineRun
from resolute.values import to_value


@dataclass(frozen=True)
class RecordedTrial:
    """A trial that ran elsewhere, as the cluster keeps it."""

    trial: TrialRecord
    token: str
    """Lets its history be sent, for an hour."""


class Trials:
    """Calls of the trials service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(trials_service_pb2_grpc.TrialsServiceStub)

    def get(self, key: int | str) -> TrialRecord:
        """Gives a trial with its runs.

        Raises:
            NotFoundError: There is none.
        """
        request = trials_service_pb2.GetTrialRequest(trial=convert.trial_key(key))
        return convert.trial(self._stub.GetTrial(request).trial)

    def list(self, experiment: int | str, *, limit: int | None = None) -> Iterator[TrialRecord]:
        """Yields the trials of an experiment by number."""
        request = trials_service_pb2.ListTrialsRequest(experiment=convert.experiment_key(experiment))
        for message in all_items(self._stub.ListTrials, request, "trials", limit=limit):
            yield convert.trial(message)

    def kill(self, key: int | str) -> TrialRecord:
        """Ends a trial at once; its experiment goes on."""
        request = trials_service_pb2.KillTrialRequest(trial=convert.trial_key(key))
        return convert.trial(self._stub.KillTrial(request).trial)

    def record(self, run: OfflineRun) -> RecordedTrial:
        """Keeps a run that was recorded off cluster as an ended trial; once, however often it is called."""
        request = trials_service_pb2.RecordTrialRequest(
            request_id=run.run_id, name=run.name, metadata=to_value(run.metadata)
        )
        request.started_at.FromMicroseconds(round(run.started_at * 1e6))
        request.ended_at.FromMicroseconds(round(run.ended_at() * 1e6))
        response = self._stub.RecordTrial(request)
        return RecordedTrial(convert.trial(response.trial), response.token)
