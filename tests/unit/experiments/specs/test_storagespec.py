"""Where a config's checkpoints lie, in the contract's words."""

from __future__ import annotations

from typing import Any

import pytest

from resolute.api.checkpoints.v1.storage_pb2 import Storage
from resolute.errors import InvalidConfigError
from resolute_config.ineffective_fields import ineffective_fields
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config
from resolute_experiments.specs.storage import storage, without_secrets

S3 = {"type": "s3", "bucket": "weights", "access_key": "hush", "secret_key": "silence"}


KEY = "aHVzaA=="
ADA = "https://ada.blob.core.windows.net"
AZURE = {"type": "azure", "container": "weights"}
DOCUMENT = {
    "name": "n",
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
}


def container(account_url: str) -> Storage:
    return Storage(
        bucket=Storage.Bucket(bucket="weights", endpoint_url=account_url, provider=Storage.PROVIDER_AZURE)
    )


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
        (S3, Storage(bucket=Storage.Bucket(bucket="weights", provider=Storage.PROVIDER_S3))),
        (
            {**S3, "prefix": "/a/../b//c/", "endpoint_url": "http://minio:9000"},
            Storage(
                bucket=Storage.Bucket(
                    bucket="weights",
                    prefix="b/c",
                    endpoint_url="http://minio:9000",
                    provider=Storage.PROVIDER_S3,
                )
            ),
        ),
        (
            {"type": "gcs", "bucket": "weights", "prefix": "a/"},
            Storage(bucket=Storage.Bucket(bucket="weights", prefix="a", provider=Storage.PROVIDER_GCS)),
        ),
        ({**AZURE, "connection_string": f"AccountName=ada;AccountKey={KEY}"}, container(ADA)),
        (
            {
                **AZURE,
                "connection_string": f"DefaultEndpointsProtocol=http;AccountName=ada;AccountKey={KEY};"
                "EndpointSuffix=core.chinacloudapi.cn",
            },
            container("http://ada.blob.core.chinacloudapi.cn"),
        ),
        (
            {**AZURE, "connection_string": f"AccountKey={KEY};BlobEndpoint=http://127.0.0.1:10000/ada/"},
            container("http://127.0.0.1:10000/ada"),
        ),
        (
            {**AZURE, "connection_string": "UseDevelopmentStorage=true"},
            container("http://127.0.0.1:10000/devstoreaccount1"),
        ),
        ({**AZURE, "account_url": f"{ADA}/?sv=1&sig=hush", "credential": KEY}, container(ADA)),
    ],
)
def test_each_storage_has_its_place_and_no_secret(section: dict[str, Any], expected: Storage) -> None:
    assert storage(config(section)) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("connection_string", f"AccountKey={KEY}"),
        ("connection_string", KEY),
        ("connection_string", f"BlobEndpoint=ada;AccountKey={KEY}"),
        ("account_url", "ada"),
        ("account_url", f"https://ada:{KEY}@host"),
    ],
)
def test_accounts_without_an_address_are_refused_and_the_message_holds_no_secret(
    field: str, value: str
) -> None:
    with pytest.raises(InvalidConfigError, match=f"{field} names no account") as caught:
        storage(config({**AZURE, field: value}))
    assert KEY not in str(caught.value)


def test_of_an_account_only_the_address_is_kept_and_a_kept_config_can_be_read_again() -> None:
    secret = {**AZURE, "connection_string": f"AccountName=ada;AccountKey={KEY}"}
    parsed = parse_config({**DOCUMENT, "checkpoint_storage": secret}, layers=[])
    kept = without_secrets(parsed.to_dict())
    assert KEY not in str(kept)
    assert kept["checkpoint_storage"]["account_url"] == ADA
    assert storage(parse_config(kept, layers=[]).to_dict()) == storage(parsed.to_dict())
    (warning,) = (each for each in ineffective_fields(parsed) if "storage" in each.path)
    assert warning.path == "checkpoint_storage.connection_string"


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
