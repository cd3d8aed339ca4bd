"""What the doctor finds in stores that are sound, and in those that are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clocks import ManualClock
from support.s3 import REGION, S3Server, own_s3_server

from resolute.clock import SYSTEM_CLOCK, Clock
from resolute_checkpoints.blobs.buckets import BucketSettings
from resolute_checkpoints.blobs.stores import Stores
from resolute_checkpoints.checkpoint import BucketStorage, DirectoryStorage, Storage
from resolute_checkpoints.examination import Finding, examine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with own_s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


def found(
    storage: Storage, server: S3Server | None = None, *, clock: Clock = SYSTEM_CLOCK, secret: str = ""
) -> list[Finding]:
    settings = BucketSettings()
    if server is not None:
        secret = secret or server.secret_key
        settings = BucketSettings(access_key=server.access_key, secret_key=secret, region=REGION)
    return examine(storage, stores=Stores(buckets=settings), clock=clock)


def test_a_sound_bucket_passes_and_is_left_as_it_was(server: S3Server) -> None:
    bucket = server.new_bucket()
    findings = found(BucketStorage(bucket, "team", server.endpoint_url), server)
    assert [finding.step for finding in findings] == [
        "list",
        "write",
        "clock",
        "read",
        "large files",
        "delete",
    ]
    assert all(finding.passed for finding in findings), findings
    assert "MB/s up" in findings[4].detail
    assert list(server.client().list_objects(bucket, recursive=True)) == []


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


def test_directories_are_examined_too(tmp_path: Path) -> None:
    findings = found(DirectoryStorage(str(tmp_path)))
    assert [(finding.step, finding.passed) for finding in findings] == [
        ("list", True),
        ("write", True),
        ("read", True),
        ("delete", True),
    ]
    assert "GB free" in findings[0].detail
    assert list(tmp_path.iterdir()) == []
    (absent,) = found(DirectoryStorage(str(tmp_path / "unmounted")))
    assert "mount it" in absent.detail
