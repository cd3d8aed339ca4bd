"""Parts of large files that nobody puts together go away, whoever gave them up and however the store is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3
from support.object_stores.proxy import FINE, Disturbance, StoreProxy, store_proxy
from support.object_stores.s3 import REGION, S3Server, parts_in, s3_server
from support.services.checkpoints import EXPERIMENT, SERVICE, TRIAL, RegistryHarness, new_id, registry_harness

from resolute.contracts.object_stores import s3
from resolute.errors import IllegalTransitionError
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.domain.checkpoint import BucketStorage, File, Owner, State
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.registry.checkpoints import Begin, Commit

LARGE = b"large" * 2000
FILE = File("d/large", len(LARGE))
HTTP = urllib3.PoolManager(retries=False)


@dataclass
class UploadScenario:
    """A registry over a bucket, with a proxy between them."""

    registry_harness: RegistryHarness
    proxy: StoreProxy
    server: S3Server
    bucket: str

    async def begin(self) -> str:
        storage = BucketStorage(self.bucket, "team", self.proxy.server.endpoint_url)
        owner = Owner(trial_id=TRIAL, experiment_id=EXPERIMENT, run=1)
        begin = Begin(checkpoint_id=new_id(), owner=owner, storage=storage, recorded=True)
        return (await self.registry_harness.registry.begin(begin)).checkpoint_id

    async def send(self, checkpoint_id: str) -> FinishedUpload:
        (upload,) = await self.registry_harness.registry.upload_urls(checkpoint_id, [FILE], principal=SERVICE)
        answer = await asyncio.to_thread(lambda: HTTP.request("PUT", upload.urls[0], body=LARGE))
        assert answer.status == 200
        return FinishedUpload(upload.path, upload.upload_id, (answer.headers["ETag"],))

    async def commit(self, checkpoint_id: str, *finished: FinishedUpload) -> None:
        manifest = Manifest.checked([FILE], {"steps_completed": 1})
        commit = Commit(checkpoint_id=checkpoint_id, run=1, manifest=manifest, uploads=finished)
        await self.registry_harness.registry.commit(commit, principal=SERVICE)

    def parts(self) -> int:
        return len(parts_in(self.server, self.bucket))

    def objects(self) -> list[str]:
        listed = self.server.client().list_objects(self.bucket, recursive=True)
        return [(item.object_name or "").removeprefix("team/") for item in listed]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@asynccontextmanager
async def room(
    url: str, root: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[UploadScenario]:
    # One part is the last one, which every store takes however small it is.
    monkeypatch.setattr(s3, "MULTIPART_BYTES", len(LARGE))
    keys = BucketSettings(access_key=server.access_key, secret_key=server.secret_key, region=REGION)
    with store_proxy(server) as proxy:
        async with registry_harness(url, root, stores=StoreFactory(buckets=keys)) as found:
            yield UploadScenario(found, proxy, server, server.new_bucket())


def test_an_upload_that_is_given_up_leaves_no_part(
    url: str, root: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with room(url, root, server, monkeypatch) as there:
            checkpoint_id = await there.begin()
            await there.send(checkpoint_id)
            assert there.parts() == 1
            await there.registry_harness.registry.abort(checkpoint_id, run=1, principal=SERVICE)
            assert there.parts() == 0
            with pytest.raises(IllegalTransitionError):
                await there.send(checkpoint_id)
            assert there.parts() == 0

    asyncio.run(scenario())


def test_an_upload_whose_run_is_over_leaves_no_part(
    url: str, root: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with room(url, root, server, monkeypatch) as there:
            await there.send(await there.begin())
            await there.registry_harness.registry.fence(TRIAL, min_run=2)
            there.registry_harness.clock.advance(10_000)
            await there.registry_harness.collector.collect()
            assert there.parts() == 0

    asyncio.run(scenario())


def test_a_commit_leaves_no_part_of_what_was_sent_in_vain_and_every_file(
    url: str, root: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with room(url, root, server, monkeypatch) as there:
            checkpoint_id = await there.begin()
            await there.send(checkpoint_id)
            finished = await there.send(checkpoint_id)
            for _ in range(2):
                await there.commit(checkpoint_id, finished)
            assert there.parts() == 1
            await there.registry_harness.collector.collect()
            assert there.parts() == 0
            assert there.objects() == [f"{checkpoint_id}/{FILE.path}"]
            assert await there.registry_harness.state(checkpoint_id) is State.COMPLETED
            assert await there.registry_harness.collector.collect() == 0

    asyncio.run(scenario())


def test_an_experiment_that_is_deleted_leaves_no_part(
    url: str, root: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with room(url, root, server, monkeypatch) as there:
            await there.send(await there.begin())
            await there.registry_harness.deletions.delete_experiment(EXPERIMENT)
            assert there.parts() == 0

    asyncio.run(scenario())


def test_parts_that_the_store_keeps_are_removed_once_it_allows_that(
    url: str, root: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with room(url, root, server, monkeypatch) as there:
            checkpoint_id = await there.begin()
            await there.send(checkpoint_id)
            refusal = Disturbance(status=403, answer=b"<Error><Code>AccessDenied</Code></Error>")
            there.proxy.behaviour = lambda asked: refusal if asked.method == "DELETE" else FINE
            await there.registry_harness.registry.abort(checkpoint_id, run=1, principal=SERVICE)
            assert there.parts() == 1
            there.proxy.behaviour = lambda _: FINE
            assert await there.registry_harness.collector.collect() == 0
            there.registry_harness.clock.advance(10)
            assert await there.registry_harness.collector.collect() == 1
            assert there.parts() == 0

    asyncio.run(scenario())
