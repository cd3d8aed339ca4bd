"""Checkpoints whose lists of files fit no message, through real services."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial
from support.object_stores.s3 import S3Server
from support.suite.sampling import Sample

from resolute import core
from resolute.api.checkpoints.v1 import checkpoint_pb2 as types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as api
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.client.connection.session import Session
from resolute.client.downloads.checkpoint_files import download
from resolute.client.downloads.sources import DownloadMode
from resolute.client.remote.checkpoints import Checkpoints
from resolute.contracts.values import to_value
from resolute.rpc import checkpoint_files
from resolute.rpc.channel import open_channel

MANY = 100_000
SEVERAL = 10_000
FOLDERS = 100
LONG = 1200
LARGEST_PIECE = 1 << 20
LARGEST_MESSAGE = 4 << 20
DIGEST = f"sha256:{hashlib.sha256(b'x').hexdigest()}"


def fill(root: Path) -> list[types.File]:
    """Makes files fast: links to one, whose content is the same."""
    root.mkdir()
    files = []
    for folder in range(FOLDERS):
        first = root / f"{folder:03}" / "0000"
        first.parent.mkdir()
        first.write_bytes(b"x")
        for number in range(MANY // FOLDERS):
            path = f"{folder:03}/{number:04}"
            if number:
                os.link(first, root / path)
            files.append(types.File(path=path, size=1, digest=DIGEST))
    return files


@pytest.mark.sampled(1, group="many files")
def test_a_hundred_thousand_files_are_committed_listed_and_found_again(trial: Trial, tmp_path: Path) -> None:
    checkpoint_id = str(uuid.uuid4())
    with (
        core.init(checkpoint_storage=str(tmp_path)) as context,
        context.checkpoint.store_path({"steps_completed": 2}) as (path, small),
    ):
        (path / "model").write_bytes(b"weights")
    with open_channel(trial.services.address, token=trial.directory.token_file.read_text) as channel:
        stub = CheckpointsServiceStub(channel)
        storage = stub.GetCheckpoint(api.GetCheckpointRequest(checkpoint_id=small)).checkpoint.storage
        stub.BeginCheckpoint(
            api.BeginCheckpointRequest(
                checkpoint_id=checkpoint_id,
                trial_id=trial.trial_id,
                run=1,
                experiment_id=trial.experiment_id,
                storage=storage,
            )
        )
        files = fill(tmp_path / checkpoint_id)
        request = api.CommitCheckpointRequest(
            checkpoint_id=checkpoint_id, run=1, files=files, metadata=to_value({"steps_completed": 1})
        )
        assert request.ByteSize() > LARGEST_MESSAGE
        for _ in range(2):  # again, as after an answer that was lost
            checkpoint_files.commit(stub, request, deadline=300)
        listed = stub.ListCheckpoints(api.ListCheckpointsRequest(trial_ids=[trial.trial_id])).checkpoints
        assert [(each.checkpoint_id, each.file_count) for each in listed] == [
            (checkpoint_id, MANY),
            (small, 2),
        ]
        assert (len(listed[0].files), len(listed[1].files)) == (0, 2)
        assert list(checkpoint_files.files_of(stub, listed[0])) == sorted(files, key=lambda file: file.path)
        read = api.ReadFileRequest(checkpoint_id=checkpoint_id, path="007/0042")
        assert b"".join(part.data for part in stub.ReadFile(read)) == b"x"
    with core.init() as context:
        context.checkpoint.download(
            checkpoint_id, tmp_path / "copy", selector=lambda path: path == "099/0999"
        )
        assert (tmp_path / "copy" / "099" / "0999").read_bytes() == b"x"


def test_a_list_of_long_names_that_takes_several_messages_goes_to_a_bucket_and_comes_back(
    bucket_trial: Trial, server: S3Server, tmp_path: Path
) -> None:
    deep = "/".join(["模" * 80] * 4)
    (tmp_path / "source" / deep).mkdir(parents=True)
    names = [f"{deep}/{number:04}" for number in range(LONG)]
    assert sum(len(name.encode()) for name in names) > LARGEST_PIECE
    for name in names:
        (tmp_path / "source" / name).write_text(name[-4:])
    storage = {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": server.endpoint_url}
    with core.init(checkpoint_storage=storage) as context:
        ids = [context.checkpoint.upload(tmp_path / "source", {"steps_completed": n}) for n in (1, 2)]
        context.checkpoint.delete(ids[0])
        context.checkpoint.download(ids[1], tmp_path / "copy")
        assert all((tmp_path / "copy" / name).read_text() == name[-4:] for name in names)
        context.checkpoint.delete(ids[1])
    assert list(server.client().list_objects(storage["bucket"], recursive=True)) == []


@pytest.mark.sampled(1, group="many files")
def test_thousands_of_files_go_to_a_bucket_are_downloaded_by_a_person_and_deleted(
    bucket_trial: Trial, server: S3Server, tmp_path: Path, sample: Sample
) -> None:
    several = sample.size(whole=SEVERAL, part=SEVERAL // 5)
    content = {f"{number % FOLDERS:03}/{number:05}": str(number) for number in range(several)}
    for name, text in content.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(text)
    storage = {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": server.endpoint_url}
    services = bucket_trial.services
    variables = {"RESOLUTE_MASTER": services.address, "RESOLUTE_TOKEN": services.running.user_token()}
    with (
        core.init(checkpoint_storage=storage) as context,
        Session.find(environment=variables) as session,
    ):
        checkpoint_id = context.checkpoint.upload(tmp_path / "source", {"steps_completed": 1})
        registry = Checkpoints(session)
        record = registry.get(checkpoint_id)
        download(record, tmp_path / "copy", registry=registry, mode=DownloadMode.DIRECT)
        assert {name: (tmp_path / "copy" / name).read_text() for name in content} == content
        registry.delete([checkpoint_id])
    assert server.objects(storage["bucket"]) == {}
