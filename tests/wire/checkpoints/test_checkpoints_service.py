"""The checkpoints service through gRPC: what trials store, what people change, and who may do neither."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from pathlib import Path

import pytest
from support.services.in_process import serving
from wire.checkpoints.callers import CONTENT, EXPERIMENT, TRIAL, client, trial

from resolute.api.checkpoints.v1 import checkpoint_pb2 as types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1 import storage_pb2
from resolute.contracts.values import MAX_DEPTH, to_value
from resolute.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    IllegalTransitionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    RunSupersededError,
    UnauthenticatedError,
)
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_serving.context import Role


def test_a_trial_stores_a_checkpoint_and_a_person_far_away_downloads_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            root = tmp_path / "store"
            async with client(running, trial(running), root) as t:
                checkpoint_id = str(uuid.uuid4())
                begun = await t.stub.BeginCheckpoint(t.begin_request(checkpoint_id))
                assert begun.checkpoint.state == types.CHECKPOINT_STATE_UPLOADING
                assert begun.checkpoint.storage.directory.path == str(root)
                t.write(checkpoint_id)
                committed = (await t.stub.CommitCheckpoint(t.commit_request(checkpoint_id))).checkpoint
                assert committed.state == types.CHECKPOINT_STATE_COMPLETED
                assert committed.total_size == sum(map(len, CONTENT.values()))
                assert committed.steps_completed == 1
                assert committed.commit_time.ToNanoseconds() >= committed.create_time.ToNanoseconds() > 0
            async with client(running, running.user_token(role=Role.VIEWER), root) as u:
                found = await u.stub.GetCheckpoint(messages.GetCheckpointRequest(checkpoint_id=checkpoint_id))
                assert found.checkpoint == committed
                listed = await u.stub.ListCheckpoints(
                    messages.ListCheckpointsRequest(experiment_ids=[EXPERIMENT])
                )
                assert list(listed.checkpoints) == [committed]
                for file in committed.files:
                    if not file.path.endswith("/"):
                        content = await u.read(checkpoint_id, file.path)
                        assert content == CONTENT[file.path]
                        assert file.digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
                assert (
                    await u.read(checkpoint_id, "model.pt", offset=2_000_000)
                    == (CONTENT["model.pt"][2_000_000:])
                )
                downloads = await u.stub.PresignDownloads(
                    messages.PresignDownloadsRequest(checkpoint_id=checkpoint_id, paths=["model.pt"])
                )
                assert list(downloads.downloads) == []

    asyncio.run(scenario())


def test_a_superseded_run_is_refused_with_the_error_that_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            root = tmp_path / "store"
            async with (
                client(running, trial(running), root) as first,
                client(running, trial(running, run=2), root, run=2) as second,
                client(running, running.service_token(), root) as platform,
            ):
                stored = await first.store(steps=3)
                late = str(uuid.uuid4())
                await first.stub.BeginCheckpoint(first.begin_request(late))
                first.write(late)
                fence = messages.FenceTrialRequest(trial_id=TRIAL, min_run=2)
                assert (await platform.stub.FenceTrial(fence)).latest_checkpoint.checkpoint_id == stored
                with pytest.raises(RunSupersededError) as refused:
                    await first.stub.CommitCheckpoint(first.commit_request(late))
                assert refused.value.metadata == {"run": "1", "min_run": "2"}
                await second.store(steps=4)
                assert (await platform.stub.FenceTrial(fence)).latest_checkpoint.steps_completed == 4
                other = messages.FenceTrialRequest(trial_id=str(uuid.uuid4()), min_run=1)
                assert not (await platform.stub.FenceTrial(other)).HasField("latest_checkpoint")

    asyncio.run(scenario())


def test_tokens_of_trials_reach_only_what_is_theirs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            root = tmp_path / "store"
            stranger_id, elsewhere = str(uuid.uuid4()), str(uuid.uuid4())
            async with (
                client(running, trial(running), root) as t,
                client(
                    running, trial(running, trial_id=stranger_id, experiment_id=elsewhere), root
                ) as stranger,
            ):
                checkpoint_id = await t.store()
                begun = str(uuid.uuid4())
                await t.stub.BeginCheckpoint(t.begin_request(begun))
                named = messages.GetCheckpointRequest(checkpoint_id=checkpoint_id)
                for call in (
                    stranger.stub.BeginCheckpoint(t.begin_request(str(uuid.uuid4()))),
                    stranger.stub.CommitCheckpoint(t.commit_request(begun)),
                    stranger.stub.AbortCheckpoint(
                        messages.AbortCheckpointRequest(checkpoint_id=begun, run=1)
                    ),
                    stranger.stub.PresignUploads(messages.PresignUploadsRequest(checkpoint_id=begun)),
                    stranger.stub.ListCheckpoints(messages.ListCheckpointsRequest(trial_ids=[TRIAL])),
                    stranger.stub.UpdateMetadata(
                        messages.UpdateMetadataRequest(checkpoint_id=checkpoint_id, patch=to_value({}))
                    ),
                    stranger.stub.DeleteCheckpoints(
                        messages.DeleteCheckpointsRequest(checkpoint_ids=[checkpoint_id])
                    ),
                    t.stub.FenceTrial(messages.FenceTrialRequest(trial_id=TRIAL, min_run=9)),
                    t.stub.DeleteExperimentCheckpoints(
                        messages.DeleteExperimentCheckpointsRequest(experiment_id=EXPERIMENT)
                    ),
                ):
                    with pytest.raises(PermissionDeniedError):
                        await call
                with pytest.raises(NotFoundError):
                    await stranger.stub.GetCheckpoint(messages.GetCheckpointRequest(checkpoint_id=begun))
                # A warm start reads another experiment's checkpoint of the same workspace.
                assert (await stranger.stub.GetCheckpoint(named)).checkpoint.checkpoint_id == checkpoint_id
                assert await stranger.read(checkpoint_id, "模型") == b"x"
            async with client(running, running.user_token(role=Role.VIEWER), root) as viewer:
                with pytest.raises(PermissionDeniedError):
                    await viewer.stub.DeleteCheckpoints(
                        messages.DeleteCheckpointsRequest(checkpoint_ids=[checkpoint_id])
                    )
                with pytest.raises(PermissionDeniedError, match="for the trial that writes them"):
                    await viewer.stub.ListCheckpoints(
                        messages.ListCheckpointsRequest(
                            trial_ids=[TRIAL], states=[types.CHECKPOINT_STATE_UPLOADING]
                        )
                    )
            async with client(running, "", root) as nobody:
                with pytest.raises(UnauthenticatedError):
                    await nobody.stub.GetCheckpoint(named)

    asyncio.run(scenario())


def test_people_change_metadata_and_delete(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            root = tmp_path / "store"
            async with client(running, trial(running), root) as t:
                checkpoint_id = await t.store()
            async with client(running, running.user_token(role=Role.EDITOR), root) as editor:
                changed = await editor.stub.UpdateMetadata(
                    messages.UpdateMetadataRequest(
                        checkpoint_id=checkpoint_id, patch=to_value({"note": None, "grade": "A"})
                    )
                )
                assert changed.checkpoint.metadata == to_value({"steps_completed": 1, "grade": "A"})
                request = messages.DeleteFilesRequest(checkpoint_ids=[checkpoint_id], globs=["d/**"])
                await editor.stub.DeleteFiles(request)
                named = messages.GetCheckpointRequest(checkpoint_id=checkpoint_id)
                left = (await editor.stub.GetCheckpoint(named)).checkpoint
                assert left.state == types.CHECKPOINT_STATE_PARTIALLY_DELETED
                assert [file.path for file in left.files] == ["d/", "model.pt", "模型"]
                await editor.stub.DeleteCheckpoints(
                    messages.DeleteCheckpointsRequest(checkpoint_ids=[checkpoint_id])
                )
                gone = (await editor.stub.GetCheckpoint(named)).checkpoint
                assert gone.state == types.CHECKPOINT_STATE_DELETED
                with pytest.raises(NotFoundError, match="is deleted"):
                    await editor.read(checkpoint_id, "model.pt")
            assert list(root.iterdir()) == []
            async with client(running, running.service_token(), root) as platform:
                request_all = messages.DeleteExperimentCheckpointsRequest(experiment_id=EXPERIMENT)
                await platform.stub.DeleteExperimentCheckpoints(request_all)
                with pytest.raises(NotFoundError):
                    await platform.stub.GetCheckpoint(named)

    asyncio.run(scenario())


def test_bad_requests_say_what_is_wrong(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            root = tmp_path / "store"
            root.mkdir()
            async with client(running, trial(running), root) as t:
                stored = await t.store()
                begun = str(uuid.uuid4())
                await t.stub.BeginCheckpoint(t.begin_request(begun))

                def begin(**changes: object) -> messages.BeginCheckpointRequest:
                    request = t.begin_request(str(uuid.uuid4()))
                    request.MergeFrom(messages.BeginCheckpointRequest(**changes))  # type: ignore[arg-type]
                    return request

                def commit(*paths: str, steps: object = 1) -> messages.CommitCheckpointRequest:
                    return messages.CommitCheckpointRequest(
                        checkpoint_id=begun,
                        run=1,
                        files=[types.File(path=path) for path in paths],
                        metadata=to_value({"steps_completed": steps}),
                    )

                t.write(begun)
                other_content = t.commit_request(begun)
                other_content.files[0].digest = f"sha256:{hashlib.sha256(b'other').hexdigest()}"
                bucket = storage_pb2.Storage(
                    bucket=storage_pb2.Storage.Bucket(
                        bucket="b", prefix="../a", provider=storage_pb2.Storage.PROVIDER_S3
                    )
                )
                relative = storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path="relative"))
                for call, kind, message in (
                    (t.stub.BeginCheckpoint(begin(checkpoint_id="7")), InvalidArgumentError, "be a UUID"),
                    (
                        t.stub.BeginCheckpoint(begin(checkpoint_id=str(uuid.uuid4()).upper())),
                        InvalidArgumentError,
                        "lower case",
                    ),
                    (t.stub.BeginCheckpoint(begin(storage=relative)), InvalidArgumentError, "absolute"),
                    (t.stub.BeginCheckpoint(begin(storage=bucket)), InvalidArgumentError, "bucket.prefix"),
                    (t.stub.CommitCheckpoint(commit("../x")), InvalidArgumentError, "climbs out"),
                    (t.stub.CommitCheckpoint(commit("/x")), InvalidArgumentError, "is absolute"),
                    (t.stub.CommitCheckpoint(commit("x" * 1000)), InvalidArgumentError, "255 bytes"),
                    (t.stub.CommitCheckpoint(commit(steps="1")), InvalidArgumentError, "whole number"),
                    (t.stub.CommitCheckpoint(commit("x")), FailedPreconditionError, "'x' is not there"),
                    (
                        t.stub.CommitCheckpoint(other_content),
                        FailedPreconditionError,
                        "'model.pt' has another content than its digest says",
                    ),
                    (
                        t.stub.CommitCheckpoint(t.commit_request(stored, steps=2)),
                        AlreadyExistsError,
                        "other files",
                    ),
                    (
                        t.stub.AbortCheckpoint(messages.AbortCheckpointRequest(checkpoint_id=stored, run=1)),
                        IllegalTransitionError,
                        "delete it instead",
                    ),
                    (
                        t.stub.PresignUploads(
                            messages.PresignUploadsRequest(
                                checkpoint_id=begun, files=[types.File(path="a", size=1)]
                            )
                        ),
                        FailedPreconditionError,
                        "write its files to",
                    ),
                    (
                        t.stub.DeleteFiles(messages.DeleteFilesRequest(checkpoint_ids=[stored])),
                        InvalidArgumentError,
                        "globs has 0 entries; send at least 1",
                    ),
                    (
                        t.stub.ListCheckpoints(
                            messages.ListCheckpointsRequest(trial_ids=[TRIAL], page_token="bm9uc2Vuc2U=")
                        ),
                        InvalidArgumentError,
                        "page_token",
                    ),
                    (
                        t.stub.DeleteCheckpoints(
                            messages.DeleteCheckpointsRequest(checkpoint_ids=[stored] * 1001)
                        ),
                        InvalidArgumentError,
                        "at most 1000",
                    ),
                ):
                    with pytest.raises(kind, match=message):
                        await call

    asyncio.run(scenario())


def test_metadata_as_deep_as_the_contract_allows_come_back(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(MAX_DEPTH - 1):
        deep = {"": deep}

    async def scenario() -> None:
        root = tmp_path / "store"
        async with serving([BLUEPRINT], tmp_path) as running, client(running, trial(running), root) as t:
            checkpoint_id = str(uuid.uuid4())
            await t.stub.BeginCheckpoint(t.begin_request(checkpoint_id))
            t.write(checkpoint_id)
            request = t.commit_request(checkpoint_id)
            request.metadata.CopyFrom(to_value({"steps_completed": 1, "deep": deep}))
            await t.stub.CommitCheckpoint(request)
            listed = await t.stub.ListCheckpoints(messages.ListCheckpointsRequest(trial_ids=[TRIAL]))
            assert listed.checkpoints[0].metadata == request.metadata

    asyncio.run(scenario())


def test_what_was_committed_outlives_the_service(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "store"
        async with serving([BLUEPRINT], tmp_path) as running, client(running, trial(running), root) as t:
            checkpoint_id = await t.store()
        async with serving([BLUEPRINT], tmp_path) as running, client(running, trial(running), root) as t:
            # The answer to the commit was lost; the trial repeats it to the service that came back.
            again = await t.stub.CommitCheckpoint(t.commit_request(checkpoint_id))
            assert again.checkpoint.state == types.CHECKPOINT_STATE_COMPLETED

    asyncio.run(scenario())


def test_downloads_of_many_readers_do_not_hold_up_a_commit(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "store"
        async with serving([BLUEPRINT], tmp_path) as running, client(running, trial(running), root) as t:
            checkpoint_id = await t.store()
            request = messages.ReadFileRequest(checkpoint_id=checkpoint_id, path="model.pt")
            # Readers that stop reading leave the service waiting for them.
            idle = [t.stub.ReadFile(request, timeout=30) for _ in range(40)]
            for call in idle:
                assert (await call.read()).data  # type: ignore[attr-defined]
            await asyncio.wait_for(t.store(steps=2), timeout=60)
            for call in idle:
                call.cancel()

    asyncio.run(scenario())


def test_metadata_that_changed_meanwhile_are_not_patched(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "store"
        async with serving([BLUEPRINT], tmp_path) as running, client(running, trial(running), root) as t:
            checkpoint_id = await t.store()
            named = messages.GetCheckpointRequest(checkpoint_id=checkpoint_id)
            seen = (await t.stub.GetCheckpoint(named)).checkpoint.etag
            request = messages.UpdateMetadataRequest(
                checkpoint_id=checkpoint_id, patch=to_value({"grade": "A"}), etag=seen
            )
            assert (await t.stub.UpdateMetadata(request)).checkpoint.etag != seen
            with pytest.raises(ConflictError, match="changed meanwhile"):
                await t.stub.UpdateMetadata(request)

    asyncio.run(scenario())
