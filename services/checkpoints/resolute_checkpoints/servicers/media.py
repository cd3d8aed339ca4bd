"""Handlers of ``MediaService``."""

from __future__ import annotations

from functools import partial
from typing import Any

from resolute.api.checkpoints.v1 import media_service_pb2 as messages
from resolute.api.checkpoints.v1.media_service_pb2_grpc import MediaServiceServicer
from resolute.contracts.files.storage_names import storage_name
from resolute_checkpoints.media import queries
from resolute_checkpoints.media.contents import Contents
from resolute_checkpoints.media.intake import Intake
from resolute_checkpoints.media.parsing import parse_batch
from resolute_checkpoints.servicers.checkpoint_messages import require_count, to_storage
from resolute_checkpoints.servicers.identifiers import parse_uuid
from resolute_serving.context import TrialRun, current_principal
from resolute_serving.database.engine import Database
from resolute_serving.ingestion.batches import parse
from resolute_serving.ingestion.byte_limits import workspace_of_caller

_MAX_TRIALS = 100


class MediaServicer(MediaServiceServicer):
    """Serves ``MediaService``.

    Args:
        database: The service's database.
        intake: Stores batches.
        contents: Stores large contents.
    """

    def __init__(self, database: Database, *, intake: Intake, contents: Contents) -> None:
        self._database = database
        self._intake = intake
        self._contents = contents

    async def IngestMedia(
        self, request: messages.IngestMediaRequest, context: Any
    ) -> messages.IngestMediaResponse:
        """Takes a batch of media exactly once."""
        storage = to_storage(request.storage) if request.HasField("storage") else None
        batch = await parse(request, partial(parse_batch, storage=storage))
        principal = current_principal.get()
        listed = isinstance(principal, TrialRun) and principal.storage != storage_name(request.storage)
        outcome = await self._intake.ingest(batch, workspace=workspace_of_caller(), listed=listed)
        dropped = outcome.usage.dropped
        return messages.IngestMediaResponse(
            next_sequence=outcome.next_sequence,
            refusals=[
                messages.IngestMediaResponse.Refusal(sequence=refusal.sequence, message=refusal.message)
                for refusal in outcome.refusals
            ],
            dropped=queries.to_dropped(batch.origin.trial_id, outcome.usage) if dropped else None,
        )

    async def ListMediaNames(
        self, request: messages.ListMediaNamesRequest, context: Any
    ) -> messages.ListMediaNamesResponse:
        """Lists the names under which trials logged media."""
        require_count(request.trial_ids, field="trial_ids", least=1, limit=_MAX_TRIALS)
        trials = [parse_uuid(trial, field="trial_ids") for trial in request.trial_ids]
        return await self._database.read(
            lambda link: messages.ListMediaNamesResponse(
                names=queries.list_names(link, trials), dropped=queries.list_dropped(link, trials)
            )
        )

    async def ListMedia(self, request: messages.ListMediaRequest, context: Any) -> messages.ListMediaResponse:
        """Lists media of a trial by steps."""
        trial = parse_uuid(request.trial_id, field="trial_id")
        found, token = await self._database.read(lambda link: queries.list_media(link, trial, request))
        return messages.ListMediaResponse(media=found, next_page_token=token)

    async def GetMedia(self, request: messages.GetMediaRequest, context: Any) -> messages.GetMediaResponse:
        """Returns one object with its content."""
        trial = parse_uuid(request.trial_id, field="trial_id")
        found, experiment, storage = await self._database.read(
            lambda link: queries.find(link, trial, request.media_id)
        )
        if storage is not None:
            found.content = await self._contents.read(storage, experiment, found.digest, size=found.size)
        return messages.GetMediaResponse(media=found)
