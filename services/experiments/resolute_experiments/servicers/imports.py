"""Handlers of ImportsService."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from resolute.api.experiments.v1 import experiment_pb2, imports_service_pb2_grpc
from resolute.api.experiments.v1 import imports_service_pb2 as pb2
from resolute.contracts.documents.faults import ConfigError
from resolute.contracts.times import seconds_of
from resolute.contracts.values import to_mapping
from resolute.errors import DataLossError
from resolute_experiments.accounts.store.workspaces import UNCATEGORIZED
from resolute_experiments.admission import model_definition
from resolute_experiments.admission.config_reader import ConfigReader
from resolute_experiments.admission.storage_roots import StorageRoots
from resolute_experiments.context import ServiceContext
from resolute_experiments.imports import finding, imported
from resolute_experiments.lifecycle import edits
from resolute_experiments.servicers.checks.sizes import check_config_size, check_metadata_size
from resolute_experiments.servicers.messages.experiments import (
    experiment_message,
    experiment_state,
    trial_state,
)
from resolute_experiments.specs.storage import storage
from resolute_experiments.states import ENDED_EXPERIMENTS, ENDED_TRIALS
from resolute_experiments.store import experiments
from resolute_experiments.topics import watched
from resolute_experiments.unmanaged.tracking import MAX_EXTERNAL_ID
from resolute_serving.auth.grants import current_grants
from resolute_serving.validation import check_length, check_unique, invalid, parse_uuid

MAX_TRIALS = 500
_MAX_TEXT = 10_000


class ImportsServicer(imports_service_pb2_grpc.ImportsServiceServicer):
    """Imports experiments of other clusters.

    Args:
        core: The context that all handlers share.
        reader: Reads configs.
        storage_roots: Checks where checkpoints may be stored.
        adopt: Starts the controller of an experiment, which sends its data to other services.
    """

    def __init__(
        self,
        core: ServiceContext,
        *,
        reader: ConfigReader,
        storage_roots: StorageRoots,
        adopt: Callable[[str], None],
    ) -> None:
        self._core = core
        self._adopt = adopt
        self._reader = reader
        self._storage_roots = storage_roots

    async def ImportExperiment(self, request_iterator: Any, context: Any) -> pb2.ImportExperimentResponse:
        """Creates an experiment that ended elsewhere."""
        request: pb2.ImportExperimentRequest | None = None
        archive = model_definition.Archive()
        async for part in request_iterator:
            request = request or part
            archive.add(part.model_definition)
        if request is None:
            raise invalid("experiment", "no message was sent; the first one says what the experiment is")
        _check_external_id(request.external_id)
        check_config_size(request.config_yaml)
        try:
            await asyncio.to_thread(model_definition.check, archive.data)
        except DataLossError as error:
            raise invalid("model_definition", str(error)) from error
        try:
            read = await self._reader.imported(request.experiment.name, request.config_yaml)
        except ConfigError as error:  # its name alone: a config that cannot be read is kept as it is
            raise invalid("experiment.name", str(error)) from error
        await self._storage_roots.require(read.content, by_operator=True)
        content = read.content
        if request.copies_checkpoints:
            content = await self._reader.with_own_storage(content)
        wanted = _experiment(request, config=content, definition=archive.data)
        write = partial(imported.write_experiment, imported=wanted, now=self._core.clock.time())
        written = await self._core.database.write(write)
        self._core.notifier.notify(watched(written.id))
        notes = await self._core.database.read(lambda c: experiments.notes(c, written.id))
        place = storage(written.config)
        return pb2.ImportExperimentResponse(
            experiment=experiment_message(written, {}, whole=True, notes=notes),
            finished=not written.importing,
            storage=place if read.names_storage else None,
            copies_checkpoints=place != storage(read.content),
            config_fault=read.fault,
        )

    async def ImportTrials(self, request: pb2.ImportTrialsRequest, context: Any) -> pb2.ImportTrialsResponse:
        """Creates trials that ended elsewhere."""
        experiment_id = parse_uuid(request.experiment_id, field="experiment_id")
        if len(request.trials) > MAX_TRIALS:
            many = len(request.trials)
            raise invalid("trials", f"trials has {many} entries; it may have {MAX_TRIALS}")
        wanted = [_trial(trial) for trial in request.trials]
        check_unique((trial.external_id for trial in wanted), field="trials.external_id")
        write = partial(imported.write_trials, experiment_id=experiment_id, imported=wanted)
        written = await self._core.database.write(write)
        self._core.notifier.notify(watched(experiment_id))
        return pb2.ImportTrialsResponse(
            trial_ids=[id_ for id_, _ in written], trial_numbers=[number for _, number in written]
        )

    async def FinishImport(self, request: pb2.FinishImportRequest, context: Any) -> pb2.FinishImportResponse:
        """Notes that an experiment is whole."""
        experiment_id = parse_uuid(request.experiment_id, field="experiment_id")
        await self._core.database.write(partial(imported.finish, experiment_id=experiment_id))
        self._adopt(experiment_id)
        self._core.notifier.notify(watched(experiment_id))
        return pb2.FinishImportResponse()

    async def ListImported(self, request: pb2.ListImportedRequest, context: Any) -> pb2.ListImportedResponse:
        """Finds what had a number on another cluster."""
        kind = request.WhichOneof("old_number")
        if kind is None:
            raise invalid("old_number", "give experiment_number or trial_number: its number on that cluster")
        number = request.trial_number if kind == "trial_number" else request.experiment_number
        find = finding.find_trials if kind == "trial_number" else finding.find_experiments
        read = partial(find, number=number, visible=current_grants.get().visible)
        return pb2.ListImportedResponse(
            found=[
                pb2.ListImportedResponse.Found(external_id=row.external_id, number=row.number, id=row.id)
                for row in await self._core.database.read(read)
            ]
        )


def _check_external_id(external_id: str) -> None:
    if not 0 < len(external_id) <= MAX_EXTERNAL_ID:
        raise invalid("external_id", f"external_id must have 1 to {MAX_EXTERNAL_ID} characters")


def _experiment(
    request: pb2.ImportExperimentRequest, *, config: dict[str, Any], definition: bytes
) -> imported.ImportedExperiment:
    given: experiment_pb2.Experiment = request.experiment
    texts = edits.Edits.read(given, edits.FIELDS)
    state = experiment_state(given.state)
    if state not in ENDED_EXPERIMENTS:
        raise invalid("experiment.state", f"the experiment is {state.value}; import it when it has ended")
    for field in ("owner_name", "failure"):
        check_length(getattr(given, field), field=f"experiment.{field}", most=_MAX_TEXT)
    if not math.isfinite(given.progress):
        raise invalid(
            "experiment.progress", f"experiment.progress is {given.progress}; it must be a number from 0 to 1"
        )
    given_texts = {"name": given.name, "description": given.description, "labels": list(texts.labels or ())}
    return imported.ImportedExperiment(
        external_id=request.external_id,
        name=given.name,
        description=given.description,
        labels=texts.labels or (),
        notes=given.notes,
        state=state,
        archived=given.archived,
        owner=given.owner_name,
        workspace=given.workspace_name or UNCATEGORIZED,
        project=given.project_name or UNCATEGORIZED,
        config={**config, **given_texts},
        progress=min(max(given.progress, 0.0), 1.0),
        failure=given.failure,
        created_at=seconds_of(given.create_time),
        ended_at=_moment(given.end_time),
        definition=definition,
    )


def _trial(given: pb2.ImportedTrial) -> imported.ImportedTrial:
    _check_external_id(given.external_id)
    check_metadata_size(given)
    check_length(given.explanation, field="trials.explanation", most=_MAX_TEXT)
    state = trial_state(given.state)
    if state not in ENDED_TRIALS:
        raise invalid(
            "trials.state", f"trial {given.external_id} is {state.value}; import it when it has ended"
        )
    source = given.source_checkpoint_id
    return imported.ImportedTrial(
        external_id=given.external_id,
        state=state,
        hparams=to_mapping(given.hparams),
        restarts=max(given.restarts, 0),
        created_at=seconds_of(given.create_time),
        ended_at=_moment(given.end_time),
        explanation=given.explanation,
        metadata=to_mapping(given.metadata),
        source_checkpoint_id=parse_uuid(source, field="trials.source_checkpoint_id") if source else "",
    )


def _moment(message: Timestamp) -> float | None:
    return seconds_of(message) or None
