"""Addresses of stores, the credentials for them, and what is said when either is wrong."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

import pytest
from contract.checkpoints.off_cluster.conftest import STEPS, of_bucket
from support.object_stores.off_cluster import S3Location
from support.object_stores.s3 import S3Server

from resolute import core
from resolute.contracts.distribution import install_command
from resolute.core.checkpoint.storage import parse_storage
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
)


def test_credentials_come_from_the_environment_when_the_script_names_none(
    server: S3Server, bucket: S3Location, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint_url)
    with core.init(checkpoint_storage=f"s3://{bucket.bucket}/team/a") as context:
        checkpoint_id = context.checkpoint.upload(source, STEPS)
    assert f"{checkpoint_id}/z" in bucket.files()
    (tmp_path / "aws").write_text(
        f"[default]\naws_access_key_id = {server.access_key}\naws_secret_access_key = {server.secret_key}\n"
    )
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws"))
    with core.init(checkpoint_storage=f"s3://{bucket.bucket}/team/a") as context:
        context.checkpoint.download(checkpoint_id, tmp_path / "back")


def test_what_a_store_refuses_is_told_before_anything_is_written_and_holds_no_secret(
    server: S3Server,
    bucket: S3Location,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    caplog.set_level(logging.DEBUG)
    good = of_bucket(bucket)
    secret = "n0t-the-secret-of-anyone"
    for storage, problem in (
        ({**good, "secret_key": secret}, "refuses this"),
        ({**good, "bucket": "resolute-nowhere"}, "'resolute-nowhere' .* is not there; make the bucket"),
    ):
        with (
            core.init(checkpoint_storage=storage) as context,
            pytest.raises(FailedPreconditionError, match=problem) as caught,
        ):
            context.checkpoint.store_path(STEPS).__enter__()
        assert secret not in str(caught.value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "MINIO_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    storage = {key: value for key, value in good.items() if not key.endswith("_key")}
    with (
        core.init(checkpoint_storage=storage) as context,
        pytest.raises(FailedPreconditionError, match="set AWS_ACCESS_KEY_ID"),
    ):
        context.checkpoint.upload(tmp_path, STEPS)
    assert secret not in caplog.text
    assert server.secret_key not in caplog.text
    assert server.secret_key not in repr(parse_storage(good))


def test_an_address_that_is_none_is_refused(bucket: S3Location) -> None:
    with pytest.raises(InvalidArgumentError, match="https://host or http://host:port"):
        core.init(checkpoint_storage={**of_bucket(bucket), "endpoint_url": "minio:9000"})


@pytest.mark.parametrize(
    ("library", "storage", "extra"),
    [
        ("minio", "s3://bucket", "s3"),
        ("google.api_core", "gs://bucket", "gcs"),
        ("azure.storage.blob", {"type": "azure", "container": "c"}, "azure"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    library: str, storage: str | dict[str, str], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"resolute.contracts.object_stores.{extra}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(FailedPreconditionError, match=re.escape(install_command(extra))):
        core.init(checkpoint_storage=storage)


def test_azure_without_an_account_is_told_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
    with pytest.raises(FailedPreconditionError, match="give connection_string or account_url"):
        core.init(checkpoint_storage={"type": "azure", "container": "c"})
    secret = "AccountKey=s3cret"
    with pytest.raises(FailedPreconditionError, match="malformed") as caught:
        core.init(checkpoint_storage={"type": "azure", "container": "c", "connection_string": secret})
    assert "s3cret" not in str(caught.value)
