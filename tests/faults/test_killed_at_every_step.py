"""The service is killed before and after every step of uploads, deletions and a collection, in turn.

After each kill another one goes on with the same database and the same bucket: what was committed is whole,
what was deleted is gone, and nothing else lies in the bucket.
"""

from __future__ import annotations

import asyncio
import functools
import io
import os
import shutil
import signal
import sys
import traceback
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import EXPERIMENT, SERVICE, TRIAL
from support.clocks import ManualClock
from support.s3 import REGION, S3Server

from resolute_checkpoints.blobs.buckets import BucketSettings
from resolute_checkpoints.blobs.s3 import BucketStore
from resolute_checkpoints.blobs.stores import Stores
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.checkpoint import READABLE, BucketStorage, File, Owner, State
from resolute_checkpoints.collector import Collector
from resolute_checkpoints.deletion import Deletions
from resolute_checkpoints.manifest import Manifest
from resolute_checkpoints.registry import Begin, Commit, Registry
from resolute_checkpoints.removal import Remover
from resolute_checkpoints.reuse import Reuse
from resolute_checkpoints.settings import CheckpointSettings
from resolute_checkpoints.store import records
from resolute_serving import migrations
from resolute_serving.database import Database, create_engine

SHARED, OWN = b"shared" * 1000, b"own"
DIGESTS = {SHARED: "sha256:" + "1" * 64, OWN: "sha256:" + "2" * 64}
MOST_STEPS = 200
LATER = 10_000.0


class Steps:
    """Counts the steps of a process, and kills it at one of them."""

    def __init__(self, fatal: int) -> None:
        self._left = fatal

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: type, name: str) -> None:
        """Makes a method a step: one may die before it, and after it."""
        method = getattr(owner, name)
        if asyncio.iscoroutinefunction(method):

            @functools.wraps(method)
            async def later(*arguments: Any, **options: Any) -> Any:
                self()
                result = await method(*arguments, **options)
                self()
                return result

            setattr(owner, name, later)
            return

        @functools.wraps(method)
        def now(*arguments: Any, **options: Any) -> Any:
            self()
            result = method(*arguments, **options)
            self()
            return result

        setattr(owner, name, now)


@dataclass
class Scene:
    """A service on a database file and a bucket."""

    server: S3Server
    bucket: str
    folder: Path

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.storage = BucketStorage(self.bucket, "", self.server.endpoint_url)
        keys = BucketSettings(
            access_key=self.server.access_key, secret_key=self.server.secret_key, region=REGION
        )
        self.stores = Stores(buckets=keys)

    def open(self) -> None:
        """Starts it, in this process."""
        self.database = Database(f"sqlite:///{self.folder / 'checkpoints.db'}", name="checkpoints")
        self.workers = BlobWorkers(name="blobs", threads=2)
        parts: dict[str, Any] = {"database": self.database, "clock": self.clock}
        remover = Remover(stores=self.stores, workers=self.workers, **parts)
        self.registry = Registry(stores=self.stores, workers=self.workers, remover=remover, **parts)
        self.reuse = Reuse(database=self.database, stores=self.stores, workers=self.workers)
        self.deletions = Deletions(remover=remover, **parts)
        self.collector = Collector(remover=remover, settings=CheckpointSettings(), **parts)

    def close(self) -> None:
        """Stops it."""
        self.workers.close()
        self.database.close()

    def tell(self, word: str) -> None:
        """Notes what the service has answered, where the next one finds it."""
        with (self.folder / "told").open("a") as file:
            file.write(word + "\n")

    async def upload(self, content: dict[str, bytes]) -> str:
        """Writes a checkpoint as a trial does."""
        checkpoint_id = str(uuid.uuid4())
        owner = Owner(trial_id=TRIAL, experiment_id=EXPERIMENT, run=1, workspace="vision")
        await self.registry.begin(Begin(checkpoint_id=checkpoint_id, owner=owner, storage=self.storage))
        files = [File(path, len(data), DIGESTS[data]) for path, data in content.items()]
        held = (await self.reuse.find(checkpoint_id, files, principal=SERVICE)).held
        client = self.server.client()
        for path, data in content.items():
            if path not in held:
                client.put_object(self.bucket, f"{checkpoint_id}/{path}", io.BytesIO(data), len(data))
        manifest = Manifest.checked(files, {"steps_completed": 1})
        commit = Commit(checkpoint_id=checkpoint_id, run=1, manifest=manifest)
        await self.registry.commit(commit, principal=SERVICE)
        self.tell(f"committed {checkpoint_id}")
        return checkpoint_id

    async def delete(self, checkpoint_id: str, *globs: str) -> None:
        """Deletes as a person does."""
        self.tell(f"deleting {checkpoint_id}")
        await self.deletions.delete([checkpoint_id], globs, principal=SERVICE)


async def life(scene: Scene) -> None:
    """Shares bytes between three checkpoints, and lets them go in an order that leaves each for another."""
    first = await scene.upload({"shared": SHARED, "own": OWN})
    second = await scene.upload({"renamed": SHARED})
    third = await scene.upload({"shared": SHARED, "other": OWN})
    await scene.delete(first)
    await scene.delete(third, "shared")
    await scene.delete(second)
    await scene.collector.collect()


async def examine(scene: Scene) -> None:
    """What the next service finds, after it has cleared up."""
    await scene.registry.seal(TRIAL, min_run=2)
    for _ in range(2):
        scene.clock.advance(LATER)
        await scene.collector.collect()
    told = scene.folder / "told"
    words = [line.split() for line in told.read_text().splitlines()] if told.exists() else []
    committed = {key for verb, key in words if verb == "committed"}
    touched = {key for verb, key in words if verb == "deleting"}
    query = records.Query(states=list(State), experiment_id=EXPERIMENT)
    page = await scene.registry.page(query, after=None, size=100)
    found = {each.checkpoint_id: each for each in page.checkpoints}
    readable = {key: each for key, each in found.items() if each.state in READABLE}
    assert committed - touched <= set(readable), "a committed checkpoint is lost"
    assert not {each.state for each in found.values()} & {State.UPLOADING, State.DELETING}
    store = scene.stores.open(scene.storage)
    homes = set()
    for key, checkpoint in readable.items():
        for file in checkpoint.files:
            home = file.home_in(key)
            homes.add(f"{home.checkpoint_id}/{home.path}")
            with store.open(home.checkpoint_id, home.path, offset=0) as stream:
                assert DIGESTS[stream.read()] == file.digest
    listed = scene.server.client().list_objects(scene.bucket, recursive=True)
    assert {item.object_name for item in listed} == homes


def in_child(scene: Scene, work: Callable[[Scene], Coroutine[Any, Any, None]], *, fatal: int = 0) -> int:
    """Runs a service in a process of its own; returns its status, or the signal that ended it below zero."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        if fatal:
            steps = Steps(fatal)
            steps.around(Database, "write")
            for name in ("faults", "remove", "remove_files"):
                steps.around(BucketStore, name)
        scene.open()
        asyncio.run(work(scene))
        scene.close()
        status = 0
    except BaseException:  # noqa: BLE001 - the parent is told by the status
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


@pytest.mark.integration
def test_whatever_step_it_dies_at_the_next_one_finds_whole_checkpoints_and_no_litter(
    tmp_path: Path, server: S3Server
) -> None:
    template = tmp_path / "checkpoints.db"
    engine = create_engine(f"sqlite:///{template}", name="checkpoints", writes=True)
    migrations.upgrade(engine, package="resolute_checkpoints", schema="checkpoints")
    engine.dispose()
    for fatal in range(1, MOST_STEPS):
        folder = tmp_path / str(fatal)
        folder.mkdir()
        shutil.copy(template, folder)
        scene = Scene(server, server.new_bucket(), folder)
        status = in_child(scene, life, fatal=fatal)
        assert status in {0, -signal.SIGKILL}
        assert in_child(scene, examine) == 0, f"after a kill at step {fatal}"
        if status == 0:
            assert fatal > 30, "the life has fewer steps than it should"
            return
    raise AssertionError(f"the life did not end within {MOST_STEPS} steps")
