"""What the registry expects of every store, over a directory and over real object stores."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import stat
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
import urllib3
from support.object_stores.s3 import REGION, S3Server, parts_in, s3_server
from support.object_stores.servers import KINDS, ObjectServer, object_server

from resolute.contracts.object_stores.multipart import MULTIPART_BYTES
from resolute.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnavailableError,
)
from resolute_checkpoints.blobs.base import BlobStore, FinishedUpload, OpenUpload
from resolute_checkpoints.blobs.buckets import egress
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.domain.checkpoint import BucketStorage, DirectoryStorage, File

HTTP = urllib3.PoolManager(retries=False)


class Side(Protocol):
    """A store, and how a trial puts files there."""

    store: BlobStore

    def put(self, checkpoint_id: str, content: Mapping[str, bytes]) -> list[FinishedUpload]: ...


class DirectorySide:
    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.store = StoreFactory().open(DirectoryStorage(str(root)))

    def put(self, checkpoint_id: str, content: Mapping[str, bytes]) -> list[FinishedUpload]:
        for path, data in content.items():
            target = self.root / checkpoint_id / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return []


class BucketSide:
    def __init__(self, server: ObjectServer, *, bucket: str = "", create: bool = False) -> None:
        self.server = server
        self.bucket = bucket or server.new_bucket()
        self.storage = server.storage(self.bucket, "team/a")
        self.store = StoreFactory(buckets=server.settings(create=create)).open(self.storage)

    def put(self, checkpoint_id: str, content: Mapping[str, bytes]) -> list[FinishedUpload]:
        finished = []
        files = [File(path, len(data)) for path, data in content.items()]
        for upload in self.store.upload_urls(checkpoint_id, files):
            data, size, etags = content[upload.path], upload.part_size, []
            parts = [data[n * size : (n + 1) * size] for n in range(len(upload.urls))] if size else [data]
            for url, part in zip(upload.urls, parts, strict=True):
                response = HTTP.request("PUT", url, body=part, headers=upload.headers)
                assert response.status in {200, 201}, response.data
                etags.append(response.headers.get("ETag", ""))
            if upload.upload_id:
                finished.append(FinishedUpload(upload.path, upload.upload_id, tuple(etags)))
        return finished


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], ObjectServer]]:
    """Starts each kind of store when it is first asked for."""
    running: dict[str, ObjectServer] = {}
    with ExitStack() as stack:

        def give(kind: str) -> ObjectServer:
            if kind not in running:
                running[kind] = stack.enter_context(object_server(kind, tmp_path_factory.mktemp(kind)))
            return running[kind]

        yield give


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, servers: Callable[[str], ObjectServer]) -> ObjectServer:
    return servers(request.param)


@pytest.fixture(params=["directory", *KINDS])
def side(request: pytest.FixtureRequest, servers: Callable[[str], ObjectServer], tmp_path: Path) -> Side:
    if request.param == "directory":
        return DirectorySide(tmp_path / "root")
    return BucketSide(servers(request.param))


@pytest.fixture
def checkpoint_id() -> str:
    return str(uuid.uuid4())


CONTENT = {
    "model.pt": b"weights",
    "d/e/optimizer.pt": b"moments",
    "empty": b"",
    "模型/权重 ä": b"x",
    "a+b&c=%41?#": b"y",
    "-rf": b"z",
    "..hidden": b"u",
    "n" * 250: b"v",
}


def faults(side: Side, checkpoint_id: str, *files: File) -> list[str]:
    return [str(fault) for fault in side.store.faults(checkpoint_id, files)]


def test_files_of_any_name_are_kept_exactly(side: Side, checkpoint_id: str) -> None:
    side.put(checkpoint_id, CONTENT)
    files = [File(path, len(data)) for path, data in CONTENT.items()]
    assert faults(side, checkpoint_id, *files, File("d/", 0), File("d/e/", 0)) == []
    for path, data in CONTENT.items():
        with side.store.open(checkpoint_id, path, offset=0) as stream:
            assert stream.read() == data
    with side.store.open(checkpoint_id, "model.pt", offset=3) as stream:
        assert stream.read(2) + stream.read() == b"ghts"
    with side.store.open(checkpoint_id, "model.pt", offset=7) as stream:
        assert stream.read(1) == b""


def test_missing_files_and_other_sizes_are_named(side: Side, checkpoint_id: str) -> None:
    side.put(checkpoint_id, {"short": b"ab"})
    assert faults(side, checkpoint_id, File("short", 3), File("missing", 1)) == [
        "'short' has 2 bytes, not 3",
        "'missing' is not there",
    ]
    with pytest.raises(DataLossError, match=r"'missing' of checkpoint .* is not there"):
        side.store.open(checkpoint_id, "missing", offset=0)


def test_removal_touches_one_checkpoint_and_can_be_repeated(side: Side, checkpoint_id: str) -> None:
    other = str(uuid.uuid4())
    side.put(checkpoint_id, CONTENT)
    side.put(other, {"kept": b"abc"})
    for _ in range(2):
        side.store.remove(checkpoint_id, committed=True)
    assert faults(side, checkpoint_id, File("model.pt", 7)) == ["'model.pt' is not there"]
    assert faults(side, other, File("kept", 3)) == []


def test_a_directory_without_checkpoints_is_removed_with_all_below_it(side: Side, checkpoint_id: str) -> None:
    side.store.remove_others("cluster/tensorboard/experiment/1")
    side.put(checkpoint_id, {"kept": b"abc"})
    side.put("cluster/tensorboard/experiment/1", {"trial/1/events": b"1", "trial/2/events": b"2"})
    side.put("cluster/tensorboard/experiment/11", {"trial/3/events": b"3"})
    for _ in range(2):
        side.store.remove_others("cluster/tensorboard/experiment/1")
    assert len(faults(side, "cluster/tensorboard/experiment/1", File("trial/1/events", 1))) == 1
    assert faults(side, "cluster/tensorboard/experiment/11", File("trial/3/events", 1)) == []
    assert faults(side, checkpoint_id, File("kept", 3)) == []


def test_a_file_in_a_directory_without_checkpoints_is_written_whole_and_in_place_of_another(
    side: Side,
) -> None:
    directory = f"cluster/media/{uuid.uuid4()}"
    for content in (b"first", b"the second"):
        side.store.write_other(directory, "digest", content)
        with side.store.open(directory, "digest", offset=0) as stream:
            assert stream.read() == content
    side.store.write_other(directory, "other", b"3")
    side.store.remove_files(directory, ["other"])
    assert faults(side, directory, File("digest", 10), File("other", 1)) == ["'other' is not there"]
    side.store.remove_others(directory)
    assert faults(side, directory, File("digest", 10)) == ["'digest' is not there"]


def test_a_file_that_was_written_has_its_name_also_after_the_machine_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a directory holds is sure to stay as it was when it was last synced."""
    synced: dict[int, list[str]] = {}
    sync = os.fsync

    def note(descriptor: int) -> None:
        sync(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            synced[os.fstat(descriptor).st_ino] = os.listdir(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    side = DirectorySide(tmp_path / "checkpoints")
    side.store.write_other("cluster/media/1", "digest", b"x")
    assert synced[(side.root / "cluster" / "media" / "1").stat().st_ino] == ["digest"]


def test_some_files_can_be_removed(side: Side, checkpoint_id: str) -> None:
    side.put(checkpoint_id, {"a": b"1", "d/b": b"2", "d/c": b"3"})
    for _ in range(2):
        side.store.remove_files(checkpoint_id, ["a", "d/b", "unknown", "d/"])
    missing = faults(side, checkpoint_id, File("a", 1), File("d/b", 1), File("d/c", 1))
    assert missing == ["'a' is not there", "'d/b' is not there"]


def test_a_directory_that_is_reached_through_a_link_is_not_written(tmp_path: Path) -> None:
    side = DirectorySide(tmp_path / "checkpoints")
    (tmp_path / "elsewhere").mkdir()
    (side.root / "cluster").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FailedPreconditionError, match="reached through a link"):
        side.store.write_other("cluster/media/1", "digest", b"x")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_large_file_goes_in_parts_and_is_put_together_once(
    server: ObjectServer, checkpoint_id: str
) -> None:
    side = BucketSide(server)
    data = bytes(range(256)) * (MULTIPART_BYTES // 256) + b"end"
    finished = side.put(checkpoint_id, {"big": data})
    if finished:
        # Google's store takes any file by one request, and has it then.
        assert [len(upload.etags) for upload in finished] == [5]
        assert faults(side, checkpoint_id, File("big", len(data))) == ["'big' is not there"]
    for _ in range(2):
        side.store.finish_uploads(checkpoint_id, finished)
    assert faults(side, checkpoint_id, File("big", len(data))) == []
    with side.store.open(checkpoint_id, "big", offset=len(data) - 4) as stream:
        assert stream.read() == data[-4:]


def test_urls_of_the_largest_file_of_the_longest_name_fit_a_message(
    server: ObjectServer, checkpoint_id: str
) -> None:
    side = BucketSide(server)
    name = "/".join(["字" * 60] * 5)
    (upload,) = side.store.upload_urls(checkpoint_id, [File(name, 2 << 40)])
    assert sum(len(url) for url in upload.urls) < 2 << 20
    if not upload.upload_id:
        return
    # Amazon takes 5 GiB by one request, Azure 4000 MiB.
    assert upload.part_size <= 4000 << 20, "more than one request may put"
    assert (len(upload.urls) - 1) * upload.part_size < 2 << 40 <= len(upload.urls) * upload.part_size
    side.store.drop_uploads(checkpoint_id, [OpenUpload(name, upload.upload_id)])


def test_parts_of_an_upload_that_nobody_puts_together_are_removed(s3: S3Server, checkpoint_id: str) -> None:
    side = BucketSide(s3)
    (upload,) = side.store.upload_urls(checkpoint_id, [File("模型 +&/big", MULTIPART_BYTES)])
    assert HTTP.request("PUT", upload.urls[1], body=b"x").status == 200
    assert parts_in(s3, side.bucket) == [f"team/a/{checkpoint_id}/模型 +&/big#2"]
    for _ in range(2):
        side.store.drop_uploads(checkpoint_id, [OpenUpload(upload.path, upload.upload_id)])
    assert parts_in(s3, side.bucket) == []
    assert HTTP.request("PUT", upload.urls[0], body=b"x").status >= 400


def test_objects_have_plain_names_that_any_tool_reads(server: ObjectServer, checkpoint_id: str) -> None:
    side = BucketSide(server)
    side.put(checkpoint_id, {"model.pt": b"weights", "d/x": b"1"})
    prefix = f"team/a/{checkpoint_id}"
    assert server.objects(side.bucket) == {f"{prefix}/d/x": 1, f"{prefix}/model.pt": 7}


def test_presigned_urls_give_files_without_credentials(server: ObjectServer, checkpoint_id: str) -> None:
    side = BucketSide(server)
    side.put(checkpoint_id, CONTENT)
    urls = side.store.download_urls(checkpoint_id, list(CONTENT))
    for url, data in zip(urls, CONTENT.values(), strict=True):
        assert HTTP.request("GET", url).data == data
        # The name of the key is in it, which is the secret too of a MinIO that is as it comes.
        assert server.secret not in re.sub("X-Amz-Credential=[^&]*", "", url)


def test_a_bucket_that_is_not_there_is_explained(server: ObjectServer, checkpoint_id: str) -> None:
    side = BucketSide(server, bucket="resolute-nowhere")
    with pytest.raises(FailedPreconditionError, match=r"'resolute-nowhere' .* make the (bucket|container)"):
        side.store.faults(checkpoint_id, [File("a", 1)])
    with pytest.raises(FailedPreconditionError, match=r"make the (bucket|container)"):
        side.store.upload_urls(checkpoint_id, [File("a", 1)])
    with pytest.raises(FailedPreconditionError, match=r"make the (bucket|container)"):
        side.store.remove(checkpoint_id, committed=True)
    side.store.remove(checkpoint_id, committed=False)


def test_a_bucket_is_made_where_that_is_wanted(server: ObjectServer, checkpoint_id: str) -> None:
    side = BucketSide(server, bucket=f"resolute-{uuid.uuid4().hex[:12]}", create=True)
    side.put(checkpoint_id, {"a": b"1"})
    assert faults(side, checkpoint_id, File("a", 1)) == []


def test_wrong_credentials_are_explained(s3: S3Server, checkpoint_id: str) -> None:
    wrong = BucketSettings(access_key=s3.access_key, secret_key="wrong" * 5, region=REGION)
    store = StoreFactory(buckets=wrong).open(s3.storage(s3.new_bucket()))
    with pytest.raises(FailedPreconditionError, match=r"refuses the checkpoints service .* credentials"):
        store.faults(checkpoint_id, [File("a", 1)])


def test_absent_credentials_are_explained(
    s3: S3Server, checkpoint_id: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "MINIO_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    storage = s3.storage(s3.new_bucket())
    with pytest.raises(FailedPreconditionError, match="set RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY"):
        StoreFactory(buckets=BucketSettings(region=REGION)).open(storage).faults(
            checkpoint_id, [File("a", 1)]
        )
    (tmp_path / "credentials").write_text(
        f"[team]\naws_access_key_id = {s3.access_key}\naws_secret_access_key = {s3.secret_key}\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "team")
    store = StoreFactory(buckets=BucketSettings(region=REGION)).open(storage)
    assert [str(fault) for fault in store.faults(checkpoint_id, [File("a", 1)])] == ["'a' is not there"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_down_may_come_back(tmp_path: Path, checkpoint_id: str, kind: str) -> None:
    with object_server(kind, tmp_path / kind, lasting=True) as server:
        side = BucketSide(server)
        side.put(checkpoint_id, {"a": b"1"})
        server.stop()
        with pytest.raises(UnavailableError, match="does not answer"):
            side.store.faults(checkpoint_id, [File("a", 1)])
        server.start()
        assert faults(side, checkpoint_id, File("a", 1)) == []


def test_names_that_are_too_long_for_objects_are_refused(server: ObjectServer, checkpoint_id: str) -> None:
    side = BucketSide(server)
    with pytest.raises(InvalidArgumentError, match=r"at most 1024.*: use shorter names"):
        side.store.upload_urls(checkpoint_id, [File("/".join(["x" * 199] * 6), 1)])


@pytest.mark.parametrize("url", ["minio:9000", "ftp://minio", "http://minio/path", "http://"])
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"endpoint_url is .* write it as"):
        StoreFactory().open(BucketStorage("weights", "", url))


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "169.254.0.1:9000", "[fe80::1]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"],
)
def test_addresses_that_belong_to_a_machine_or_its_cloud_are_refused(host: str) -> None:
    with pytest.raises(
        PermissionDeniedError, match=r"endpoint_url leads to .* name the address of an object"
    ):
        StoreFactory().open(BucketStorage("weights", "", f"http://{host}"))


def test_names_that_lead_to_such_an_address_are_refused_before_anything_is_sent(
    checkpoint_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress, "_REFUSED", (ipaddress.ip_network("127.0.0.0/8"),))
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://localhost:{server.getsockname()[1]}"
        settings = BucketSettings(access_key="key", secret_key="s" * 20, region=REGION)
        store = StoreFactory(buckets=settings).open(BucketStorage("weights", "", url))
        with pytest.raises(PermissionDeniedError, match=r"leads to 127\.0\.0\.1"):
            store.faults(checkpoint_id, [File("a", 1)])
        server.settimeout(60)
        caller, _ = server.accept()
        with caller:
            caller.settimeout(60)
            assert caller.recv(1) == b""


@pytest.mark.parametrize("prefix", ["../x", "a/../b", "/a", "a/"])
def test_prefixes_that_climb_are_refused(prefix: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"bucket\.prefix is"):
        StoreFactory().open(BucketStorage("weights", prefix))
