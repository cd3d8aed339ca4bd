"""Writers of checkpoints are killed at random instants: what can be seen is whole, the rest goes away."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faults.checkpoints.upload_process import SIZES, content
from support.clusters.trial_cluster import Trial
from support.object_stores.s3 import S3Server, parts_in
from support.suite.sampling import Sample

from resolute import core
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as api
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.rpc.channel import open_channel

SCRIPT = Path(__file__).with_name("upload_process.py")
KILLS = 5
DEADLINE = 30.0


def write_until_killed(trial: Trial, storage: str, *, start: int, seconds: float) -> list[int]:
    """Runs a writer, kills it some time after its first checkpoint; returns the steps it saw committed."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), storage, str(start)],
        env={**os.environ, **trial.environment()},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(seconds)
    process.kill()
    rest = process.stdout.read()
    process.wait()
    process.stdout.close()
    return [int(line) for line in (first + rest).split()]


@pytest.mark.integration
def test_killed_writers_leave_whole_checkpoints_or_none(
    trial: Trial, server: S3Server, sample: Sample
) -> None:
    chance = random.Random(sample.number)
    bucket = server.new_bucket()
    storage = {"type": "s3", "bucket": bucket, "endpoint_url": server.endpoint_url}
    told: list[int] = []
    for kill in range(sample.size(whole=KILLS, part=3)):
        # The instant is the subject of the test: any is as good as another.
        told += write_until_killed(
            trial, json.dumps(storage), start=100 * kill, seconds=chance.uniform(0.0, 0.8)
        )
    channel = open_channel(trial.services.address, token=trial.services.running.service_token)
    stub = CheckpointsServiceStub(channel)
    listed = stub.ListCheckpoints(api.ListCheckpointsRequest(trial_ids=[trial.trial_id])).checkpoints
    by_step = {checkpoint.steps_completed: checkpoint for checkpoint in listed}
    assert set(told) <= set(by_step), "a committed checkpoint is lost"
    with core.init(checkpoint_storage=storage) as context:
        for step, checkpoint in by_step.items():
            with context.checkpoint.restore_path(checkpoint.checkpoint_id) as path:
                for name in SIZES:
                    assert (path / name).read_bytes() == content(name, step), (step, name)
    # The run is over: what was never committed goes away, and nothing else.
    stub.FenceTrial(api.FenceTrialRequest(trial_id=trial.trial_id, min_run=2))
    # Asked again: a commit that the last writer had sent may have come after the first answer.
    listed = stub.ListCheckpoints(api.ListCheckpointsRequest(trial_ids=[trial.trial_id])).checkpoints
    committed = {checkpoint.checkpoint_id for checkpoint in listed}
    deadline = time.monotonic() + DEADLINE
    while stored(server, bucket) != committed or parts_in(server, bucket):
        left = stored(server, bucket) ^ committed
        assert time.monotonic() < deadline, (left, parts_in(server, bucket))
        time.sleep(0.1)
    channel.close()


def stored(server: S3Server, bucket: str) -> set[str]:
    found = server.client().list_objects(bucket, recursive=True)
    return {(item.object_name or "").split("/")[0] for item in found}
