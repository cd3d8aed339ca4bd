"""A script that no cluster runs is killed before and after each step of its checkpoints.

After each kill another process sees every checkpoint whole or not at all, and can remove what is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.object_stores.s3 import S3Server
from support.processes.crash_points import CrashPoints, kill_at_step, run_in_child, steps_of
from support.suite.sampling import Sample

from resolute.contracts.object_stores.location import BucketStorage
from resolute.contracts.object_stores.s3 import S3Bucket
from resolute.core import DistributedContext, DummyCheckpointContext
from resolute.core.checkpoint.storage import Storage, open_store, parse_storage
from resolute.trial_errors import CheckpointNotFound

CONTENT = {"model": b"weights", "d/optimizer": b"state", "empty": b""}
STEPS = {"steps_completed": 1}
KILLS = 8
SYSTEM_CALLS = ("fsync", "replace", "unlink", "rmdir")
REQUESTS = ("put", "delete")


class Scenario:
    """A place for checkpoints, and what a process told of them before it died."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self._storage = storage
        self.folder = folder
        folder.mkdir()
        self._told = folder / "told"
        self._told.touch()

    def context(self) -> DummyCheckpointContext:
        return DummyCheckpointContext(DistributedContext(), open_store(self._storage))

    def tell(self, word: str, checkpoint_id: str) -> None:
        with self._told.open("a") as file:
            file.write(f"{word} {checkpoint_id}\n")

    def told(self, word: str) -> set[str]:
        lines = (line.split() for line in self._told.read_text().splitlines())
        return {checkpoint_id for said, checkpoint_id in lines if said == word}


def life(scene: Scenario) -> None:
    """Writes checkpoints in each way, fails at one, and removes one."""
    checkpoint = scene.context()
    source = fill(scene.folder / "source")
    first = checkpoint.upload(source, STEPS)
    scene.tell("committed", first)
    with checkpoint.store_path(STEPS) as (path, second):
        scene.tell("begun", second)
        fill(path)
    scene.tell("committed", second)
    block = checkpoint.store_path(STEPS)
    path, third = block.__enter__()
    scene.tell("begun", third)
    fill(path)
    block.__exit__(KeyError, KeyError("of the script"), None)
    scene.tell("deleting", first)
    checkpoint.delete(first)


def fill(directory: Path) -> Path:
    for path, data in CONTENT.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    return directory


def examine(scene: Scenario) -> None:
    """What the next process sees, and that it can remove it."""
    checkpoint = scene.context()
    committed, deleting = scene.told("committed"), scene.told("deleting")
    for checkpoint_id in committed | scene.told("begun"):
        back = scene.folder / f"back-{checkpoint_id}"
        try:
            checkpoint.download(checkpoint_id, back)
        except CheckpointNotFound:
            assert checkpoint_id not in committed - deleting, "a committed checkpoint is lost"
        else:
            assert {path: (back / path).read_bytes() for path in CONTENT} == CONTENT
            assert checkpoint.get_metadata(checkpoint_id) == STEPS
        checkpoint.delete(checkpoint_id)
        with pytest.raises(CheckpointNotFound):
            checkpoint.download(checkpoint_id, back)


def live(scene: Scenario, steps: CrashPoints) -> None:
    """Goes through the life; its requests and system calls are steps."""
    for name in REQUESTS:
        steps.around(S3Bucket, name)
    for name in SYSTEM_CALLS:
        steps.around(os, name)
    life(scene)


def killed_at_each_step(
    storage: Callable[[Path], Storage], folder: Path, *, sample: Sample, least: int
) -> None:
    def scene(name: str) -> Scenario:
        return Scenario(storage(folder / name / "store"), folder / name)

    undisturbed = scene("undisturbed")
    count = steps_of(partial(live, undisturbed))
    assert run_in_child(partial(examine, undisturbed)) == 0
    assert count > least, "there are fewer steps than there should be"
    for fatal in sample.of(range(1, count + 1), KILLS):
        killed = scene(str(fatal))
        kill_at_step(fatal, partial(live, killed))
        assert run_in_child(partial(examine, killed)) == 0, f"after a kill at step {fatal}"


@pytest.mark.integration
@pytest.mark.sampled(1, group="off-cluster steps")
def test_in_a_directory_each_is_whole_or_none_whatever_step_the_script_dies_at(
    tmp_path: Path, sample: Sample
) -> None:
    killed_at_each_step(lambda path: parse_storage(str(path)), tmp_path, sample=sample, least=40)


@pytest.mark.integration
@pytest.mark.sampled(1, group="off-cluster steps")
def test_in_a_bucket_each_is_whole_or_none_whatever_step_the_script_dies_at(
    tmp_path: Path, server: S3Server, sample: Sample
) -> None:
    bucket = BucketStorage(
        "s3",
        server.new_bucket(),
        endpoint_url=server.endpoint_url,
        access_key=server.access_key,
        secret_key=server.secret_key,
    )
    killed_at_each_step(lambda _: bucket, tmp_path, sample=sample, least=20)
