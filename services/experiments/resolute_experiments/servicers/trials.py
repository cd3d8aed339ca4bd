"""Handlers of TrialsService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2, trials_service_pb2_grpc
from resolute.api.experiments.v1 import trials_service_pb2 as pb2
from resolute.errors import InvalidArgumentError
from resolute.values import to_mapping, to_value
from resolute_experiments import lifecycle, recording
from resolute_experiments.conductor import SCHEDULE, SIGNALS
from resolute_experiments.config import ConfigError
from resolute_experiments.core import Core
from resolute_experiments.messages import trial_message
from resolute_experiments.store import experiments, runs, trials
from resolute_serving.context import TrialRun
from resolute_serving.intake import parse_uuid
from resolute_serving.pages import decode_token, encode_token, page_size
from resolute_serving.tokens import TokenSigner

_STATUS_LENGTH = 200
_RECORDING_TOKEN_SECONDS = 3600.0


class TrialsServicer(trials_service_pb2_grpc.TrialsServiceServicer):
    """Shows trials and takes the few requests that concern one.

    Args:
        core: What all handlers of this service share.
        signer: Issues the tokens by which history of recorded trials is sent.
        cluster_defaults: Lowest layer of every config.
    """

    def __init__(self, core: Core, *, signer: TokenSigner, cluster_defaults: dict[str, Any]) -> None:
        self._core = core
        self._signer = signer
        self._cluster_defaults = cluster_defaults

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
            return [
                trial_message(trial, experiment, explanation=self._core.waiting.explain(trial))
                for trial in found
            ]

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

    async def RecordTrial(self, request: pb2.RecordTrialRequest, context: Any) -> pb2.RecordTrialResponse:
        """Keeps a trial that ran elsewhere and has ended, and lets its history be sent."""
        wanted = recording.Recording(
            request_id=parse_uuid(request.request_id, field="request_id"),
            name=request.name,
            metadata=to_mapping(request.metadata),
            started_at=request.started_at.ToMicroseconds() / 1e6,
            ended_at=request.ended_at.ToMicroseconds() / 1e6,
        )
        if wanted.ended_at < wanted.started_at:
            raise InvalidArgumentError("ended_at lies before started_at")
        try:
            config = recording.whole_config(wanted.name, cluster_defaults=self._cluster_defaults)
        except ConfigError as error:
            raise InvalidArgumentError(f"the name {wanted.name!r} is not valid: {error}") from error

        def work(connection: Connection) -> tuple[TrialRun, experiment_pb2.Trial]:
            run = recording.record(connection, wanted, config, now=self._core.clock.time())
            return run, self._whole(connection, trials.get(connection, trial_id=run.trial_id))

        run, message = await self._core.database.write(work)
        token = self._signer.trial(run, ttl=_RECORDING_TOKEN_SECONDS)
        return pb2.RecordTrialResponse(trial=message, token=token)

    def _whole(self, connection: Connection, trial: trials.Trial) -> experiment_pb2.Trial:
        history = runs.of_trial(connection, trial.id)
        containers = runs.containers_of(connection, history[-1].allocation_id) if history else []
        experiment = experiments.get(connection, experiment_id=trial.experiment_id)
        return trial_message(
            trial,
            experiment,
            explanation=self._core.waiting.explain(trial),
            runs=history,
            containers=containers,
        )
