"""Handlers of ExperimentsService."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2, experiments_service_pb2_grpc
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError
from resolute_experiments.admission import model_definition
from resolute_experiments.admission.submissions import Submission, Submissions
from resolute_experiments.context import ServiceContext
from resolute_experiments.lifecycle import commands
from resolute_experiments.moment import Moment
from resolute_experiments.notifier import SCHEDULER_WAKEUP, SIGNAL_CHANGES
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.messages import experiment_message, trial_message
from resolute_experiments.specs.search import search_spec
from resolute_experiments.states import ExperimentState
from resolute_experiments.store import experiments, trials
from resolute_experiments.store.experiments import Experiment, Filter
from resolute_serving.pagination import decode_token, encode_token, page_size

_HEARTBEAT_SECONDS = 15.0
_RECHECK_SECONDS = 1.0


class ExperimentsServicer(experiments_service_pb2_grpc.ExperimentsServiceServicer):
    """Takes experiments and leads them through their lives.

    Args:
        core: What all handlers of this service share.
        wait_reasons: Knows why trials wait.
        submissions: Takes what people submit.
        adopt: Begins to lead an experiment.
    """

    def __init__(
        self,
        core: ServiceContext,
        *,
        wait_reasons: WaitReasons,
        submissions: Submissions,
        adopt: Callable[[str], None],
    ) -> None:
        self._core = core
        self._wait_reasons = wait_reasons
        self._submissions = submissions
        self._adopt = adopt

    async def CreateExperiment(self, request_iterator: Any, context: Any) -> pb2.CreateExperimentResponse:
        """Creates an experiment from a header and the chunks that follow it."""
        header: pb2.CreateExperimentRequest.Header | None = None
        archive = model_definition.Archive()
        async for request in request_iterator:
            if request.HasField("header"):
                if header is not None:
                    raise InvalidArgumentError("two headers were sent; the header comes first, exactly once")
                header = request.header
            elif header is None:
                raise InvalidArgumentError("a chunk came before the header; the header comes first")
            else:
                archive.add(request.chunk)
        if header is None or not header.request_id:
            raise InvalidArgumentError("no header with a request_id was sent; it comes first")
        submission = Submission(
            request_id=header.request_id,
            config_yaml=header.config_yaml,
            template=header.template,
            paused=header.paused,
            test_mode=header.test_mode,
            model_definition=archive.data,
        )
        experiment, warnings = await self._submissions.submit(submission)
        self._adopt(experiment.id)
        return pb2.CreateExperimentResponse(
            experiment=experiment_message(experiment, {}, with_config=True), warnings=warnings
        )

    async def ValidateConfig(
        self, request: pb2.ValidateConfigRequest, context: Any
    ) -> pb2.ValidateConfigResponse:
        """Checks a config without creating anything."""
        accepted = await self._submissions.check(request.config_yaml, template=request.template)
        return pb2.ValidateConfigResponse(
            config=to_value(accepted.config.to_dict(redact=True)),
            warnings=accepted.warnings,
            search=search_spec(accepted.config.to_dict()),
        )

    async def GetExperiment(
        self, request: pb2.GetExperimentRequest, context: Any
    ) -> pb2.GetExperimentResponse:
        """Gives an experiment with its config."""
        message = await self._core.database.read(
            lambda c: self._message(c, self._core.experiment(c, request.experiment), with_config=True)
        )
        return pb2.GetExperimentResponse(experiment=message)

    async def ListExperiments(
        self, request: pb2.ListExperimentsRequest, context: Any
    ) -> pb2.ListExperimentsResponse:
        """Lists experiments, newest first."""
        limit = page_size(request.page_size)
        wanted = Filter(
            states=frozenset(_state(number) for number in request.states),
            owners=frozenset(request.owners),
            labels=frozenset(request.labels),
            name=request.name,
            include_archived=request.include_archived,
        )
        before = decode_token(request)

        def work(connection: Connection) -> tuple[list[Experiment], dict[str, dict[str, int]]]:
            found = experiments.page(connection, wanted, before=before, limit=limit + 1)
            ids = [experiment.id for experiment in found]
            return found, experiments.trial_counts(connection, ids)

        found, counts = await self._core.database.read(work)
        more = len(found) > limit
        return pb2.ListExperimentsResponse(
            experiments=[
                self._told(experiment, counts.get(experiment.id, {}), with_config=False)
                for experiment in found[:limit]
            ],
            next_page_token=encode_token(request, found[limit - 1].number) if more else "",
        )

    async def PauseExperiment(
        self, request: pb2.PauseExperimentRequest, context: Any
    ) -> pb2.PauseExperimentResponse:
        """Asks running trials to checkpoint and exit."""
        changed = await self._change(request.experiment, commands.pause)
        return pb2.PauseExperimentResponse(experiment=changed)

    async def ActivateExperiment(
        self, request: pb2.ActivateExperimentRequest, context: Any
    ) -> pb2.ActivateExperimentResponse:
        """Lets a paused experiment go on."""
        changed = await self._change(request.experiment, commands.activate)
        return pb2.ActivateExperimentResponse(experiment=changed)

    async def CancelExperiment(
        self, request: pb2.CancelExperimentRequest, context: Any
    ) -> pb2.CancelExperimentResponse:
        """Ends an experiment after its trials had the chance to checkpoint."""
        changed = await self._change(request.experiment, commands.cancel)
        return pb2.CancelExperimentResponse(experiment=changed)

    async def KillExperiment(
        self, request: pb2.KillExperimentRequest, context: Any
    ) -> pb2.KillExperimentResponse:
        """Ends an experiment at once."""
        changed = await self._change(request.experiment, commands.kill)
        self._adopt(changed.experiment_id)
        return pb2.KillExperimentResponse(experiment=changed)

    async def ArchiveExperiment(
        self, request: pb2.ArchiveExperimentRequest, context: Any
    ) -> pb2.ArchiveExperimentResponse:
        """Hides an ended experiment from lists, or shows it again."""

        def work(connection: Connection, experiment: Experiment, moment: Moment) -> None:
            commands.archive(connection, experiment, archived=request.archived, moment=moment)

        return pb2.ArchiveExperimentResponse(experiment=await self._change(request.experiment, work))

    async def DeleteExperiment(
        self, request: pb2.DeleteExperimentRequest, context: Any
    ) -> pb2.DeleteExperimentResponse:
        """Removes an ended experiment with all it has."""
        message = await self._change(request.experiment, commands.begin_deletion)
        self._adopt(message.experiment_id)
        return pb2.DeleteExperimentResponse(experiment=message)

    async def WatchExperiment(
        self, request: pb2.WatchExperimentRequest, context: Any
    ) -> AsyncIterator[pb2.WatchExperimentResponse]:
        """Sends the experiment at once, then after every change, until it ends."""
        first = await self._core.database.read(lambda c: self._core.experiment(c, request.experiment))
        seen = request.after_revision
        quiet = 0.0
        with self._core.notifier.subscribe(first.id, (first.id, "watch")) as changes:
            while not self._core.notifier.closed:
                response = await self._core.database.read(
                    partial(
                        self._snapshot,
                        experiment_id=first.id,
                        since=seen,
                        with_trials=request.include_trials,
                    )
                )
                if response.experiment.revision > seen:
                    seen, quiet = response.experiment.revision, 0.0
                    yield response
                    if _is_over(response.experiment.state):
                        return
                elif quiet >= _HEARTBEAT_SECONDS:
                    quiet = 0.0
                    yield pb2.WatchExperimentResponse()
                await changes.wait(_RECHECK_SECONDS)
                quiet += _RECHECK_SECONDS

    async def GetModelDefinition(
        self, request: pb2.GetModelDefinitionRequest, context: Any
    ) -> AsyncIterator[pb2.GetModelDefinitionResponse]:
        """Sends the model definition chunk by chunk."""
        read = self._core.database.read
        experiment = await read(lambda c: self._core.experiment(c, request.experiment))
        position = 0
        while True:
            chunk = await read(
                partial(experiments.definition_chunk, experiment_id=experiment.id, position=position)
            )
            if chunk is None:
                return
            yield pb2.GetModelDefinitionResponse(chunk=chunk)
            position += 1

    async def _change(
        self,
        key: pb2.ExperimentKey,
        change: Callable[[Connection, Experiment, Moment], None],
    ) -> experiment_pb2.Experiment:
        moment = self._core.moment()

        def work(connection: Connection) -> experiment_pb2.Experiment:
            experiment = self._core.experiment(connection, key)
            change(connection, experiment, moment)
            changed = experiments.get(connection, experiment_id=experiment.id)
            return self._message(connection, changed, with_config=False)

        message = await self._core.database.write(work)
        self._core.notifier.notify(message.experiment_id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)
        return message

    def _message(
        self, connection: Connection, experiment: Experiment, *, with_config: bool
    ) -> experiment_pb2.Experiment:
        counts = experiments.trial_counts(connection, [experiment.id]).get(experiment.id, {})
        return self._told(experiment, counts, with_config=with_config)

    def _told(
        self, experiment: Experiment, counts: dict[str, int], *, with_config: bool
    ) -> experiment_pb2.Experiment:
        explanation = self._wait_reasons.explain_experiment(experiment, counts)
        return experiment_message(experiment, counts, with_config=with_config, explanation=explanation)

    def _snapshot(
        self, connection: Connection, experiment_id: str, since: int, *, with_trials: bool
    ) -> pb2.WatchExperimentResponse:
        experiment = experiments.get(connection, experiment_id=experiment_id)
        if experiment.revision <= since:
            return pb2.WatchExperimentResponse()
        changed = trials.of_experiment(connection, experiment_id, revision=since) if with_trials else []
        return pb2.WatchExperimentResponse(
            experiment=self._message(connection, experiment, with_config=False),
            trials=[
                trial_message(trial, experiment, explanation=self._wait_reasons.explain(trial))
                for trial in changed
            ],
        )


def _state(number: int) -> ExperimentState:
    try:
        name = experiment_pb2.ExperimentState.Name(number)  # type: ignore[arg-type]
        return ExperimentState(name.removeprefix("EXPERIMENT_STATE_"))
    except ValueError as error:
        raise InvalidArgumentError(f"states holds {number}, which is no state") from error


def _is_over(state: int) -> bool:
    return state in {
        experiment_pb2.EXPERIMENT_STATE_COMPLETED,
        experiment_pb2.EXPERIMENT_STATE_CANCELED,
        experiment_pb2.EXPERIMENT_STATE_ERROR,
        experiment_pb2.EXPERIMENT_STATE_DELETED,
        experiment_pb2.EXPERIMENT_STATE_DELETE_FAILED,
    }
