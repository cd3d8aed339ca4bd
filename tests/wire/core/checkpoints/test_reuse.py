"""Checkpoints that share bytes, through real services: sent once, kept as long as anyone needs them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial
from support.object_stores.s3 import S3Server

from resolute import core
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as api
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.rpc.channel import open_channel

BACKBONE = os.urandom(200_000)
STEPS = 14


@pytest.fixture
def stub(bucket_trial: Trial) -> Iterator[CheckpointsServiceStub]:
    with open_channel(
        bucket_trial.services.address, token=bucket_trial.services.running.user_token
    ) as channel:
        yield CheckpointsServiceStub(channel)


def store(context: core.Context, content: Mapping[str, bytes], *, steps: int) -> str:
    with context.checkpoint.store_path({"steps_completed": steps}) as (path, checkpoint_id):
        for name, data in content.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
    return checkpoint_id


def restored(context: core.Context, checkpoint_id: str) -> dict[str, bytes]:
    with context.checkpoint.restore_path(checkpoint_id) as path:
        files = [file for file in path.rglob("*") if file.is_file() and file.name != "metadata.json"]
        return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


def objects(server: S3Server, bucket: str) -> set[str]:
    found = server.client().list_objects(bucket, recursive=True)
    return {
        item.object_name or "" for item in found if not (item.object_name or "").endswith("metadata.json")
    }


def storage(server: S3Server, bucket: str) -> dict[str, str]:
    return {"type": "s3", "bucket": bucket, "endpoint_url": server.endpoint_url}


def test_what_did_not_change_is_sent_once_and_stays_until_nobody_needs_it(
    bucket_trial: Trial, server: S3Server
) -> None:
    bucket = server.new_bucket()
    with core.init(checkpoint_storage=storage(server, bucket)) as context:
        first = store(context, {"backbone": BACKBONE, "head": b"1"}, steps=1)
        second = store(context, {"backbone": BACKBONE, "head": b"2"}, steps=2)
        third = store(context, {"renamed/backbone": BACKBONE, "head": b"3"}, steps=3)
        sent = {f"{first}/backbone", f"{first}/head", f"{second}/head", f"{third}/head"}
        assert objects(server, bucket) == sent
        assert restored(context, second) == {"backbone": BACKBONE, "head": b"2"}
        context.checkpoint.delete(first)
        assert objects(server, bucket) == sent - {f"{first}/head"}
        assert restored(context, third) == {"renamed/backbone": BACKBONE, "head": b"3"}
        context.checkpoint.delete(third)
        assert restored(context, second) == {"backbone": BACKBONE, "head": b"2"}
        context.checkpoint.delete(second)
        assert objects(server, bucket) == set()


def test_a_person_far_away_reads_bytes_that_lie_under_another_name(
    bucket_trial: Trial, server: S3Server, stub: CheckpointsServiceStub
) -> None:
    bucket = server.new_bucket()
    with core.init(checkpoint_storage=storage(server, bucket)) as context:
        first = store(context, {"backbone": BACKBONE}, steps=1)
        second = store(context, {"backbone": BACKBONE}, steps=2)
    found = stub.GetCheckpoint(api.GetCheckpointRequest(checkpoint_id=second)).checkpoint
    locations = {file.path: (file.location.checkpoint_id, file.location.path) for file in found.files}
    assert locations == {"backbone": (first, "backbone"), "metadata.json": ("", "")}
    request = api.ReadFileRequest(checkpoint_id=second, path="backbone", offset=5)
    assert b"".join(part.data for part in stub.ReadFile(request)) == BACKBONE[5:]


def test_bytes_that_somebody_took_out_of_the_store_are_sent_again(
    bucket_trial: Trial, server: S3Server
) -> None:
    bucket = server.new_bucket()
    with core.init(checkpoint_storage=storage(server, bucket)) as context:
        first = store(context, {"backbone": BACKBONE}, steps=1)
        server.client().remove_object(bucket, f"{first}/backbone")
        second = store(context, {"backbone": BACKBONE}, steps=2)
        assert objects(server, bucket) == {f"{second}/backbone"}
        assert restored(context, second) == {"backbone": BACKBONE}


def test_in_a_directory_shared_bytes_are_links(bucket_trial: Trial, tmp_path: Path) -> None:
    source, root = tmp_path / "source", tmp_path / "checkpoints"
    source.mkdir()
    (source / "backbone").write_bytes(BACKBONE)
    with core.init(checkpoint_storage=str(root)) as context:
        first = context.checkpoint.upload(source, {"steps_completed": 1})
        second = context.checkpoint.upload(source, {"steps_completed": 2})
        assert (root / first / "backbone").samefile(root / second / "backbone")
        context.checkpoint.delete(first)
        assert restored(context, second) == {"backbone": BACKBONE}
        (source / "backbone").write_bytes(BACKBONE[1:])
        third = context.checkpoint.upload(source, {"steps_completed": 3})
        assert restored(context, third) == {"backbone": BACKBONE[1:]}
        assert restored(context, second) == {"backbone": BACKBONE}


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_lose_nothing_and_leave_nothing(
    bucket_trial: Trial, server: S3Server, stub: CheckpointsServiceStub, seed: int
) -> None:
    chance, bucket = random.Random(seed), server.new_bucket()
    pool = [os.urandom(size) for size in (1000, 1000, 1000, 70_000, 70_000)]
    kept: dict[str, dict[str, bytes]] = {}
    with core.init(checkpoint_storage=storage(server, bucket)) as context:
        for step in range(STEPS):
            content = {name: chance.choice(pool) for name in chance.sample(["a", "b", "c/d", "e"], 3)}
            kept[store(context, content, steps=step)] = content
            victim = chance.choice(sorted(kept))
            if chance.random() < 0.3:
                context.checkpoint.delete(victim)
                del kept[victim]
            elif chance.random() < 0.4:
                glob = chance.choice(["a", "b", "c/*"])
                stub.DeleteFiles(api.DeleteFilesRequest(checkpoint_ids=[victim], globs=[glob]))
                kept[victim].pop({"c/*": "c/d"}.get(glob, glob), None)
        for checkpoint_id, content in kept.items():
            assert restored(context, checkpoint_id) == content
        lying = len(objects(server, bucket))
        assert lying < sum(len(content) for content in kept.values()) or not kept
        for checkpoint_id in kept:
            context.checkpoint.delete(checkpoint_id)
    assert objects(server, bucket) == set()
