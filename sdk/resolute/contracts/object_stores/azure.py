"""Containers of Azure Blob Storage, by Azure's library. Large files are uploaded as blocks, then listed."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any, BinaryIO, final
from urllib.parse import quote

from azure.core import MatchConditions
from azure.core import exceptions as answers
from azure.storage.blob import (
    BlobBlock,
    BlobSasPermissions,
    BlobServiceClient,
    LinearRetry,
    generate_blob_sas,
)

from resolute.contracts.object_stores.access import CONNECT_SECONDS, READ_SECONDS, StoreAccess
from resolute.contracts.object_stores.bucket import SignedUpload, map_concurrently
from resolute.contracts.object_stores.errors import (
    ACCESS_DENIED,
    NO_BUCKET,
    Answers,
    shortened,
    transport_errors,
)
from resolute.contracts.object_stores.multipart import MULTIPART_BYTES, part_size_of
from resolute.contracts.object_stores.names import azure_problem
from resolute.errors import FailedPreconditionError, ResoluteError, UnavailableError

_PART_BYTES = 16 << 20
_PARTS_AT_ONCE = 4
_BEYOND = 416
_WHOLE = {"x-ms-blob-type": "BlockBlob"}
_NO_BLOCKS = frozenset({"InvalidBlockList", "InvalidBlobOrBlock", "BlobNotFound"})
_CREDENTIALS = "give connection_string or account_url, or set AZURE_STORAGE_CONNECTION_STRING"


def open_store(access: StoreAccess) -> AzureStore:
    """Opens a storage account; nothing is asked of it yet.

    Raises:
        FailedPreconditionError: There are no credentials, or none that can be used.
    """
    return AzureStore(access)


@final
class AzureStore:
    """Connections to one storage account.

    Args:
        access: Address and credentials of the account.
    """

    def __init__(self, access: StoreAccess) -> None:
        self.access = access
        self.service = _service(access)
        """The library's client."""
        # A signature may follow.
        self.address = str(self.service.url).partition("?")[0].rstrip("/")
        """Address of the account."""
        # The library takes a signature for a key too.
        self._key = str(getattr(self.service.credential, "account_key", "") or "")
        if access.signs and not _is_key(self._key):
            raise FailedPreconditionError(
                f"the credentials of {access.caller} for {self.address} hold no account key, which signs "
                f"URLs; {access.credentials_help or _CREDENTIALS}"
            )

    def bucket(self, name: str) -> AzureContainer:
        """Returns a container of the account."""
        return AzureContainer(self, name)

    def signature(self, container: str, key: str, permission: BlobSasPermissions) -> str:
        """Signs what may be done with one blob."""
        expiry = datetime.fromtimestamp(self.access.clock.time() + self.access.url_seconds, timezone.utc)
        signature: str = generate_blob_sas(
            account_name=str(self.service.account_name),
            container_name=container,
            blob_name=key,
            account_key=self._key,
            permission=permission,
            expiry=expiry,
        )
        return signature


def _service(access: StoreAccess) -> BlobServiceClient:
    settings: dict[str, Any] = {
        "max_single_put_size": _PART_BYTES,
        "max_block_size": _PART_BYTES,
        # Blocks are read one after another, as they are hashed.
        "use_byte_buffer": True,
        "max_single_get_size": _PART_BYTES,
        "max_chunk_get_size": _PART_BYTES,
        "connection_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        # The library's own pauses begin at a quarter of a minute.
        "retry_policy": LinearRetry(backoff=1, retry_total=2, random_jitter_range=1),
    }
    remedy = access.credentials_help or _CREDENTIALS
    try:
        if access.connection_string:
            return BlobServiceClient.from_connection_string(access.connection_string, **settings)
        if access.endpoint_url:
            return BlobServiceClient(access.endpoint_url, credential=access.secret_key or None, **settings)
    except ValueError:
        # What the library says may quote the secret.
        raise FailedPreconditionError(
            f"the credentials of {access.caller} for Azure are malformed; copy them again: {remedy}"
        ) from None
    raise FailedPreconditionError(f"{access.caller} has no credentials for Azure; {remedy}")


@final
class AzureContainer:
    """One container.

    Args:
        store: The connections to the account.
        name: Name of the container.
    """

    problem = staticmethod(azure_problem)
    """What is wrong with a name; empty when nothing is."""

    def __init__(self, store: AzureStore, name: str) -> None:
        self.place = f"container {name!r} of {store.address}"
        self._store = store
        self._name = name
        self._container = store.service.get_container_client(name)
        self._answers = Answers(self.place, store.access)

    def exists(self) -> bool:
        """Whether the container exists."""
        with self._errors():
            return bool(self._container.exists())

    def make(self) -> None:
        """Makes the container."""
        with self._errors():
            self._container.create_container()

    def missing(self) -> ResoluteError:
        """Makes the error that says that the bucket does not exist."""
        return self._answers.from_code(NO_BUCKET, "")

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Writes a blob; a large one goes in blocks, several at once."""
        with self._errors(key):
            self._container.upload_blob(
                key, content, length=size, overwrite=True, max_concurrency=_PARTS_AT_ONCE
            )

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Generator[bytes, None, None]:
        """Yields the bytes of a blob."""
        with self._errors(key):
            offset = start if start or size else None
            try:
                download = self._container.download_blob(key, offset, size or None)
            except answers.HttpResponseError as error:
                if error.status_code == _BEYOND:
                    return
                raise
            yield from download.chunks()

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields names and bytes."""
        with self._errors():
            for blob in self._container.list_blobs(name_starts_with=prefix):
                yield blob.name, blob.size or 0

    def delete(self, keys: Iterable[str]) -> None:
        """Removes blobs, a few at a time."""
        with self._errors():
            map_concurrently(self._delete, keys)

    def read_url(self, key: str) -> str:
        """Signs a URL that gives a blob."""
        with self._errors(key):
            return self._signed(key, BlobSasPermissions(read=True))

    def sign_upload(self, key: str, *, size: int) -> SignedUpload:
        """Signs a URL for a small blob, and one for each block of a large one."""
        with self._errors(key):
            url = self._signed(key, BlobSasPermissions(create=True, write=True))
        if size < MULTIPART_BYTES:
            return SignedUpload((url,), headers=_WHOLE)
        part_size = part_size_of(size, key=key)
        upload_id = uuid.uuid4().hex
        blocks = _blocks(upload_id, -(-size // part_size))
        urls = tuple(f"{url}&comp=block&blockid={_encoded(block)}" for block in blocks)
        return SignedUpload(urls, part_size=part_size, upload_id=upload_id)

    def finish_upload(self, key: str, *, upload_id: str, tags: Sequence[str]) -> None:
        """Lists the blocks that the blob is made of; the names tell them from those of other attempts."""
        blocks = [BlobBlock(block) for block in _blocks(upload_id, len(tags))]
        with self._errors(key):
            try:
                self._container.get_blob_client(key).commit_block_list(blocks)
            except answers.HttpResponseError as error:
                # The blocks are gone: the sizes of the blobs tell what is there instead.
                if _code_of(error) not in _NO_BLOCKS:
                    raise

    def abort_upload(self, key: str, *, upload_id: str) -> None:
        """Removes all blocks of a blob that was never made, of whichever upload.

        The store has no request for that. But blocks that are not listed go when a blob is made, be it of
        none, and then that one can go. Where a blob is already, the commit that made it has dropped them.
        """
        blob = self._container.get_blob_client(key)
        with self._errors(key), suppress(answers.ResourceExistsError, answers.ResourceModifiedError):
            made = blob.commit_block_list([], match_condition=MatchConditions.IfMissing)
            with suppress(answers.ResourceNotFoundError):
                blob.delete_blob(etag=made["etag"], match_condition=MatchConditions.IfNotModified)

    def _delete(self, key: str) -> None:
        try:
            self._container.delete_blob(key, delete_snapshots="include")
        except answers.ResourceNotFoundError as error:
            if _code_of(error) != "BlobNotFound":
                raise

    def _signed(self, key: str, permission: BlobSasPermissions) -> str:
        url = self._container.get_blob_client(key).url
        return f"{url}?{self._store.signature(self._name, key, permission)}"

    @contextmanager
    def _errors(self, key: str = "") -> Iterator[None]:
        """Turns what the store answers, or that it does not, into the platform's errors.

        Args:
            key: The object that was asked for, if it was one.
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
                message = shortened(error).partition("\n")[0]
                raise self._answers.from_code(
                    code or str(error.status_code), message, status=error.status_code or 0, key=key
                ) from error
            except answers.AzureError as error:
                raise UnavailableError(
                    f"{self.place} does not answer ({shortened(error)}); try again"
                ) from error
            except ValueError as error:
                raise self._answers.no_credentials(
                    f"{shortened(error)}; check the container's name", _CREDENTIALS
                ) from error


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
