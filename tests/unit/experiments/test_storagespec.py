"""Where a config's checkpoints lie, in the contract's words."""

from __future__ import annotations

from typing import Any

import pytest

from resolute.api.checkpoints.v1.checkpoint_pb2 import Storage
from resolute.errors import InvalidConfigError
from resolute_experiments.config import Layer, ineffective_fields, parse_config
from resolute_experiments.storagespec import storage, without_secrets

S3 = {"type": "s3", "bucket": "weights", "access_key": "hush", "secret_key": "silence"}


def config(section: dict[str, Any]) -> dict[str, Any]:
    return {"checkpoint_storage": section}


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            {"type": "shared_fs", "host_path": "/data", "storage_path": "runs"},
            Storage(directory=Storage.Directory(path="/data/runs")),
        ),
        ({"type": "directory", "container_path": "/c"}, Storage(directory=Storage.Directory(path="/c"))),
        (S3, Storage(bucket=Storage.Bucket(bucket="weights"))),
        (
            {**S3, "prefix": "/a/../b//c/", "endpoint_url": "http://minio:9000"},
            Storage(bucket=Storage.Bucket(bucket="weights", prefix="b/c", endpoint_url="http://minio:9000")),
        ),
    ],
)
def test_each_storage_has_its_place_and_no_secret(section: dict[str, Any], expected: Storage) -> None:
    assert storage(config(section)) == expected


@pytest.mark.parametrize("kind", ["gcs", "azure"])
def test_stores_that_are_not_here_are_refused(kind: str) -> None:
    with pytest.raises(InvalidConfigError, match="use shared_fs, directory or s3"):
        storage(config({"type": kind, "bucket": "b"}))


def test_keys_of_a_bucket_are_not_kept_and_their_owner_is_told() -> None:
    document = {
        "name": "n",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
        "checkpoint_storage": S3,
    }
    parsed = parse_config(document, layers=[Layer("cluster defaults", {})])
    kept = without_secrets(parsed.to_dict())
    assert kept["checkpoint_storage"]["access_key"] is None
    assert kept["checkpoint_storage"]["secret_key"] is None
    assert "hush" not in str(kept)
    assert "silence" not in str(kept)
    warned = {warning.path for warning in ineffective_fields(parsed)}
    assert {"checkpoint_storage.access_key", "checkpoint_storage.secret_key"} <= warned


def test_password_of_a_registry_is_not_kept() -> None:
    document = {
        "name": "n",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
        "checkpoint_storage": {"type": "directory", "container_path": "/c"},
        "environment": {"registry_auth": {"username": "ada", "password": "hush", "auth": "silence"}},
    }
    kept = without_secrets(parse_config(document, layers=[Layer("cluster defaults", {})]).to_dict())
    assert kept["environment"]["registry_auth"]["username"] == "ada"
    assert "hush" not in str(kept)
    assert "silence" not in str(kept)
