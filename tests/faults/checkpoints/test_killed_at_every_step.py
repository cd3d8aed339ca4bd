"""The service is killed before and after each step of uploads, deletions and collections.

After each kill another one continues with the same database and the same store: what was committed is whole,
what was deleted is gone, and nothing else is in the store: no file, and no part of one.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest
import urllib3
from support.clocks import ManualClock
from support.object_stores.s3 import S3Server, parts_in
from support.object_stores.servers import ObjectServer, object_server
from support.processes.crash_points import CrashPoints, kill_at_step, run_in_child, steps_of
from support.services.checkpoints import EXPERIMENT, SERVICE, TRIAL
from support.services.retention import expire
from support.suite.sampling import Sample

from resolute.api.checkpoints.v1.checkpoints_service_pb2 import ListCheckpointsRequest
from resolute.contracts.object_stores import azure, s3
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.blobs.buckets.bucket_store import BucketStore
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.verification import Verifier
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import READABLE, DirectoryStorage, File, Owner, State, Storage
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
DIGESTS = {data: f"sha256:{hashlib.sha256(data).hexdigest()}" for data in (SHARED, OWN, LARGE)}
KILLS = 12
LATER = 10_000.0
HTTP = urllib3.PoolManager(retries=False)


class Place(Protocol):
    """Where checkpoints lie."""

    @property
    def storage(self) -> Storage:
        """The same in the service's words."""

    @property
    def settings(self) -> BucketSettings:
        """What the service is told of it."""

    def objects(self) -> set[str]:
        """What is there, each as checkpoint and path."""

    def parts(self) -> list[str]:
        """What is there of files that were never put together."""


@dataclass
class Directory:
    """A directory that trials and service see."""

    path: Path

    def __post_init__(self) -> None:
        self.path.mkdir()
        self.storage = DirectoryStorage(str(self.path))
        self.settings = BucketSettings()

    def objects(self) -> set[str]:
        files = (path.relative_to(self.path) for path in self.path.rglob("*") if path.is_file())
        return {str(path) for path in files}

    def parts(self) -> list[str]:
        return []


@dataclass
class Bucket:
    """A bucket of a server."""

    server: ObjectServer
    name: str

    def __post_init__(self) -> None:
        self.storage = self.server.storage(self.name)
        self.settings = self.server.settings()

    def objects(self) -> set[str]:
        return set(self.server.objects(self.name))

    def parts(self) -> list[str]:
        # Azure lists no parts: it forgets them by itself.
        return parts_in(self.server, self.name) if isinstance(self.server, S3Server) else []


@dataclass
class Scenario:
    """A service on a database file and a store."""

    place: Place
    folder: Path

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.storage = self.place.storage
        self.stores = StoreFactory(buckets=self.place.settings)

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
        held: Collection[str] = ()
        if not isinstance(self.storage, DirectoryStorage):  # whose files trials write, all of them
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
        """Puts files by URLs, or where they belong; returns those that went in parts."""
        if isinstance(self.storage, DirectoryStorage):
            for file in files:
                path = Path(self.storage.path) / checkpoint_id / file.path
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content[file.path])
            return ()
        finished = []
        for upload in await self.registry.upload_urls(checkpoint_id, files, principal=SERVICE):
            (url,) = upload.urls
            headers = dict(upload.headers)
            send = partial(HTTP.request, "PUT", url, body=content[upload.path], headers=headers)
            answer = await asyncio.to_thread(send)
            assert answer.status in {200, 201}, answer.data
            if upload.upload_id:
                etags = (answer.headers.get("ETag", ""),)
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
    assert scene.place.objects() == homes
    assert scene.place.parts() == []


def serve(scene: Scenario, work: Callable[[Scenario], Coroutine[Any, Any, None]]) -> None:
    """Runs a service."""
    scene.open()
    asyncio.run(work(scene))
    scene.close()


def live(scene: Scenario, steps: CrashPoints) -> None:
    """Runs a service whose writes to the database and calls of the store are steps."""
    steps.around(Database, "write")
    for store in (BucketStore, DirectoryStore):
        for name in ("upload_urls", "finish_uploads", "drop_uploads", "faults", "remove", "remove_files"):
            steps.around(store, name)
    serve(scene, life)


@contextmanager
def places(kind: str, folder: Path) -> Iterator[Callable[[], Place]]:
    """Makes empty places of a kind."""
    if kind == "directory":
        numbers = count(1)
        yield lambda: Directory(folder / f"store-{next(numbers)}")
        return
    with object_server(kind, folder / kind) as server:
        yield lambda: Bucket(server, server.new_bucket())


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["directory", "s3", "azure"])
def test_whatever_step_it_dies_at_the_next_one_finds_whole_checkpoints_and_no_litter(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Sample
) -> None:
    # One part is the last one, which every store takes however small it is.
    for module in (s3, azure):
        monkeypatch.setattr(module, "MULTIPART_BYTES", len(LARGE))
    template = tmp_path / "checkpoints.db"
    engine = create_engine(f"sqlite:///{template}", name="checkpoints", writes=True)
    migrations.upgrade(engine, package="resolute_checkpoints", schema="checkpoints")
    engine.dispose()

    with places(kind, tmp_path) as new_place:

        def scene(name: str) -> Scenario:
            folder = tmp_path / name
            folder.mkdir()
            shutil.copy(template, folder)
            return Scenario(new_place(), folder)

        undisturbed = scene("undisturbed")
        total = steps_of(partial(live, undisturbed))
        assert run_in_child(partial(serve, undisturbed, examine)) == 0
        assert total > 30, "there are fewer steps than there should be"
        for fatal in sample.of(range(1, total + 1), KILLS):
            killed = scene(str(fatal))
            kill_at_step(fatal, partial(live, killed))
            assert run_in_child(partial(serve, killed, examine)) == 0, f"after a kill at step {fatal}"
