"""Handlers of TrialsService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2, trials_service_pb2_grpc
from resolute.api.experiments.v1 import trials_service_pb2 as pb2
from resolute.values import to_mapping, to_value
from resolute_experiments import lifecycle
from resolute_experiments.conductor import SCHEDULE, SIGNALS
from resolute_experiments.core import Core
from resolute_experiments.messages import trial_message
from resolute_experiments.store import experiments, runs, trials
from resolute_serving.pages import decode_token, encode_token, page_size

_STATUS_LENGTH = 200


class TrialsServicer(trials_service_pb2_grpc.TrialsServiceServicer):
    """Shows trials and takes the few requests that concern one.

    Args:
        core: What all handlers of this service share.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def GetTrial(self, request: pb2.GetTrialRequest, context: Any) -> pb2.GetTrialResponse:
        """Gives a trial with its runs."""
        message = await self._core.database.read(lambda c: self._whole(c, self._core.trial(c, request.trial)))
        return pb2.GetTrialResponse(trial=message)

    async def ListTrials(self, request: pb2.ListTrialsRequest, context: Any) -> pb2.ListTrialsResponse:
        """Lists the trials of an experiment by number."""
        limit = page_size(request.page_size)
        after = decode_token(request) or 0

        def work(connection: Connection) -> list[experiment_pb2.Trial]:
            experiment = self._core.experiment(connection, request.experiment)
            found = trials.of_experiment(connection, experiment.id, after=after, limit=limit + 1)
            return [trial_message(trial, experiment) for trial in found]

        found = await self._core.database.read(work)
        more = len(found) > limit
        return pb2.ListTrialsResponse(
            trials=found[:limit],
            next_page_token=encode_token(request, found[limit - 1].number) if more else "",
        )

    async def KillTrial(self, request: pb2.KillTrialRequest, context: Any) -> pb2.KillTrialResponse:
        """Ends a trial at once; its experiment goes on."""
        moment = self._core.moment()

        def work(connection: Connection) -> experiment_pb2.Trial:
            trial = self._core.trial(connection, request.trial)
            lifecycle.kill_trial(connection, trial, moment)
            return self._whole(connection, trials.get(connection, trial_id=trial.id))

        message = await self._core.database.write(work)
        self._core.notifier.notify(message.experiment_id, SCHEDULE, SIGNALS)
        return pb2.KillTrialResponse(trial=message)

    async def SetTrialStatus(
        self, request: pb2.SetTrialStatusRequest, context: Any
    ) -> pb2.SetTrialStatusResponse:
        """Says what a trial is doing and keeps its metadata; a superseded run is not heard."""
        changes: dict[str, Any] = {}
        if request.status:
            changes["status"] = request.status[:_STATUS_LENGTH]
        if request.HasField("metadata"):
            changes["metadata"] = to_mapping(request.metadata)

        def work(connection: Connection) -> trials.Trial:
            trial = trials.get(connection, trial_id=request.trial_id)
            if changes and trial.run == request.run and not trial.ended:
                trials.update(connection, trial, **changes)
            return trials.get(connection, trial_id=request.trial_id)

        trial = await self._core.database.write(work)
        self._core.notifier.notify((trial.experiment_id, "watch"))
        return pb2.SetTrialStatusResponse(metadata=to_value(trial.metadata))

    def _whole(self, connection: Connection, trial: trials.Trial) -> experiment_pb2.Trial:
        history = runs.of_trial(connection, trial.id)
        containers = runs.containers_of(connection, history[-1].allocation_id) if history else []
        experiment = experiments.get(connection, experiment_id=trial.experiment_id)
        return trial_message(trial, experiment, runs=history, containers=containers)
