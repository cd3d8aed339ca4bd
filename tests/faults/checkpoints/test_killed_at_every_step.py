"""The service is killed before and after each step of uploads, deletions and collections.

After each kill another one continues with the same database and the same bucket: what was committed is whole,
what was deleted is gone, and nothing else is in the bucket: no object, and no part of one.
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
from support.clocks import ManualClock
from support.crash_points import CrashPoints, kill_at_step, run_in_child, steps_of
from support.object_stores.s3 import REGION, S3Server, parts_in
from support.sampling import Sample
from support.services.checkpoints import EXPERIMENT, SERVICE, TRIAL
from support.services.retention import expire

from resolute.api.checkpoints.v1.checkpoints_service_pb2 import ListCheckpointsRequest
from resolute.contracts.object_stores import s3
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.blobs.buckets.bucket_store import BucketStore
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.verification import Verifier
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import READABLE, BucketStorage, File, Owner, State
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.media.contents import Contents
from resolute_checkpoints.media.removal import Removal
from resolute_checkpoints.registry.checkpoints import Begin, Commit, Registry
from resolute_checkpoints.registry.reuse import Reuse
from resolute_checkpoints.retention.collector import Collector
from resolute_checkpoints.retention.deletion import Deletions
from resolute_checkpoints.retention.enforcement import RetentionRequest
from resolute_checkpoints.retention.policy import RetentionPolicy
from resolute_checkpoints.retention.remover import Remover
from resolute_checkpoints.settings import CheckpointSettings
from resolute_checkpoints.store import records
from resolute_serving.database import migrations
from resolute_serving.database.engine import Database, create_engine

SHARED, OWN, LARGE = b"shared" * 1000, b"own", b"large" * 2000
DIGESTS = {data: f"sha256:{number}" + "0" * 63 for number, data in enumerate((SHARED, OWN, LARGE))}
KILLS = 12
LATER = 10_000.0
HTTP = urllib3.PoolManager(retries=False)


@dataclass
class Scenario:
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
        self.stores = StoreFactory(buckets=keys)

    def open(self) -> None:
        """Starts it, in this process."""
        self.database = Database(f"sqlite:///{self.folder / 'checkpoints.db'}", name="checkpoints")
        self.workers = BlobWorkers(name="blobs", threads=2)
        database, clock = self.database, self.clock
        remover = Remover(stores=self.stores, workers=self.workers, database=database, clock=clock)
        self.registry = Registry(
            stores=self.stores,
            workers=self.workers,
            verifier=Verifier(self.workers),
            remover=remover,
            database=database,
            clock=clock,
            cluster_id="cluster",
        )
        self.reuse = Reuse(database=database, stores=self.stores, workers=self.workers)
        contents = Contents(stores=self.stores, workers=self.workers, cluster_id="cluster")
        self.deletions = Deletions(
            remover=remover,
            cluster_id="cluster",
            database=database,
            clock=clock,
            media=Removal(database, contents, clock=clock),
        )
        self.collector = Collector(
            remover=remover, settings=CheckpointSettings(), database=database, clock=clock
        )

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
        checkpoint_id = await self._begin()
        files = [File(path, len(data), DIGESTS[data]) for path, data in content.items()]
        held = (await self.reuse.find(checkpoint_id, files, principal=SERVICE)).held
        wanted = [file for file in files if file.path not in held]
        # Twice, as a trial whose URLs ran out: what it sent by the first ones is of no use.
        await self._send(checkpoint_id, wanted, content)
        finished = await self._send(checkpoint_id, wanted, content)
        manifest = Manifest.checked(files, {"steps_completed": 1})
        commit = Commit(checkpoint_id=checkpoint_id, run=1, manifest=manifest, uploads=finished)
        await self.registry.commit(commit, principal=SERVICE)
        self.tell(f"committed {checkpoint_id}")
        return checkpoint_id

    async def _send(
        self, checkpoint_id: str, files: list[File], content: dict[str, bytes]
    ) -> tuple[FinishedUpload, ...]:
        """Puts files by URLs; returns those that went in parts."""
        finished = []
        for upload in await self.registry.upload_urls(checkpoint_id, files, principal=SERVICE):
            (url,) = upload.urls
            send = partial(HTTP.request, "PUT", url, body=content[upload.path])
            answer = await asyncio.to_thread(send)
            assert answer.status == 200, answer.data
            if upload.upload_id:
                etags = (answer.headers["ETag"],)
                finished.append(FinishedUpload(upload.path, upload.upload_id, etags))
        return tuple(finished)

    async def give_up(self, content: dict[str, bytes]) -> None:
        """Begins a checkpoint, sends its files, and thinks better of it."""
        checkpoint_id = await self._begin()
        files = [File(path, len(data)) for path, data in content.items()]
        await self._send(checkpoint_id, files, content)
        await self.registry.abort(checkpoint_id, run=1, principal=SERVICE)

    async def abandon(self, content: dict[str, bytes]) -> None:
        """Sends files of a checkpoint that nobody will commit: its run is over."""
        files = [File(path, len(data)) for path, data in content.items()]
        await self._send(await self._begin(), files, content)
        await self.registry.fence(TRIAL, min_run=2)
        self.clock.advance(LATER)

    async def expire(self, checkpoint_id: str, *, but: str) -> None:
        """Lets a policy that keeps nothing delete a checkpoint, but for another one."""
        self.tell(f"deleting {checkpoint_id}")
        policy = RetentionPolicy(0, 0, 0)
        wish = RetentionRequest(
            experiment_id=EXPERIMENT,
            policy=policy,
            smaller_is_better=True,
            validations={},
            sources=frozenset({but}),
        )
        assert list(await expire(self, wish)) == [checkpoint_id]

    async def _begin(self) -> str:
        checkpoint_id = str(uuid.uuid4())
        owner = Owner(trial_id=TRIAL, experiment_id=EXPERIMENT, run=1, workspace="vision")
        await self.registry.begin(
            Begin(checkpoint_id=checkpoint_id, owner=owner, storage=self.storage, recorded=True)
        )
        return checkpoint_id

    async def delete(self, checkpoint_id: str, *globs: str) -> None:
        """Deletes as a person does."""
        self.tell(f"deleting {checkpoint_id}")
        await self.deletions.delete([checkpoint_id], globs, principal=SERVICE)


async def life(scene: Scenario) -> None:
    """Shares bytes between three checkpoints, and lets them go in an order that leaves each for another."""
    first = await scene.upload({"shared": SHARED, "own": OWN, "large": LARGE})
    second = await scene.upload({"renamed": SHARED})
    third = await scene.upload({"shared": SHARED, "other": OWN})
    await scene.give_up({"large": LARGE, "own": OWN})
    await scene.delete(first)
    await scene.delete(third, "shared")
    await scene.expire(second, but=third)
    await scene.abandon({"large": LARGE, "shared": SHARED})
    await scene.collector.collect()


async def examine(scene: Scenario) -> None:
    """What the next service finds, after it has cleared up."""
    await scene.registry.fence(TRIAL, min_run=2)
    for _ in range(2):
        scene.clock.advance(LATER)
        await scene.collector.collect()
    told = scene.folder / "told"
    words = [line.split() for line in told.read_text().splitlines()] if told.exists() else []
    committed = {key for verb, key in words if verb == "committed"}
    touched = {key for verb, key in words if verb == "deleting"}
    wanted = records.CheckpointFilter(states=list(State), experiment_ids=[EXPERIMENT])
    request = ListCheckpointsRequest(page_size=1000)
    listed, _ = await scene.database.read(lambda connection: records.page(connection, wanted, request))
    found = {each.checkpoint_id: each for each in listed}
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
    assert parts_in(scene.server, scene.bucket) == []


def serve(scene: Scenario, work: Callable[[Scenario], Coroutine[Any, Any, None]]) -> None:
    """Runs a service."""
    scene.open()
    asyncio.run(work(scene))
    scene.close()


def live(scene: Scenario, steps: CrashPoints) -> None:
    """Runs a service whose writes to the database and calls of the store are steps."""
    steps.around(Database, "write")
    for name in ("upload_urls", "finish_uploads", "drop_uploads", "faults", "remove", "remove_files"):
        steps.around(BucketStore, name)
    serve(scene, life)


@pytest.mark.integration
def test_whatever_step_it_dies_at_the_next_one_finds_whole_checkpoints_and_no_litter(
    tmp_path: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch, sample: Sample
) -> None:
    # One part is the last one, which every store takes however small it is.
    monkeypatch.setattr(s3, "MULTIPART_BYTES", len(LARGE))
    template = tmp_path / "checkpoints.db"
    engine = create_engine(f"sqlite:///{template}", name="checkpoints", writes=True)
    migrations.upgrade(engine, package="resolute_checkpoints", schema="checkpoints")
    engine.dispose()

    def scene(name: str) -> Scenario:
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(template, folder)
        return Scenario(server, server.new_bucket(), folder)

    undisturbed = scene("undisturbed")
    count = steps_of(partial(live, undisturbed))
    assert run_in_child(partial(serve, undisturbed, examine)) == 0
    assert count > 30, "there are fewer steps than there should be"
    for fatal in sample.of(range(1, count + 1), KILLS):
        killed = scene(str(fatal))
        kill_at_step(fatal, partial(live, killed))
        assert run_in_child(partial(serve, killed, examine)) == 0, f"after a kill at step {fatal}"
