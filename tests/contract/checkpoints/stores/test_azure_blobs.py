"""What only Azure's blobs have: one account, its key, and names that it would change."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
import urllib3
from support.clocks import ManualClock
from support.object_stores.azure import AzureServer, azure_server

from resolute.contracts.object_stores.multipart import MULTIPART_BYTES
from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_checkpoints.blobs.base import FinishedUpload, OpenUpload
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.domain.checkpoint import BucketStorage, File, Provider

HTTP = urllib3.PoolManager(retries=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    with azure_server(tmp_path_factory.mktemp("azure")) as running:
        yield running


@pytest.fixture
def checkpoint_id() -> str:
    return str(uuid.uuid4())


def test_a_wrong_key_is_explained(server: AzureServer, checkpoint_id: str) -> None:
    wrong = BucketSettings(
        azure_account_url=server.account_url, azure_account_key=base64.b64encode(b"wrong" * 9).decode()
    )
    store = StoreFactory(buckets=wrong).open(server.storage(server.new_bucket()))
    with pytest.raises(FailedPreconditionError, match=r"refuses the checkpoints service .* credentials"):
        store.faults(checkpoint_id, [File("a", 1)])


def test_address_and_key_do_as_well_as_a_connection_string(server: AzureServer, checkpoint_id: str) -> None:
    settings = BucketSettings(azure_account_url=server.account_url, azure_account_key=server.secret)
    for storage in (server.storage(server.new_bucket()), replace(server.storage("x"), endpoint_url="")):
        bucket = server.new_bucket()
        store = StoreFactory(buckets=settings).open(replace(storage, bucket=bucket))
        (upload,) = store.upload_urls(checkpoint_id, [File("a", 1)])
        assert HTTP.request("PUT", upload.urls[0], body=b"1", headers=upload.headers).status == 201
        assert server.objects(bucket) == {f"{checkpoint_id}/a": 1}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (BucketSettings(), "has no credentials for Azure; set RESOLUTE_CHECKPOINTS_AZURE_CONNECTION_STRING"),
        (
            BucketSettings(azure_connection_string="AccountName"),
            "service for Azure are malformed",
        ),
        (
            BucketSettings(
                azure_connection_string="BlobEndpoint=https://a.blob.core.windows.net;SharedAccessSignature=sv=1&sig=s"
            ),
            "hold no account key",
        ),
    ],
)
def test_credentials_that_cannot_sign_are_explained(settings: BucketSettings, problem: str) -> None:
    with pytest.raises(FailedPreconditionError, match=problem):
        StoreFactory(buckets=settings).open(BucketStorage("c", provider=Provider.AZURE))


def test_another_account_is_refused_and_its_address_gets_no_signature(server: AzureServer) -> None:
    storage = BucketStorage("c", "", "https://other.blob.core.windows.net", provider=Provider.AZURE)
    with pytest.raises(FailedPreconditionError, match=r"has the key of http.*, not of https://other"):
        StoreFactory(buckets=server.settings()).open(storage)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a\\b", "holds a backslash"),
        ("d./a", "ends in a dot"),
        ("a.", "ends in a dot"),
        ("/".join("x" * 300), "use shorter names"),
    ],
)
def test_names_that_azure_would_change_are_refused(
    server: AzureServer, checkpoint_id: str, name: str, problem: str
) -> None:
    store = StoreFactory(buckets=server.settings()).open(server.storage(server.new_bucket()))
    with pytest.raises(InvalidArgumentError, match=problem):
        store.upload_urls(checkpoint_id, [File(name, 1)])


def test_blocks_of_another_attempt_are_left_out(server: AzureServer, checkpoint_id: str) -> None:
    bucket = server.new_bucket()
    store = StoreFactory(buckets=server.settings()).open(server.storage(bucket))
    file = File("big", MULTIPART_BYTES)
    (first,) = store.upload_urls(checkpoint_id, [file])
    assert HTTP.request("PUT", first.urls[0], body=b"half").status == 201
    (second,) = store.upload_urls(checkpoint_id, [file])
    size, tags = second.part_size, ("",) * len(second.urls)
    for url, letter in zip(second.urls, (b"a", b"b", b"c", b"d"), strict=True):
        assert HTTP.request("PUT", url, body=letter * size).status == 201
    store.finish_uploads(checkpoint_id, [FinishedUpload("big", second.upload_id, tags)])
    with store.open(checkpoint_id, "big", offset=size - 1) as stream:
        assert stream.read(2) == b"ab"
    store.finish_uploads(checkpoint_id, [FinishedUpload("big", first.upload_id, tags)])
    assert store.faults(checkpoint_id, [file]) == []


def test_urls_run_out_by_the_services_clock(server: AzureServer, checkpoint_id: str) -> None:
    stores = StoreFactory(buckets=server.settings(), clock=ManualClock())
    (url,) = stores.open(server.storage(server.new_bucket())).download_urls(checkpoint_id, ["a"])
    assert HTTP.request("GET", url).status == 403


def test_blocks_that_nobody_lists_are_removed_and_a_blob_that_was_made_stays(
    server: AzureServer, checkpoint_id: str
) -> None:
    bucket = server.new_bucket()
    store = StoreFactory(buckets=server.settings()).open(server.storage(bucket))
    (upload,) = store.upload_urls(checkpoint_id, [File("d/big", MULTIPART_BYTES)])
    assert HTTP.request("PUT", upload.urls[0], body=b"part").status == 201
    assert server.uncommitted(bucket) == [f"{checkpoint_id}/d/big"]
    for _ in range(2):
        store.drop_uploads(checkpoint_id, [OpenUpload("d/big", upload.upload_id)])
    assert (server.uncommitted(bucket), server.objects(bucket)) == ([], {})
    (again,) = store.upload_urls(checkpoint_id, [File("d/big", MULTIPART_BYTES)])
    assert HTTP.request("PUT", again.urls[0], body=b"whole").status == 201
    store.finish_uploads(checkpoint_id, [FinishedUpload("d/big", again.upload_id, ("",))])
    store.drop_uploads(checkpoint_id, [OpenUpload("d/big", upload.upload_id)])
    assert server.objects(bucket) == {f"{checkpoint_id}/d/big": 5}


@pytest.mark.parametrize("name", ["Upper_Case!", "x"])
def test_a_name_that_no_container_has_is_explained_and_not_tried_again(
    server: AzureServer, checkpoint_id: str, name: str
) -> None:
    store = StoreFactory(buckets=server.settings()).open(server.storage(name))
    with pytest.raises(FailedPreconditionError, match="has a name that the store does not accept"):
        store.upload_urls(checkpoint_id, [File("a", 1)])
