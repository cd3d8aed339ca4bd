"""How fast checkpoints go to a bucket and come back, beside minio-py's loop and beside rclone as a client.

    python benchmarks/checkpoints/transfers.py [--megabytes N] [--layouts N,N] [--passes N]

All three talk to one S3 server on loopback (``rclone serve s3``) in one run, so that the ratios hold on any
machine. Ours goes the whole way of a trial: the service in a process of its own signs the URLs, every byte is
hashed on the way up and checked on the way down, and the commit looks at every file. The others do not.
``person`` is the same checkpoint as `resolute checkpoint download` fetches it, in the same way and with the
start of a session.
The best of some passes counts, all take turns: ``cold`` are those with files dropped from the page cache.

The server does not sum an object up again each time it is asked for its tag. Stores keep tags, and only ours
asks.

Then a second checkpoint, nine tenths of whose bytes are in files that are as they were, beside the first.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.object_stores.s3 import REGION, S3Server, own_s3_server, rclone

from benchmarks.standalone import Standalone, say, seconds, standalone
from resolute.api.checkpoints.v1 import checkpoint_pb2, storage_pb2
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as api
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.client.connection.session import Session
from resolute.client.downloads.checkpoint_files import download
from resolute.client.downloads.sources import DownloadMode
from resolute.client.remote.checkpoints import Checkpoints
from resolute.contracts.values import to_value
from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.core.checkpoint.files.reuse import Reuse
from resolute.core.checkpoint.stores.presigned import PresignedStore
from resolute.core.remote.presigned_urls import RemoteUrlSigner, reusable_files
from resolute.core.remote.session import Session as TrialSession
from resolute_checkpoints.blobs.roots import BUCKETS_SETTING

T = TypeVar("T")
_MEGABYTE = 1_000_000
_COMMITS = 10
_COMMIT_FILES = 100
_LEAST_RATIO = 1.0
_LONGEST_COMMIT = 0.05
_LEAST_GAIN = 5.0
_TENTHS = 10
_FILES_OF_A_TENTH = 2
_KEEPING_NO_TAGS = "--etag-hash="


class DirectSession:
    """The part of a session that links need."""

    def __init__(self, stub: CheckpointsServiceStub) -> None:
        self.checkpoints = stub

    def retry_during_outage(self, call: Callable[[], T], *, purpose: str) -> T:
        return call()


class Ours:
    """A trial."""

    name = "ours"

    def __init__(
        self, service: Standalone, stub: CheckpointsServiceStub, storage: storage_pb2.Storage
    ) -> None:
        self._run = service.run
        self._person = {"RESOLUTE_MASTER": service.address, "RESOLUTE_TOKEN": service.user_token()}
        self._stub = stub
        self._storage = storage
        session = cast("TrialSession", DirectSession(stub))
        self._store = PresignedStore(RemoteUrlSigner(session), outage_timeout=60.0)
        self._sparing = PresignedStore(
            RemoteUrlSigner(session), outage_timeout=60.0, reuse=Reuse(partial(reusable_files, session))
        )
        self._last: tuple[str, list[FileEntry]] = ("", [])

    def up(self, source: Path, paths: Sequence[str]) -> None:
        checkpoint_id = self.begin()
        entries = self._store.write(checkpoint_id, source, paths)
        self.commit(checkpoint_id, entries)
        self._last = (checkpoint_id, entries)

    def down(self, target: Path, paths: Sequence[str]) -> None:
        checkpoint_id, entries = self._last
        self._store.read(checkpoint_id, target, paths, expected=entries)

    def down_for_a_person(self, target: Path, paths: Sequence[str]) -> None:
        with Session.find(environment=self._person) as session:
            registry = Checkpoints(session)
            download(registry.get(self._last[0]), target, registry=registry, mode=DownloadMode.DIRECT)

    def write(self, source: Path, paths: Sequence[str]) -> tuple[str, list[FileEntry]]:
        checkpoint_id = self.begin()
        return checkpoint_id, self._store.write(checkpoint_id, source, paths)

    def up_sparingly(self, source: Path, paths: Sequence[str]) -> None:
        """Sends only what earlier checkpoints have not."""
        checkpoint_id = self.begin()
        self.commit(checkpoint_id, self._sparing.write(checkpoint_id, source, paths))

    def begin(self) -> str:
        checkpoint_id = str(uuid.uuid4())
        self._stub.BeginCheckpoint(
            api.BeginCheckpointRequest(
                checkpoint_id=checkpoint_id,
                trial_id=self._run.trial_id,
                run=self._run.run,
                experiment_id=self._run.experiment_id,
                storage=self._storage,
            )
        )
        return checkpoint_id

    def commit(self, checkpoint_id: str, entries: Sequence[FileEntry]) -> None:
        multiparts = [
            api.CommitCheckpointRequest.MultipartUpload(
                path=each.path, upload_id=each.upload_id, part_etags=each.etags
            )
            for each in entries
            if each.upload_id
        ]
        self._stub.CommitCheckpoint(
            api.CommitCheckpointRequest(
                checkpoint_id=checkpoint_id,
                run=self._run.run,
                files=[
                    checkpoint_pb2.File(path=each.path, size=each.size, digest=each.digest)
                    for each in entries
                ],
                metadata=to_value({"steps_completed": 1}),
                multipart_uploads=multiparts,
            ),
            timeout=120,
        )


class MinioLoop:
    """One fput or fget after the other."""

    name = "minio"

    def __init__(self, server: S3Server, bucket: str) -> None:
        self._client = server.client()
        self._bucket = bucket
        self._prefix = ""

    def up(self, source: Path, paths: Sequence[str]) -> None:
        self._prefix = str(uuid.uuid4())
        for path in paths:
            self._client.fput_object(self._bucket, f"{self._prefix}/{path}", str(source / path))

    def down(self, target: Path, paths: Sequence[str]) -> None:
        for path in paths:
            self._client.fget_object(self._bucket, f"{self._prefix}/{path}", str(target / path))


class RcloneClient:
    """``rclone copy`` with as many transfers at once as ours."""

    name = "rclone"

    def __init__(self, server: S3Server, bucket: str) -> None:
        self._remote = (
            f":s3,provider=Other,access_key_id={server.access_key},secret_access_key={server.secret_key},"
            f"endpoint='{server.endpoint_url}',region={REGION},force_path_style=true:{bucket}"
        )
        self._prefix = ""

    def up(self, source: Path, paths: Sequence[str]) -> None:
        self._prefix = str(uuid.uuid4())
        self._copy(str(source), f"{self._remote}/{self._prefix}")

    def down(self, target: Path, paths: Sequence[str]) -> None:
        self._copy(f"{self._remote}/{self._prefix}", str(target))

    def _copy(self, source: str, target: str) -> None:
        command = [rclone(), "copy", source, target, "--transfers", "8", "--config", os.devnull, "-q"]
        subprocess.run([*command, "--s3-no-check-bucket", "--no-traverse"], check=True)


@dataclass
class Results:
    """Seconds by ``layout/direction/temperature/who``."""

    megabytes: int
    seconds: dict[str, float] = field(default_factory=dict)
    commit_seconds: float = 0.0
    first_seconds: float = 0.0
    second_seconds: float = 0.0

    def ratio(self, key: str) -> float:
        """How fast ours is beside the faster of the others."""
        ours, minio, rclone_ = self.beside(key)
        return min(minio, rclone_) / ours

    def beside(self, key: str) -> tuple[float, float, float]:
        """Seconds of ours, minio-py and rclone, which know one way down."""
        theirs = key.replace("/person/", "/down/")
        return self.seconds[f"{key}/ours"], self.seconds[f"{theirs}/minio"], self.seconds[f"{theirs}/rclone"]

    def note(self, name: str, taken: float) -> None:
        """Keeps the best of all passes."""
        sys.stderr.write(f"{name}: {taken:.2f} s\n")
        self.seconds[name] = min(taken, self.seconds.get(name, taken))

    def keys(self) -> list[str]:
        return [key.removesuffix("/ours") for key in self.seconds if key.endswith("/ours")]

    def missed(self) -> list[str]:
        """The limits that were missed."""
        missed = [key for key in self.keys() if self.ratio(key) < _LEAST_RATIO]
        if self.first_seconds < _LEAST_GAIN * self.second_seconds:
            missed.append("second checkpoint")
        return missed + (["commit"] if self.commit_seconds > _LONGEST_COMMIT else [])

    def describe(self) -> list[str]:
        """What a person reads."""
        lines = [f"{self.megabytes} MB; seconds of ours, minio-py, rclone; ours beside the faster"]
        for key in self.keys():
            ours, minio, rclone_ = self.beside(key)
            lines.append(f"{key:24} {ours:8.2f} {minio:8.2f} {rclone_:8.2f}   {self.ratio(key):5.2f} x")
        lines.append(
            f"commit of {_COMMIT_FILES} files {self.commit_seconds * 1000:8.1f} ms (median of {_COMMITS})"
        )
        gain = self.first_seconds / self.second_seconds
        lines.append(
            f"first checkpoint {self.first_seconds:.2f} s, second of which 90% is unchanged "
            f"{self.second_seconds:.2f} s: {gain:.1f} x"
        )
        return lines


@contextmanager
def world(folder: Path) -> Iterator[tuple[S3Server, Ours, str]]:
    with own_s3_server(folder / "s3", _KEEPING_NO_TAGS) as server:
        os.environ |= server.variables()
        bucket = server.new_bucket()
        storage = storage_pb2.Storage(
            bucket=storage_pb2.Storage.Bucket(
                bucket=bucket,
                endpoint_url=server.endpoint_url,
                provider=storage_pb2.Storage.PROVIDER_S3,
            )
        )
        # Scripts may name only storage that the operator lists.
        os.environ[BUCKETS_SETTING] = f"{server.endpoint_url}/{bucket}"
        with standalone("checkpoints") as service, service.trial_channel() as channel:
            yield server, Ours(service, CheckpointsServiceStub(channel), storage), bucket


def measure(*, megabytes: int, layouts: Sequence[int], passes: int) -> Results:
    """Measures everything."""
    results = Results(megabytes)
    with tempfile.TemporaryDirectory(prefix="resolute-bench-s3-") as text, world(Path(text)) as found:
        server, ours, bucket = found
        folder = Path(text)
        results.commit_seconds = _commit(ours, folder)
        contestants: list[Any] = [ours, MinioLoop(server, bucket), RcloneClient(server, bucket)]
        results.first_seconds, results.second_seconds = _twice(ours, folder, megabytes)
        _empty(folder / "s3")
        for count in layouts:
            source = folder / "source"
            paths = _fill(source, count=count, size=megabytes * _MEGABYTE // count)
            for temperature in ("cold", "warm") * passes:
                for contestant in contestants:
                    key = f"{count} files/{{}}/{temperature}/{contestant.name}"
                    _pass(results, contestant, key=key, source=source, paths=paths)
                _empty(folder / "s3")
            shutil.rmtree(source)
    return results


def _pass(results: Results, contestant: Any, *, key: str, source: Path, paths: Sequence[str]) -> None:
    target = source.parent / "target"
    cold = "/cold/" in key
    if cold:
        _evict(source)
    up = seconds(lambda: contestant.up(source, paths))
    results.note(key.format("up"), up)
    ways = {"down": contestant.down}
    if isinstance(contestant, Ours):
        ways["person"] = contestant.down_for_a_person
    for way, bring in ways.items():
        target.mkdir()
        if cold:
            _evict(source.parent / "s3")
        results.note(key.format(way), seconds(partial(bring, target, paths)))
        for path in (paths[0], paths[-1]):
            assert (target / path).read_bytes() == (source / path).read_bytes()
        shutil.rmtree(target)


def _empty(buckets: Path) -> None:
    """Makes room on the disk for the next round."""
    for bucket in buckets.iterdir():
        for entry in bucket.iterdir():
            shutil.rmtree(entry)


def _fill(folder: Path, *, count: int, size: int) -> list[str]:
    folder.mkdir()
    noise = os.urandom(min(size, _MEGABYTE))
    paths = [f"part-{number:05}" for number in range(count)]
    for number, path in enumerate(paths):
        with (folder / path).open("wb") as file:
            file.write(number.to_bytes(8, "big"))
            left = size - 8
            while left > 0:
                left -= file.write(noise[:left])
    return paths


def _evict(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _commit(ours: Ours, folder: Path) -> float:
    paths = _fill(folder / "commits", count=_COMMIT_FILES, size=1000)
    taken = []
    for _ in range(_COMMITS):
        checkpoint_id, entries = ours.write(folder / "commits", paths)
        began = time.perf_counter()
        ours.commit(checkpoint_id, entries)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _twice(ours: Ours, folder: Path, megabytes: int) -> tuple[float, float]:
    """Seconds of a checkpoint, and of a second one in which every tenth byte is in a file that changed."""
    source = folder / "twice"
    count = _TENTHS * _FILES_OF_A_TENTH
    paths = _fill(source, count=count, size=megabytes * _MEGABYTE // count)
    first = seconds(lambda: ours.up_sparingly(source, paths))
    for path in paths[:_FILES_OF_A_TENTH]:
        with (source / path).open("r+b") as file:
            file.write(os.urandom(8))
    second = seconds(lambda: ours.up_sparingly(source, paths))
    shutil.rmtree(source)
    return first, second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--small", type=int, default=10_000, help="files of the third layout")
    parser.add_argument("--passes", type=int, default=2, help="with cold files, and with warm ones")
    parser.add_argument("--layouts", default="", help="numbers of files instead of 1, 8 and --small")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    layouts = [int(count) for count in options.layouts.split(",") if count] or [1, 8, options.small]
    results = measure(megabytes=options.megabytes, layouts=layouts, passes=options.passes)
    if options.json:
        say(json.dumps(asdict(results)))
    else:
        say("\n".join(results.describe()))
    if results.missed():
        sys.exit(f"missed the limit: {', '.join(results.missed())}")


if __name__ == "__main__":
    main()
