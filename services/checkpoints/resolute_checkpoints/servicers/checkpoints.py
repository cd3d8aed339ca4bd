"""Handlers of the contract: they read requests, call the registry and write responses."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceServicer
from resolute.contracts.values import to_mapping
from resolute.errors import InvalidArgumentError, PermissionDeniedError, Violation
from resolute_checkpoints import access
from resolute_checkpoints.blobs.examination import Examiner
from resolute_checkpoints.domain.checkpoint import READABLE
from resolute_checkpoints.domain.manifest import MAX_FILES
from resolute_checkpoints.registry.checkpoints import Registry
from resolute_checkpoints.registry.downloads import Downloads
from resolute_checkpoints.registry.reuse import Reuse
from resolute_checkpoints.retention.deletion import Deletions
from resolute_checkpoints.retention.enforcement import RetentionEnforcer
from resolute_checkpoints.servicers import checkpoint_messages
from resolute_checkpoints.servicers.identifiers import parse_optional_uuid, parse_uuid
from resolute_checkpoints.store.records import Position, Query
from resolute_serving import pagination
from resolute_serving.context import TrialRun, current_principal

_FILE_PAGE = 10_000


class CheckpointsServicer(CheckpointsServiceServicer):
    """Serves ``CheckpointsService``.

    Args:
        registry: Begins, commits, lists.
        reuse: Finds files that need not be sent.
        downloads: Reads files.
        deletions: Deletes.
        retention: Deletes what is not kept.
        examiner: Tries stores out.
    """

    def __init__(
        self,
        *,
        registry: Registry,
        reuse: Reuse,
        downloads: Downloads,
        deletions: Deletions,
        retention: RetentionEnforcer,
        examiner: Examiner,
    ) -> None:
        self._registry = registry
        self._reuse = reuse
        self._downloads = downloads
        self._deletions = deletions
        self._retention = retention
        self._examiner = examiner

    async def BeginCheckpoint(
        self, request: messages.BeginCheckpointRequest, context: Any
    ) -> messages.BeginCheckpointResponse:
        """Begins a checkpoint."""
        principal = current_principal.get()
        workspace = principal.workspace if isinstance(principal, TrialRun) else ""
        checkpoint = await self._registry.begin(checkpoint_messages.to_begin(request, workspace=workspace))
        return messages.BeginCheckpointResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def ReuseFiles(
        self, request: messages.ReuseFilesRequest, context: Any
    ) -> messages.ReuseFilesResponse:
        """Finds files that need not be sent."""
        found = await self._reuse.find(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            checkpoint_messages.to_files(request.files, limit=checkpoint_messages.MAX_REUSED),
            principal=current_principal.get(),
        )
        return messages.ReuseFilesResponse(
            candidates=found.candidates,
            held=[
                messages.ReuseFilesResponse.Held(
                    path=path, home_checkpoint_id=home.checkpoint_id, home_path=home.path
                )
                for path, home in found.held.items()
            ],
        )

    async def PresignUploads(
        self, request: messages.PresignUploadsRequest, context: Any
    ) -> messages.PresignUploadsResponse:
        """Gives URLs to put files to."""
        uploads = await self._registry.upload_urls(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            checkpoint_messages.to_files(request.files),
            principal=current_principal.get(),
        )
        return messages.PresignUploadsResponse(
            uploads=[
                messages.PresignUploadsResponse.Upload(
                    path=upload.path,
                    urls=upload.urls,
                    part_size=upload.part_size,
                    upload_id=upload.upload_id,
                    headers=upload.headers,
                )
                for upload in uploads
            ]
        )

    async def CommitCheckpoint(
        self, request: messages.CommitCheckpointRequest, context: Any
    ) -> messages.CommitCheckpointResponse:
        """Makes a checkpoint visible."""
        commit = checkpoint_messages.to_commit(request)
        checkpoint = await self._registry.commit(commit, principal=current_principal.get())
        return messages.CommitCheckpointResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def CommitCheckpointInPieces(
        self, request_iterator: AsyncIterator[messages.CommitCheckpointInPiecesRequest], context: Any
    ) -> messages.CommitCheckpointInPiecesResponse:
        """Makes a checkpoint of many files visible."""
        whole: messages.CommitCheckpointRequest | None = None
        async for request in request_iterator:
            if whole is None:
                whole = request.piece
            else:
                whole.files.extend(request.piece.files)
                whole.multiparts.extend(request.piece.multiparts)
            if len(whole.files) > MAX_FILES:
                break
        commit = checkpoint_messages.to_commit(whole or messages.CommitCheckpointRequest())
        checkpoint = await self._registry.commit(commit, principal=current_principal.get())
        return messages.CommitCheckpointInPiecesResponse(
            checkpoint=checkpoint_messages.from_checkpoint(checkpoint)
        )

    async def AbortCheckpoint(
        self, request: messages.AbortCheckpointRequest, context: Any
    ) -> messages.AbortCheckpointResponse:
        """Gives up a checkpoint."""
        checkpoint_id = parse_uuid(request.checkpoint_id, field="checkpoint_id")
        await self._registry.abort(checkpoint_id, run=request.run, principal=current_principal.get())
        return messages.AbortCheckpointResponse()

    async def GetCheckpoint(
        self, request: messages.GetCheckpointRequest, context: Any
    ) -> messages.GetCheckpointResponse:
        """Gives a checkpoint."""
        checkpoint_id = parse_uuid(request.checkpoint_id, field="checkpoint_id")
        checkpoint = await self._registry.get(checkpoint_id, principal=current_principal.get())
        return messages.GetCheckpointResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def ListCheckpoints(
        self, request: messages.ListCheckpointsRequest, context: Any
    ) -> messages.ListCheckpointsResponse:
        """Lists checkpoints."""
        page = await self._registry.page(
            _query(request),
            after=_position(request),
            size=pagination.page_size(request.page_size),
        )
        following = page.following
        return messages.ListCheckpointsResponse(
            checkpoints=[checkpoint_messages.from_checkpoint(checkpoint) for checkpoint in page.checkpoints],
            next_page_token=""
            if following is None
            else pagination.encode_token(request, [following.list_time, following.checkpoint_id]),
        )

    async def ListFiles(self, request: messages.ListFilesRequest, context: Any) -> messages.ListFilesResponse:
        """Lists the files of a checkpoint."""
        page = await self._registry.file_page(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            after=_file_position(request),
            size=pagination.page_size(request.page_size, default=_FILE_PAGE, most=_FILE_PAGE),
            principal=current_principal.get(),
        )
        following = page.following
        return messages.ListFilesResponse(
            files=[checkpoint_messages.from_file(file) for file in page.files],
            next_page_token="" if following is None else pagination.encode_token(request, following),
        )

    async def PresignDownloads(
        self, request: messages.PresignDownloadsRequest, context: Any
    ) -> messages.PresignDownloadsResponse:
        """Gives URLs to get files from."""
        checkpoint_messages.require_count(request.paths, field="paths")
        downloads = await self._downloads.download_urls(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            list(request.paths),
            principal=current_principal.get(),
        )
        return messages.PresignDownloadsResponse(
            downloads=[
                messages.PresignDownloadsResponse.Download(file=checkpoint_messages.from_file(file), url=url)
                for file, url in downloads
            ]
        )

    async def ReadFile(
        self, request: messages.ReadFileRequest, context: Any
    ) -> AsyncIterator[messages.ReadFileResponse]:
        """Sends a file."""
        chunks = self._downloads.read(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            request.path,
            offset=request.offset,
            principal=current_principal.get(),
        )
        # A caller that hangs up must close the file now, not when garbage is collected.
        async with contextlib.aclosing(chunks):
            async for data in chunks:
                yield messages.ReadFileResponse(data=data)

    async def UpdateMetadata(
        self, request: messages.UpdateMetadataRequest, context: Any
    ) -> messages.UpdateMetadataResponse:
        """Changes metadata."""
        checkpoint = await self._registry.update_metadata(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            to_mapping(request.patch),
            principal=current_principal.get(),
        )
        return messages.UpdateMetadataResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def PinCheckpoints(
        self, request: messages.PinCheckpointsRequest, context: Any
    ) -> messages.PinCheckpointsResponse:
        """Keeps checkpoints, or lets them go."""
        await self._deletions.pin(_ids(request.checkpoint_ids), pinned=request.pinned)
        return messages.PinCheckpointsResponse()

    async def DeleteCheckpoints(
        self, request: messages.DeleteCheckpointsRequest, context: Any
    ) -> messages.DeleteCheckpointsResponse:
        """Removes checkpoints."""
        await self._deletions.delete(
            _ids(request.checkpoint_ids), list(request.globs), principal=current_principal.get()
        )
        return messages.DeleteCheckpointsResponse()

    async def Seal(self, request: messages.SealRequest, context: Any) -> messages.SealResponse:
        """Raises the floor of a trial."""
        trial_id = parse_uuid(request.trial_id, field="trial_id")
        latest = await self._registry.seal(trial_id, min_run=request.min_run)
        return messages.SealResponse(
            latest=None if latest is None else checkpoint_messages.from_checkpoint(latest)
        )

    async def ExamineStorage(
        self, request: messages.ExamineStorageRequest, context: Any
    ) -> messages.ExamineStorageResponse:
        """Tries a store out."""
        findings = await self._examiner.examine(checkpoint_messages.to_storage(request.storage))
        return messages.ExamineStorageResponse(
            findings=[
                messages.ExamineStorageResponse.Finding(
                    step=finding.step, passed=finding.passed, detail=finding.detail
                )
                for finding in findings
            ]
        )

    async def MeasureStorage(
        self, request: messages.MeasureStorageRequest, context: Any
    ) -> messages.MeasureStorageResponse:
        """Tells how much the checkpoints of a workspace take."""
        return messages.MeasureStorageResponse(bytes=await self._registry.size_of(request.workspace))

    async def ApplyRetention(
        self, request: messages.ApplyRetentionRequest, context: Any
    ) -> messages.ApplyRetentionResponse:
        """Deletes what a policy does not keep."""
        wish = checkpoint_messages.to_retention_request(request)
        deleted = await (self._retention.preview(wish) if request.preview else self._retention.apply(wish))
        return messages.ApplyRetentionResponse(deleted_checkpoint_ids=deleted)

    async def DeleteExperimentCheckpoints(
        self, request: messages.DeleteExperimentCheckpointsRequest, context: Any
    ) -> messages.DeleteExperimentCheckpointsResponse:
        """Removes everything of an experiment."""
        await self._deletions.delete_experiment(parse_uuid(request.experiment_id, field="experiment_id"))
        return messages.DeleteExperimentCheckpointsResponse()


def _ids(texts: Sequence[str]) -> list[str]:
    checkpoint_messages.require_count(texts, field="checkpoint_ids")
    return [parse_uuid(text, field="checkpoint_ids") for text in texts]


def _file_position(request: messages.ListFilesRequest) -> int:
    decoded = pagination.decode_token(request)
    return decoded if isinstance(decoded, int) else -1


def _position(request: messages.ListCheckpointsRequest) -> Position | None:
    decoded = pagination.decode_token(request)
    if decoded is None:
        return None
    try:
        list_time, checkpoint_id = decoded
        return Position(float(list_time), str(checkpoint_id))
    except (TypeError, ValueError) as error:
        message = "page_token is not one that this service gave; begin with the first page"
        raise InvalidArgumentError(message, violations=[Violation("page_token", message)]) from error


def _query(request: messages.ListCheckpointsRequest) -> Query:
    trial_id = parse_optional_uuid(request.trial_id, field="trial_id")
    experiment_id = parse_optional_uuid(request.experiment_id, field="experiment_id")
    if bool(trial_id) == bool(experiment_id):
        message = "trial_id and experiment_id: set exactly one of them"
        raise InvalidArgumentError(message, violations=[Violation("trial_id", message)])
    states = checkpoint_messages.to_states(request.states) or READABLE
    hidden = [state for state in states if not state.was_committed]
    if hidden and not access.can_see_uploads(current_principal.get(), trial_id):
        raise PermissionDeniedError(
            f"checkpoints that are {hidden[0].value} are for the trial that writes them; list other states"
        )
    return Query(trial_id=trial_id, experiment_id=experiment_id, states=states)
