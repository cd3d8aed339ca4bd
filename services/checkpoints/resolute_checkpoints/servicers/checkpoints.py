"""Handlers of ``CheckpointsService``: they read requests, call the registry and write responses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceServicer
from resolute.contracts.files.storage_names import storage_name
from resolute.contracts.values import to_mapping
from resolute.errors import PermissionDeniedError
from resolute_checkpoints import access
from resolute_checkpoints.blobs.examination import Examiner
from resolute_checkpoints.domain.checkpoint import READABLE
from resolute_checkpoints.domain.globs import MAX_GLOBS
from resolute_checkpoints.registry.checkpoints import Registry
from resolute_checkpoints.registry.downloads import MAX_HOLD_SECONDS, Downloads
from resolute_checkpoints.registry.imports import Imports
from resolute_checkpoints.registry.reuse import Reuse
from resolute_checkpoints.retention.deletion import Deletions
from resolute_checkpoints.retention.enforcement import RetentionEnforcer
from resolute_checkpoints.servicers import checkpoint_messages
from resolute_checkpoints.servicers.chunked_commits import ChunkedCommits
from resolute_checkpoints.servicers.identifiers import parse_uuid
from resolute_checkpoints.servicers.import_messages import to_imported_checkpoints
from resolute_checkpoints.store import identities, ranks, records, usage
from resolute_checkpoints.store.records import CheckpointFilter
from resolute_serving.context import TrialRun, current_principal
from resolute_serving.database.engine import Database
from resolute_serving.database.remembered import Remembered
from resolute_serving.validation import invalid

_MAX_FILTER_IDS = 100


class CheckpointsServicer(CheckpointsServiceServicer):
    """Serves ``CheckpointsService``.

    Args:
        database: The service's database, for lists.
        registry: Begins, commits and changes checkpoints.
        reuse: Finds files that need not be uploaded.
        downloads: Reads files.
        deletions: Deletes checkpoints.
        retention: Deletes checkpoints that a policy does not keep.
        examiner: Checks storages.
        imports: Imports checkpoints of other clusters.
    """

    def __init__(
        self,
        *,
        database: Database,
        registry: Registry,
        reuse: Reuse,
        downloads: Downloads,
        deletions: Deletions,
        retention: RetentionEnforcer,
        examiner: Examiner,
        imports: Imports,
    ) -> None:
        self._database = database
        self._registry = registry
        self._reuse = reuse
        self._downloads = downloads
        self._deletions = deletions
        self._retention = retention
        self._examiner = examiner
        self._imports = imports
        self._unranked_trials = Remembered(database, ranks.unranked_trials)
        self._chunked_commits = ChunkedCommits(self._commit_owner)

    async def BeginCheckpoint(
        self, request: messages.BeginCheckpointRequest, context: Any
    ) -> messages.BeginCheckpointResponse:
        """Begins a checkpoint."""
        principal = current_principal.get()
        run = principal if isinstance(principal, TrialRun) else None
        begin = checkpoint_messages.to_begin(
            request,
            workspace=run.workspace if run else "",
            workspace_id=(run.workspace_id or None) if run else None,
            recorded=run is None or run.storage == storage_name(request.storage),
        )
        checkpoint = await self._registry.begin(begin)
        return messages.BeginCheckpointResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def ReuseFiles(
        self, request: messages.ReuseFilesRequest, context: Any
    ) -> messages.ReuseFilesResponse:
        """Finds files that need not be uploaded."""
        reusable = await self._reuse.find(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            checkpoint_messages.to_files(request.files, limit=checkpoint_messages.MAX_REUSED),
            principal=current_principal.get(),
        )
        return messages.ReuseFilesResponse(
            candidate_paths=reusable.candidates,
            reused=[
                messages.ReuseFilesResponse.ReusedFile(
                    path=path, location=checkpoint_messages.from_location(home)
                )
                for path, home in reusable.held.items()
            ],
        )

    async def PresignUploads(
        self, request: messages.PresignUploadsRequest, context: Any
    ) -> messages.PresignUploadsResponse:
        """Returns URLs to upload files to."""
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
                    upload_id=upload.upload_id or None,
                    headers=upload.headers,
                )
                for upload in uploads
            ]
        )

    async def CommitCheckpoint(
        self, request: messages.CommitCheckpointRequest, context: Any
    ) -> messages.CommitCheckpointResponse:
        """Makes a checkpoint visible."""
        # A list of thousands of files takes longer to check than the event loop may be held up.
        commit = await asyncio.to_thread(checkpoint_messages.to_commit, request)
        checkpoint = await self._registry.commit(commit, principal=current_principal.get())
        return messages.CommitCheckpointResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def CommitCheckpointInChunks(
        self, request_iterator: AsyncIterator[messages.CommitCheckpointInChunksRequest], context: Any
    ) -> messages.CommitCheckpointInChunksResponse:
        """Makes a checkpoint of many files visible."""
        async with self._chunked_commits.joined(request_iterator) as whole:
            commit = await asyncio.to_thread(checkpoint_messages.to_commit, whole)
            checkpoint = await self._registry.commit(commit, principal=current_principal.get())
        return messages.CommitCheckpointInChunksResponse(
            checkpoint=checkpoint_messages.from_checkpoint(checkpoint)
        )

    async def _commit_owner(self, request: messages.CommitCheckpointRequest) -> str:
        return await self._registry.commit_owner(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            run=request.run,
            principal=current_principal.get(),
        )

    async def ImportCheckpoints(
        self, request: messages.ImportCheckpointsRequest, context: Any
    ) -> messages.ImportCheckpointsResponse:
        """Registers checkpoints of another cluster."""
        imported = await asyncio.to_thread(to_imported_checkpoints, request)
        return messages.ImportCheckpointsResponse(new_count=await self._imports.checkpoints(imported))

    async def AbortCheckpoint(
        self, request: messages.AbortCheckpointRequest, context: Any
    ) -> messages.AbortCheckpointResponse:
        """Aborts a checkpoint."""
        checkpoint_id = parse_uuid(request.checkpoint_id, field="checkpoint_id")
        await self._registry.abort(checkpoint_id, run=request.run, principal=current_principal.get())
        return messages.AbortCheckpointResponse()

    async def GetCheckpoint(
        self, request: messages.GetCheckpointRequest, context: Any
    ) -> messages.GetCheckpointResponse:
        """Returns a checkpoint."""
        checkpoint_id = parse_uuid(request.checkpoint_id, field="checkpoint_id")
        checkpoint = await self._registry.get(checkpoint_id, principal=current_principal.get())
        return messages.GetCheckpointResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def GetLatestCheckpoint(
        self, request: messages.GetLatestCheckpointRequest, context: Any
    ) -> messages.GetLatestCheckpointResponse:
        """Returns the latest checkpoint of a trial."""
        trial_id = parse_uuid(request.trial_id, field="trial_id")
        latest = await self._database.read(lambda connection: records.latest(connection, trial_id))
        return messages.GetLatestCheckpointResponse(
            checkpoint=None if latest is None else checkpoint_messages.from_checkpoint(latest)
        )

    async def ListCheckpoints(
        self, request: messages.ListCheckpointsRequest, context: Any
    ) -> messages.ListCheckpointsResponse:
        """Lists checkpoints."""
        wanted = _filter(request)
        checkpoints, next_page_token = await self._database.read(
            lambda connection: records.page(connection, wanted, request)
        )
        return messages.ListCheckpointsResponse(
            checkpoints=[checkpoint_messages.from_checkpoint(checkpoint) for checkpoint in checkpoints],
            next_page_token=next_page_token,
        )

    async def ListFiles(self, request: messages.ListFilesRequest, context: Any) -> messages.ListFilesResponse:
        """Lists the files of a checkpoint."""
        files, next_page_token = await self._registry.file_page(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            request.path_prefix,
            request,
            principal=current_principal.get(),
        )
        return messages.ListFilesResponse(
            files=[checkpoint_messages.from_file(file) for file in files], next_page_token=next_page_token
        )

    async def PresignDownloads(
        self, request: messages.PresignDownloadsRequest, context: Any
    ) -> messages.PresignDownloadsResponse:
        """Returns URLs to download files from."""
        checkpoint_messages.require_count(request.paths, field="paths", least=1)
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
            etag=request.etag,
            principal=current_principal.get(),
        )
        return messages.UpdateMetadataResponse(checkpoint=checkpoint_messages.from_checkpoint(checkpoint))

    async def PinCheckpoints(
        self, request: messages.PinCheckpointsRequest, context: Any
    ) -> messages.PinCheckpointsResponse:
        """Pins or unpins checkpoints."""
        await self._deletions.pin(_ids(request.checkpoint_ids), pinned=request.pinned)
        return messages.PinCheckpointsResponse()

    async def DeleteCheckpoints(
        self, request: messages.DeleteCheckpointsRequest, context: Any
    ) -> messages.DeleteCheckpointsResponse:
        """Removes checkpoints."""
        await self._deletions.delete(_ids(request.checkpoint_ids), (), principal=current_principal.get())
        return messages.DeleteCheckpointsResponse()

    async def DeleteFiles(
        self, request: messages.DeleteFilesRequest, context: Any
    ) -> messages.DeleteFilesResponse:
        """Deletes files of checkpoints."""
        checkpoint_messages.require_count(request.globs, field="globs", least=1, limit=MAX_GLOBS)
        await self._deletions.delete(
            _ids(request.checkpoint_ids), list(request.globs), principal=current_principal.get()
        )
        return messages.DeleteFilesResponse()

    async def FenceTrial(
        self, request: messages.FenceTrialRequest, context: Any
    ) -> messages.FenceTrialResponse:
        """Supersedes runs of a trial."""
        latest = await self._registry.fence(
            parse_uuid(request.trial_id, field="trial_id"),
            min_run=checkpoint_messages.to_min_run(request),
            most_steps=request.most_steps if request.HasField("most_steps") else None,
        )
        return messages.FenceTrialResponse(
            latest_checkpoint=None if latest is None else checkpoint_messages.from_checkpoint(latest)
        )

    async def CheckStorage(
        self, request: messages.CheckStorageRequest, context: Any
    ) -> messages.CheckStorageResponse:
        """Checks a storage."""
        findings = await self._examiner.examine(checkpoint_messages.to_storage(request.storage))
        return messages.CheckStorageResponse(
            steps=[
                messages.CheckStorageResponse.Step(
                    name=finding.step, passed=finding.passed, detail=finding.detail
                )
                for finding in findings
            ]
        )

    async def AdmitStorage(
        self, request: messages.AdmitStorageRequest, context: Any
    ) -> messages.AdmitStorageResponse:
        """Says whether a config may name a storage."""
        wanted = checkpoint_messages.to_storage(request.storage)
        refusal = await self._registry.storage_refusal(wanted, below_roots=request.below_roots)
        return messages.AdmitStorageResponse(refusal=refusal)

    async def MakeWorkspaceDirectory(
        self, request: messages.MakeWorkspaceDirectoryRequest, context: Any
    ) -> messages.MakeWorkspaceDirectoryResponse:
        """Makes the directory of a workspace."""
        if request.workspace_id < 1:
            raise invalid("workspace_id", f"workspace_id is {request.workspace_id}; ids begin with 1")
        made = await self._registry.make_workspace_directory(
            request.directory, workspace_id=request.workspace_id
        )
        return messages.MakeWorkspaceDirectoryResponse(directory=made)

    async def GetStorageUsage(
        self, request: messages.GetStorageUsageRequest, context: Any
    ) -> messages.GetStorageUsageResponse:
        """Returns how much the checkpoints of a workspace take."""
        used = await self._database.read(
            lambda connection: usage.of_workspace(connection, request.workspace_id)
        )
        return messages.GetStorageUsageResponse(bytes=used)

    async def ListStorageUsage(
        self, request: messages.ListStorageUsageRequest, context: Any
    ) -> messages.ListStorageUsageResponse:
        """Returns which experiments of a workspace take most."""
        found = await self._database.read(
            lambda connection: usage.of_experiments(connection, request.workspace_id)
        )
        return messages.ListStorageUsageResponse(
            experiments=[
                messages.ListStorageUsageResponse.ExperimentUsage(
                    experiment_id=one.experiment_id,
                    checkpoint_count=one.checkpoint_count,
                    checkpoint_bytes=one.checkpoint_bytes,
                    media_bytes=one.media_bytes,
                )
                for one in found
            ]
        )

    async def ListUnrankedCheckpoints(
        self, request: messages.ListUnrankedCheckpointsRequest, context: Any
    ) -> messages.ListUnrankedCheckpointsResponse:
        """Names the trials that retention is to look at."""
        found = await self._unranked_trials.get()
        return messages.ListUnrankedCheckpointsResponse(
            trials=[
                messages.ListUnrankedCheckpointsResponse.Trial(trial_id=trial, experiment_id=experiment)
                for trial, experiment in found
            ]
        )

    async def HoldCheckpoint(
        self, request: messages.HoldCheckpointRequest, context: Any
    ) -> messages.HoldCheckpointResponse:
        """Keeps a checkpoint from policies for a time."""
        if not 0 < request.hold_seconds <= MAX_HOLD_SECONDS:
            message = f"{request.hold_seconds:g} must be above 0, and at most {MAX_HOLD_SECONDS:g}"
            raise invalid("hold_seconds", message)
        await self._downloads.hold(
            parse_uuid(request.checkpoint_id, field="checkpoint_id"),
            seconds=request.hold_seconds,
            principal=current_principal.get(),
        )
        return messages.HoldCheckpointResponse()

    async def PreviewRetention(
        self, request: messages.PreviewRetentionRequest, context: Any
    ) -> messages.PreviewRetentionResponse:
        """Returns what a policy does not keep."""
        wanted = checkpoint_messages.to_retention_request(request.experiment_id, request.rules)
        return messages.PreviewRetentionResponse(checkpoint_ids=await self._retention.preview(wanted))

    async def ApplyRetention(
        self, request: messages.ApplyRetentionRequest, context: Any
    ) -> messages.ApplyRetentionResponse:
        """Deletes what a policy does not keep."""
        wanted = checkpoint_messages.to_retention_request(request.experiment_id, request.rules)
        checkpoint_messages.require_count(
            request.deletable_checkpoint_ids,
            field="deletable_checkpoint_ids",
            least=0,
            limit=checkpoint_messages.MAX_RETENTION_ITEMS,
        )
        deleted = await self._retention.apply(wanted, deletable=frozenset(request.deletable_checkpoint_ids))
        return messages.ApplyRetentionResponse(checkpoint_ids=deleted)

    async def DeleteExperimentCheckpoints(
        self, request: messages.DeleteExperimentCheckpointsRequest, context: Any
    ) -> messages.DeleteExperimentCheckpointsResponse:
        """Removes everything of an experiment."""
        await self._deletions.delete_experiment(parse_uuid(request.experiment_id, field="experiment_id"))
        return messages.DeleteExperimentCheckpointsResponse()

    async def DeleteExperimentTensorBoardFiles(
        self, request: messages.DeleteExperimentTensorBoardFilesRequest, context: Any
    ) -> messages.DeleteExperimentTensorBoardFilesResponse:
        """Removes the TensorBoard files of an experiment."""
        if request.experiment_number <= 0:
            raise invalid(
                "experiment_number", f"{request.experiment_number} is not the number of an experiment"
            )
        storage = checkpoint_messages.to_storage(request.storage)
        await self._deletions.delete_tensorboard_files(storage, request.experiment_number)
        return messages.DeleteExperimentTensorBoardFilesResponse()

    async def AssignIds(self, request: messages.AssignIdsRequest, context: Any) -> messages.AssignIdsResponse:
        """Sets ids where only names are known."""
        await self._database.write(
            lambda connection: identities.assign(
                connection, workspaces=request.workspace_ids, users=request.user_ids
            )
        )
        return messages.AssignIdsResponse()


def _ids(texts: Sequence[str]) -> list[str]:
    checkpoint_messages.require_count(texts, field="checkpoint_ids")
    return [parse_uuid(text, field="checkpoint_ids") for text in texts]


def _filter(request: messages.ListCheckpointsRequest) -> CheckpointFilter:
    trial_ids = _filter_ids(request.trial_ids, field="trial_ids")
    experiment_ids = _filter_ids(request.experiment_ids, field="experiment_ids")
    if not trial_ids and not experiment_ids:
        message = "trial_ids and experiment_ids are both empty; set at least one of them"
        raise invalid("trial_ids", message)
    states = checkpoint_messages.to_states(request.states) or READABLE
    hidden = [state for state in states if not state.was_committed]
    if hidden and not access.can_see_uploads(current_principal.get(), trial_ids):
        raise PermissionDeniedError(
            f"checkpoints that are {hidden[0].value} are for the trial that writes them; list other states"
        )
    return CheckpointFilter(
        trial_ids=trial_ids,
        experiment_ids=experiment_ids,
        states=states,
        pinned=request.pinned if request.HasField("pinned") else None,
    )


def _filter_ids(texts: Sequence[str], *, field: str) -> list[str]:
    checkpoint_messages.require_count(texts, field=field, limit=_MAX_FILTER_IDS)
    return [parse_uuid(text, field=field) for text in texts]
