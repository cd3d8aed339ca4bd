"""Handlers of ExperimentsService."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2, experiments_service_pb2_grpc
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError
from resolute_experiments.admission import model_definition
from resolute_experiments.admission.acceptance import Accepted
from resolute_experiments.admission.submissions import Submission, Submissions
from resolute_experiments.context import ServiceContext
from resolute_experiments.filters.experiments import Asking, check_names, condition_of, names_archived
from resolute_experiments.filters.parser import parse
from resolute_experiments.lifecycle import commands, edits
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.checks.page_bytes import shortened_page
from resolute_experiments.servicers.checks.sizes import check_config_size, check_filter
from resolute_experiments.servicers.checks.sources import source_content
from resolute_experiments.servicers.messages.experiments import (
    experiment_kind,
    experiment_message,
    experiment_state,
    experiment_state_number,
)
from resolute_experiments.servicers.messages.summaries import Summaries
from resolute_experiments.servicers.watching.revisions import Revisions
from resolute_experiments.servicers.watching.watch import Watch
from resolute_experiments.specs.search import search_spec
from resolute_experiments.store import experiments, runs
from resolute_experiments.store.experiments import Experiment, Filter, Totals
from resolute_experiments.timing import Timing
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES, watched
from resolute_serving.auth.grants import current_grants
from resolute_serving.context import User, current_principal
from resolute_serving.updates import check_etag, update_paths
from resolute_serving.validation import invalid

MAX_MODEL_DEFINITION_BYTES = 2 * 1024 * 1024
"""Of a model definition in one message; larger ones come in chunks."""


class ExperimentsServicer(experiments_service_pb2_grpc.ExperimentsServiceServicer):
    """The handlers of experiments: submission, changes, lists and watches.

    Args:
        core: The context that all handlers share.
        wait_reasons: The reasons why trials wait.
        submissions: Accepts submissions.
        adopt: Starts the controller of an experiment.
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
        self._revisions = Revisions(core.database)
        self._wait_reasons = wait_reasons
        self._summaries = Summaries(wait_reasons)
        self._submissions = submissions
        self._adopt = adopt

    async def CreateExperiment(
        self, request: pb2.CreateExperimentRequest, context: Any
    ) -> pb2.CreateExperimentResponse:
        """Creates an experiment from one message."""
        if len(request.model_definition) > MAX_MODEL_DEFINITION_BYTES:
            raise invalid(
                "model_definition",
                f"model_definition has {len(request.model_definition)} bytes; send more than "
                f"{MAX_MODEL_DEFINITION_BYTES} with CreateExperimentInChunks",
            )
        created, warnings = await self._create(request, request.spec, request.model_definition)
        return pb2.CreateExperimentResponse(experiment=created, warnings=warnings)

    async def CreateExperimentInChunks(
        self, request_iterator: Any, context: Any
    ) -> pb2.CreateExperimentInChunksResponse:
        """Creates an experiment from a header and the chunks that follow it."""
        header: pb2.CreateExperimentInChunksRequest.Header | None = None
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
        if header is None:
            raise InvalidArgumentError("no header was sent; it comes first")
        created, warnings = await self._create(header, header.spec, archive.data)
        return pb2.CreateExperimentInChunksResponse(experiment=created, warnings=warnings)

    async def _create(
        self,
        request: pb2.CreateExperimentRequest | pb2.CreateExperimentInChunksRequest.Header,
        spec: pb2.ExperimentSpec,
        archive: bytes,
    ) -> tuple[experiment_pb2.Experiment, Iterable[str]]:
        check_config_size(spec.config_yaml)
        submission = Submission(
            request=request,
            config_yaml=spec.config_yaml,
            template=spec.template,
            paused=spec.paused,
            test_mode=spec.test_mode,
            model_definition=archive,
            kind=experiment_kind(spec.kind),
            source=source_content(spec),
        )
        experiment, warnings = await self._submissions.submit(submission)
        self._adopt(experiment.id)
        return experiment_message(experiment, {}, whole=True, source=submission.source), warnings

    async def ValidateConfig(
        self, request: pb2.ValidateConfigRequest, context: Any
    ) -> pb2.ValidateConfigResponse:
        """Checks a config without creating anything."""
        check_config_size(request.config_yaml)
        accepted = await self._submissions.check(request.config_yaml, template=request.template)
        # Of a config with thousands of values it takes a second, in which other calls must go on.
        return await asyncio.to_thread(_validated, accepted)

    async def GetExperiment(
        self, request: pb2.GetExperimentRequest, context: Any
    ) -> pb2.GetExperimentResponse:
        """Returns an experiment, with its config unless only the rest is wanted."""
        message = await self._core.database.read(
            lambda c: self._message(c, self._core.experiment(c, request.experiment), whole=not request.brief)
        )
        return pb2.GetExperimentResponse(experiment=message)

    async def ListExperiments(
        self, request: pb2.ListExperimentsRequest, context: Any
    ) -> pb2.ListExperimentsResponse:
        """Lists experiments."""
        for field in ("owner_ids", "workspace_ids", "project_ids", "labels"):
            check_filter(request, field)
        now = self._core.clock.time()
        asking = Asking(caller=_caller_name(), dialect=self._core.database.engine.dialect.name, now=now)
        node = parse(request.filter)
        has_archived = request.HasField("archived") and not names_archived(node)
        wanted = Filter(
            condition=None if node is None else condition_of(node, asking),
            states=frozenset(experiment_state(number) for number in request.states),
            owner_ids=frozenset(request.owner_ids),
            workspace_ids=frozenset(request.workspace_ids),
            project_ids=frozenset(request.project_ids),
            labels=frozenset(request.labels),
            name=request.name_contains,
            archived=request.archived if has_archived else None,
            kinds=frozenset(map(experiment_kind, request.kinds or [experiment_pb2.EXPERIMENT_KIND_SEARCH])),
            visible=current_grants.get().visible,
        )

        def work(connection: Connection) -> pb2.ListExperimentsResponse:
            versions, token = experiments.page(connection, request, wanted)
            if node is not None and not versions:
                check_names(connection, node, asking)
            response = pb2.ListExperimentsResponse(next_page_token=token)
            self._summaries.add_to(response.experiments, connection, versions)
            if request.include_totals:
                response.totals.CopyFrom(_totals_message(experiments.totals(connection, wanted)))
            return response

        return await self._core.database.read(partial(shortened_page, work=work, request=request))

    async def UpdateExperiment(
        self, request: pb2.UpdateExperimentRequest, context: Any
    ) -> pb2.UpdateExperimentResponse:
        """Changes what people wrote of an experiment."""
        paths = update_paths(request.update_mask, allowed=edits.FIELDS)
        changes = edits.Edits.read(request.experiment, paths)
        now = self._core.clock.time()

        def work(connection: Connection) -> experiment_pb2.Experiment:
            experiment = self._core.experiment(connection, request.key)
            check_etag(request.etag, revision=experiment.edit_revision, resource=experiment.label)
            edits.apply(connection, experiment, changes, now=now)
            changed = experiments.get(connection, experiment_id=experiment.id)
            return self._message(connection, changed, whole=True)

        message = await self._core.database.write(work)
        self._core.notifier.notify(watched(message.experiment_id))
        return pb2.UpdateExperimentResponse(experiment=message)

    async def PauseExperiment(
        self, request: pb2.PauseExperimentRequest, context: Any
    ) -> pb2.PauseExperimentResponse:
        """Asks running trials to checkpoint and exit."""
        changed = await self._change(request.experiment, commands.pause)
        return pb2.PauseExperimentResponse(experiment=changed)

    async def ActivateExperiment(
        self, request: pb2.ActivateExperimentRequest, context: Any
    ) -> pb2.ActivateExperimentResponse:
        """Lets a paused experiment continue."""
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

        def work(connection: Connection, experiment: Experiment, timing: Timing) -> None:
            commands.archive(connection, experiment, archived=request.archived, timing=timing)

        return pb2.ArchiveExperimentResponse(experiment=await self._change(request.experiment, work))

    async def DeleteExperiment(
        self, request: pb2.DeleteExperimentRequest, context: Any
    ) -> pb2.DeleteExperimentResponse:
        """Removes an ended experiment with all it has."""
        message = await self._change(request.experiment, commands.begin_deletion)
        self._adopt(message.experiment_id)
        return pb2.DeleteExperimentResponse(experiment=message)

    def WatchExperiments(
        self, request: pb2.WatchExperimentsRequest, context: Any
    ) -> AsyncIterator[pb2.WatchExperimentsResponse]:
        """Sends the present state of what is watched, then every change."""
        return Watch(self._core, self._revisions, self._wait_reasons, request).responses()

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
        key: experiment_pb2.ExperimentKey,
        change: Callable[[Connection, Experiment, Timing], None],
    ) -> experiment_pb2.Experiment:
        timing = self._core.timing()

        def work(connection: Connection) -> experiment_pb2.Experiment:
            experiment = self._core.experiment(connection, key)
            change(connection, experiment, timing)
            return self._message(connection, experiments.get(connection, experiment_id=experiment.id))

        message = await self._core.database.write(work)
        self._core.notifier.notify(message.experiment_id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)
        return message

    def _message(
        self, connection: Connection, experiment: Experiment, *, whole: bool = False
    ) -> experiment_pb2.Experiment:
        counts = experiments.trial_counts(connection, [experiment.id]).get(experiment.id, {})
        return experiment_message(
            experiment,
            counts,
            times=runs.times_of_experiments(connection, [experiment.id]).get(experiment.id),
            whole=whole,
            notes=experiments.notes(connection, experiment.id) if whole else "",
            wait_reason=self._wait_reasons.explain_experiment(experiment, counts),
            source=experiments.source(connection, experiment.id) if whole else b"",
            checkpoint_directories=runs.checkpoint_directories(connection, experiment.id) if whole else (),
        )


def _validated(accepted: Accepted) -> pb2.ValidateConfigResponse:
    return pb2.ValidateConfigResponse(
        config=to_value(accepted.config.to_dict(redact=True)),
        warnings=accepted.warnings,
        search=search_spec(accepted.config.to_dict()),
    )


def _caller_name() -> str:
    principal = current_principal.get()
    return principal.name if isinstance(principal, User) else ""


def _totals_message(totals: Totals) -> pb2.ExperimentTotals:
    return pb2.ExperimentTotals(
        states=[
            pb2.ExperimentTotals.StateCount(state=experiment_state_number(state), killed=killed, count=count)
            for (state, killed), count in totals.states.items()
        ],
        trials=totals.trials,
    )
