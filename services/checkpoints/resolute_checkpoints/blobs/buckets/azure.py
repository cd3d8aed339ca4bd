"""Containers of Azure Blob Storage, by Azure's own library. Large files go as blocks, listed on commit."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from resolute.contracts.clock import Clock
from resolute.contracts.object_stores.names import azure_problem
from resolute.errors import FailedPreconditionError, ResoluteError, UnavailableError
from resolute_checkpoints.blobs.base import FinishedUpload, Upload
from resolute_checkpoints.blobs.buckets.base import (
    CONNECT_SECONDS,
    READ_SECONDS,
    BucketSettings,
    missing_extra,
    new_pool,
)
from resolute_checkpoints.blobs.buckets.errors import ACCESS_DENIED, from_code, shortened, transport_errors
from resolute_checkpoints.blobs.buckets.multipart import MULTIPART_BYTES, part_size_of
from resolute_checkpoints.blobs.buckets.object_store import map_concurrently
from resolute_checkpoints.domain.checkpoint import File

try:
    from azure.core import MatchConditions
    from azure.core import exceptions as answers
    from azure.storage.blob import (
        BlobBlock,
        BlobSasPermissions,
        BlobServiceClient,
        LinearRetry,
        generate_blob_sas,
    )
except ImportError as error:
    raise missing_extra("azure", what="a container of Azure Blob Storage") from error

_WHOLE = {"x-ms-blob-type": "BlockBlob"}
_NO_BLOCKS = frozenset({"InvalidBlockList", "InvalidBlobOrBlock", "BlobNotFound"})
_CREDENTIALS = (
    "set RESOLUTE_CHECKPOINTS_AZURE_CONNECTION_STRING, or RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_URL and "
    "RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_KEY, for the checkpoints service"
)


class AzureClient:
    """The client of the one storage account that the service has the key of.

    Args:
        settings: How the service uses buckets.
        endpoint_url: Address of the account; empty for the service's.
        clock: Tells when URLs run out.

    Raises:
        FailedPreconditionError: The service has no key, or that of another account.
    """

    def __init__(self, settings: BucketSettings, *, endpoint_url: str, clock: Clock) -> None:
        self.known_buckets: set[str] = set()
        self.http = new_pool()
        self.service = _service(settings)
        """The library's client."""
        self.address = str(self.service.url).rstrip("/")
        """Address of the account."""
        if endpoint_url.rstrip("/") not in {"", self.address}:
            raise FailedPreconditionError(
                f"the checkpoints service has the key of {self.address}, not of {endpoint_url}; "
                f"name that account, or {_CREDENTIALS}"
            )
        self._seconds = settings.url_seconds
        self._clock = clock
        # The library takes a signature for a key too.
        self._key = str(getattr(self.service.credential, "account_key", "") or "")
        if not _is_key(self._key):
            raise FailedPreconditionError(
                f"the credentials for {self.address} hold no account key, which signs URLs; {_CREDENTIALS}"
            )

    def bucket(self, name: str) -> AzureContainer:
        """Gives a container of the account."""
        return AzureContainer(self, name)

    def signature(self, container: str, key: str, permission: BlobSasPermissions) -> str:
        """Signs what may be done with one blob."""
        expiry = datetime.fromtimestamp(self._clock.time() + self._seconds, timezone.utc)
        signature: str = generate_blob_sas(
            account_name=str(self.service.account_name),
            container_name=container,
            blob_name=key,
            account_key=self._key,
            permission=permission,
            expiry=expiry,
        )
        return signature


def _service(settings: BucketSettings) -> BlobServiceClient:
    how: dict[str, Any] = {
        # The library's own pauses begin at a quarter of a minute.
        "retry_policy": LinearRetry(backoff=1, retry_total=3, random_jitter_range=1),
        "connection_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
    }
    try:
        if settings.azure_connection_string:
            return BlobServiceClient.from_connection_string(settings.azure_connection_string, **how)
        if settings.azure_account_url:
            key = settings.azure_account_key
            return BlobServiceClient(settings.azure_account_url, credential=key, **how)
    except ValueError as error:
        raise FailedPreconditionError(
            f"the checkpoints service's credentials for Azure are wrong ({shortened(error)}); {_CREDENTIALS}"
        ) from error
    raise FailedPreconditionError(f"the checkpoints service has no credentials for Azure; {_CREDENTIALS}")


class AzureContainer:
    """One container.

    Args:
        client: Talks to the account.
        name: Name of the container.
    """

    def __init__(self, client: AzureClient, name: str) -> None:
        self._client = client
        self._name = name
        self._container = client.service.get_container_client(name)
        self.place = f"container {name!r} of {client.address}"
        """Which it is, for messages."""

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what the store answers, or that it does not, into errors that name the place and the remedy.

        Raises:
            FailedPreconditionError: The store refuses the service, or there is no such container.
            NotFoundError: There is no such blob.
            UnavailableError: Anything else, which may pass.
        """
        with transport_errors(self.place):
            try:
                yield
            except ResoluteError:
                raise
            except answers.HttpResponseError as error:
                code = _code_of(error)
                if not code and error.status_code in {401, 403}:
                    code = ACCESS_DENIED
                # Lines after the first hold the request's number and the answer in full.
                said = shortened(error).partition("\n")[0]
                raise from_code(self.place, code or str(error.status_code), said) from error
            except answers.AzureError as error:
                raise UnavailableError(
                    f"{self.place} does not answer ({shortened(error)}); try again"
                ) from error
            except ValueError as error:
                raise FailedPreconditionError(
                    f"{self.place} cannot be used: {shortened(error)}; check the container's name and "
                    f"{_CREDENTIALS}"
                ) from error

    def exists(self) -> bool:
        """Whether the container is there."""
        return bool(self._container.exists())

    def make(self) -> None:
        """Makes the container."""
        self._container.create_container()

    def problem(self, key: str) -> str:
        """What is wrong with a key; empty when nothing is."""
        return azure_problem(key)

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Gives keys that begin with a prefix, and their bytes."""
        for blob in self._container.list_blobs(name_starts_with=prefix):
            yield blob.name, blob.size

    def remove(self, keys: Iterable[str]) -> None:
        """Removes blobs, a few at a time."""
        map_concurrently(self._remove, keys)

    def read_url(self, key: str) -> str:
        """Presigns a URL that gives a blob."""
        return self._signed(key, BlobSasPermissions(read=True))

    def upload(self, key: str, file: File) -> Upload:
        """Presigns a URL for a small file, and one for each block of a large one."""
        url = self._signed(key, BlobSasPermissions(create=True, write=True))
        if file.size < MULTIPART_BYTES:
            return Upload(file.path, (url,), headers=_WHOLE)
        part_size = part_size_of(file.size, key=key)
        upload_id = uuid.uuid4().hex
        blocks = _blocks(upload_id, -(-file.size // part_size))
        urls = tuple(f"{url}&comp=block&blockid={_encoded(block)}" for block in blocks)
        return Upload(file.path, urls, part_size=part_size, upload_id=upload_id)

    def finish(self, key: str, upload: FinishedUpload) -> None:
        """Lists the blocks that the blob is made of; the names tell them from those of other attempts."""
        blocks = [BlobBlock(block) for block in _blocks(upload.upload_id, len(upload.etags))]
        try:
            self._container.get_blob_client(key).commit_block_list(blocks)
        except answers.HttpResponseError as error:
            # The blocks are gone: what is there instead is left to the look at the sizes.
            if _code_of(error) not in _NO_BLOCKS:
                raise

    def drop(self, key: str, upload_id: str) -> None:
        """Removes all blocks of a blob that was never made, of whichever upload.

        The store has no request for that. But blocks that are not listed go when a blob is made, be it of
        none, and then that one can go. Where a blob is already, the commit that made it has dropped them.
        """
        blob = self._container.get_blob_client(key)
        with suppress(answers.ResourceExistsError, answers.ResourceModifiedError):
            made = blob.commit_block_list([], match_condition=MatchConditions.IfMissing)
            with suppress(answers.ResourceNotFoundError):
                blob.delete_blob(etag=made["etag"], match_condition=MatchConditions.IfNotModified)

    def _remove(self, key: str) -> None:
        try:
            self._container.delete_blob(key, delete_snapshots="include")
        except answers.ResourceNotFoundError as error:
            if _code_of(error) != "BlobNotFound":
                raise

    def _signed(self, key: str, permission: BlobSasPermissions) -> str:
        url = self._container.get_blob_client(key).url
        return f"{url}?{self._client.signature(self._name, key, permission)}"


def _is_key(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _code_of(error: Exception) -> str:
    """The store's own code; the library gives a member of an enumeration."""
    code = getattr(error, "error_code", None) or ""
    return str(getattr(code, "value", code))


def _blocks(upload_id: str, count: int) -> list[str]:
    """Names the blocks of an upload: of equal lengths, as the store wants them."""
    return [f"{upload_id}-{number:06}" for number in range(count)]


def _encoded(block: str) -> str:
    """Writes the name of a block for a URL; the library does so by itself."""
    return quote(base64.b64encode(block.encode()), safe="")
