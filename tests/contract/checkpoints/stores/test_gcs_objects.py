"""What only Google's store has: a service account that signs. The server here looks at no signature."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from support.object_stores.gcs import EMULATOR_VARIABLE, GcsServer, gcs_server

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.domain.checkpoint import BucketStorage, File, Provider

BUCKET = BucketStorage("weights", "team", provider=Provider.GCS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsServer]:
    with gcs_server(tmp_path_factory.mktemp("gcs")) as running:
        yield running


@pytest.fixture
def checkpoint_id() -> str:
    return str(uuid.uuid4())


def signed_text(method: str, url: str) -> tuple[bytes, bytes]:
    """What a V4 signature is over, by Google's description of it, and the signature."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    signature = bytes.fromhex(query.pop("X-Goog-Signature"))
    pairs = sorted((quote(name, safe="-._~"), quote(value, safe="-._~")) for name, value in query.items())
    request = [
        method,
        parts.path,
        "&".join(f"{name}={value}" for name, value in pairs),
        f"host:{parts.netloc}",
        "",
        query["X-Goog-SignedHeaders"],
        "UNSIGNED-PAYLOAD",
    ]
    scope = query["X-Goog-Credential"].partition("/")[2]
    digest = hashlib.sha256("\n".join(request).encode()).hexdigest()
    text = "\n".join([query["X-Goog-Algorithm"], query["X-Goog-Date"], scope, digest])
    return text.encode(), signature


@pytest.mark.parametrize("path", ["model.pt", "模型/权重 ä", "a+b&c=%41?#~", "d/..hidden"])
def test_urls_are_signed_by_the_service_account_for_one_object_and_one_method(
    server: GcsServer, checkpoint_id: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resolute.contracts.object_stores.gcs import open_store

    with monkeypatch.context() as environment:
        environment.delenv(EMULATOR_VARIABLE)
        access = server.settings().access(Provider.GCS, endpoint_url="", clock=SYSTEM_CLOCK)
        bucket = open_store(access).bucket("weights")
        name = f"team/{checkpoint_id}/{path}"
        (upload,), download = bucket.sign_upload(name, size=1).urls, bucket.read_url(name)
    key = serialization.load_pem_private_key(
        json.loads(server.credentials.read_text())["private_key"].encode(), password=None
    )
    assert isinstance(key, rsa.RSAPrivateKey)
    for method, url in (("PUT", upload), ("GET", download)):
        assert url.startswith(f"https://storage.googleapis.com/weights/team/{checkpoint_id}/")
        assert dict(parse_qsl(urlsplit(url).query))["X-Goog-Expires"] == str(6 * 3600)
        text, signature = signed_text(method, url)
        key.public_key().verify(signature, text, padding.PKCS1v15(), hashes.SHA256())


def test_absent_credentials_are_explained(
    checkpoint_id: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))
    with pytest.raises(FailedPreconditionError, match="set RESOLUTE_CHECKPOINTS_GCS_CREDENTIALS"):
        StoreFactory().open(BUCKET).download_urls(checkpoint_id, ["a"])
    settings = BucketSettings(gcs_credentials=tmp_path / "nowhere.json")
    with pytest.raises(FailedPreconditionError, match=r"nowhere\.json cannot be read"):
        StoreFactory(buckets=settings).open(BUCKET).download_urls(checkpoint_id, ["a"])


def test_the_environments_service_account_is_taken_too(
    server: GcsServer, checkpoint_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(server.credentials))
    store = StoreFactory().open(server.storage(server.new_bucket()))
    assert [str(fault) for fault in store.faults(checkpoint_id, [File("a", 1)])] == ["'a' is not there"]


def test_credentials_that_cannot_sign_are_explained(
    checkpoint_id: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    person = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "t"}
    (tmp_path / "person.json").write_text(json.dumps(person))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "person.json"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "resolute")
    with pytest.raises(
        FailedPreconditionError, match="cannot sign; set RESOLUTE_CHECKPOINTS_GCS_CREDENTIALS"
    ):
        StoreFactory().open(BUCKET).download_urls(checkpoint_id, ["a"])


def test_accounts_that_get_no_token_are_not_taken_for_empty_buckets(
    server: GcsServer, checkpoint_id: str, tmp_path: Path
) -> None:
    account = json.loads(server.credentials.read_text()) | {"token_uri": "http://127.0.0.1:9/token"}
    (tmp_path / "account.json").write_text(json.dumps(account))
    store = StoreFactory(buckets=BucketSettings(gcs_credentials=tmp_path / "account.json")).open(BUCKET)
    with pytest.raises((UnavailableError, FailedPreconditionError), match="'weights'"):
        store.faults(checkpoint_id, [File("a", 1)])


def test_an_address_is_refused() -> None:
    storage = BucketStorage("weights", "", "https://elsewhere", provider=Provider.GCS)
    with pytest.raises(InvalidArgumentError, match="leave it out for Google"):
        StoreFactory().open(storage)


def test_names_with_line_breaks_are_refused(server: GcsServer, checkpoint_id: str) -> None:
    store = StoreFactory(buckets=server.settings()).open(server.storage(server.new_bucket()))
    with pytest.raises(InvalidArgumentError, match="line break"):
        store.upload_urls(checkpoint_id, [File("a\nb", 1)])
