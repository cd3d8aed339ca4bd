"""Where checkpoints lie, as rows keep it."""

from __future__ import annotations

import json

import pytest

from resolute.api.checkpoints.v1 import storage_pb2 as messages
from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.checkpoint import BucketStorage, DirectoryStorage, Provider, Storage
from resolute_checkpoints.servicers.checkpoint_messages import to_storage
from resolute_checkpoints.store.rows import decode_storage, encode_storage


@pytest.mark.parametrize(
    "storage",
    [
        DirectoryStorage("/data"),
        BucketStorage("weights", "a", "http://minio:9000"),
        BucketStorage("weights", provider=Provider.GCS),
        BucketStorage("weights", "", "https://ada.blob.core.windows.net", provider=Provider.AZURE),
    ],
)
def test_every_storage_is_read_as_it_was_written(storage: Storage) -> None:
    assert decode_storage(encode_storage(storage)) == storage


def test_rows_of_s3_are_those_of_before_there_were_other_providers() -> None:
    row = {"bucket": "weights", "credentials": "", "endpoint_url": "", "kind": "bucket", "prefix": "a"}
    assert encode_storage(BucketStorage("weights", "a")) == json.dumps(row, sort_keys=True)


def test_rows_that_name_credentials_are_read_without_them() -> None:
    row = {"bucket": "weights", "credentials": "team", "endpoint_url": "", "kind": "bucket", "prefix": "a"}
    assert decode_storage(json.dumps(row)) == BucketStorage("weights", "a")


@pytest.mark.parametrize("provider", [0, 99])
def test_a_provider_that_is_missing_or_of_a_later_release_is_refused(provider: int) -> None:
    message = messages.Storage(bucket=messages.Storage.Bucket(bucket="b"))
    message.bucket.MergeFromString(bytes([0x20, provider]))
    with pytest.raises(InvalidArgumentError, match=rf"provider is {provider}; it must be one of PROVIDER_S3"):
        to_storage(message)
