"""What the doctor finds in stores that are sound, and in those that are not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clocks import ManualClock
from support.file_systems import small_file_system
from support.object_stores.proxy import (
    FINE,
    Disturbance,
    ProxyBehaviour,
    ProxyRequest,
    StoreProxy,
    store_proxy,
)
from support.object_stores.s3 import REGION, S3Server, s3_server
from support.object_stores.servers import KINDS, object_server

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.examination import Finding, examine
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.roots import EVERY_BUCKET, Roots
from resolute_checkpoints.domain.checkpoint import BucketStorage, DirectoryStorage, Storage

EVERYWHERE = Roots(directories=(Path("/"),), buckets=(EVERY_BUCKET,))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def proxy(server: S3Server) -> Iterator[StoreProxy]:
    with store_proxy(server) as running:
        yield running


def found(
    storage: Storage, server: S3Server | None = None, *, clock: Clock = SYSTEM_CLOCK, secret: str = ""
) -> list[Finding]:
    settings = BucketSettings()
    if server is not None:
        secret = secret or server.secret_key
        settings = BucketSettings(access_key=server.access_key, secret_key=secret, region=REGION)
    return examine(storage, stores=StoreFactory(roots=EVERYWHERE, buckets=settings), clock=clock)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_bucket_passes_and_is_left_as_it_was(kind: str, tmp_path: Path) -> None:
    with object_server(kind, tmp_path / kind) as server:
        bucket = server.new_bucket()
        stores = StoreFactory(roots=EVERYWHERE, buckets=server.settings())
        findings = examine(server.storage(bucket, "team"), stores=stores, clock=SYSTEM_CLOCK)
        assert server.objects(bucket) == {}
    assert [finding.step for finding in findings] == [
        "list",
        "write",
        "clock",
        "read",
        "speed",
        "given up",
        "delete",
    ]
    assert all(finding.passed for finding in findings), findings
    assert "MB/s up" in findings[4].detail


def test_the_first_failure_says_what_to_do(server: S3Server) -> None:
    storage = BucketStorage(server.new_bucket(), "", server.endpoint_url)
    (refused,) = found(storage, server, secret="wrong" * 4)
    assert not refused.passed
    assert "check its credentials" in refused.detail
    (absent,) = found(BucketStorage("resolute-nowhere", "", server.endpoint_url), server)
    assert "make the bucket" in absent.detail


def test_clocks_that_differ_are_found(server: S3Server) -> None:
    bucket = server.new_bucket()
    findings = found(BucketStorage(bucket, "", server.endpoint_url), server, clock=ManualClock())
    assert [(finding.step, finding.passed) for finding in findings[-2:]] == [
        ("clock", False),
        ("delete", True),
    ]
    assert "set the clocks" in findings[-2].detail
    assert list(server.client().list_objects(bucket, recursive=True)) == []


def on(method: str, name: str, trouble: Disturbance, *, after: int = 0) -> ProxyBehaviour:
    """Disturbance for requests of a method about an object, but for the first ones."""
    left = [after]

    def mood(asked: ProxyRequest) -> Disturbance:
        if asked.method != method or not asked.path.endswith(name):
            return FINE
        left[0] -= 1
        return FINE if left[0] >= 0 else trouble

    return mood


DENIED = Disturbance(status=403, answer=b"<Error><Code>AccessDenied</Code></Error>")
TAKEN = Disturbance(status=200)


@pytest.mark.parametrize(
    ("mood", "step", "problem"),
    [
        (on("GET", "", DENIED), "list", "check its credentials and what they allow"),
        (
            on("PUT", "/probe", DENIED),
            "write",
            "answers 403 to a signed PUT: .* see what its credentials allow",
        ),
        (on("PUT", "/probe", TAKEN), "write", "what was written is not listed: 'probe' is not there"),
        (
            on("GET", "/probe", DENIED),
            "read",
            "answers 403 to a signed GET: .* see what its credentials allow",
        ),
        (
            on("GET", "/probe", Disturbance(downwards=bytes.upper)),
            "read",
            "gave other bytes than were written",
        ),
        (on("GET", "/probe", DENIED, after=1), "read", "check its credentials and what they allow"),
        (on("POST", "/probe-in-parts", DENIED), "speed", "check its credentials and what they allow"),
        (on("PUT", "/probe-in-parts", DENIED), "speed", "answers 403 to a signed PUT"),
        (on("GET", "/probe-in-parts", Disturbance(downwards=lambda data: data[1:])), "speed", "other bytes"),
        (on("DELETE", "/probe-given-up", DENIED), "given up", "check its credentials and what they allow"),
        (on("DELETE", "/probe-given-up", TAKEN), "given up", "AbortIncompleteMultipartUpload"),
        (
            on("POST", "", Disturbance(status=200, answer=b"<DeleteResult/>"), after=4),
            "delete",
            "still there",
        ),
    ],
)
def test_each_step_finds_what_is_wrong_with_a_bucket(
    server: S3Server, proxy: StoreProxy, mood: ProxyBehaviour, step: str, problem: str
) -> None:
    bucket = server.new_bucket()
    proxy.behaviour = mood
    findings = found(BucketStorage(bucket, "", proxy.server.endpoint_url), server)
    (failed,) = [finding for finding in findings if not finding.passed]
    assert failed.step == step
    assert re.search(problem, failed.detail)


@pytest.mark.parametrize(
    ("size", "step", "problem"),
    [("4k", "write", r"the disk that holds .* is full"), ("1m", "speed", r"the disk that holds .* is full")],
)
def test_a_directory_without_room_is_found(tmp_path: Path, size: str, step: str, problem: str) -> None:
    with small_file_system(tmp_path / "disk", size) as disk:
        if step == "write":
            (disk / "filler").write_bytes(b"x" * 4096)
        findings = found(DirectoryStorage(str(disk)))
        assert [(each.step, each.passed) for each in findings[-2:]] == [(step, False), ("delete", True)]
        assert re.search(problem, findings[-2].detail)
        assert {path.name for path in disk.iterdir()} <= {"filler"}


def test_a_directory_that_may_not_be_written_is_found(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "disk", "1m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        findings = found(DirectoryStorage(str(disk)))
        assert [(finding.step, finding.passed) for finding in findings[:2]] == [
            ("list", True),
            ("write", False),
        ]
        assert "let its user read and write there" in findings[1].detail


def test_directories_are_examined_too(tmp_path: Path) -> None:
    findings = found(DirectoryStorage(str(tmp_path)))
    assert [(finding.step, finding.passed) for finding in findings] == [
        ("list", True),
        ("write", True),
        ("read", True),
        ("speed", True),
        ("delete", True),
    ]
    assert "MB/s written through" in findings[3].detail
    assert "GB free" in findings[0].detail
    assert list(tmp_path.iterdir()) == []
    (absent,) = found(DirectoryStorage(str(tmp_path / "unmounted")))
    assert "mount it" in absent.detail
