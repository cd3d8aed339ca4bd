"""The argument ``checkpoint_storage`` of ``core.init``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from resolute.contracts.object_stores.factory import open_bucket
from resolute.contracts.object_stores.location import BucketStorage
from resolute.core.checkpoint.stores.base import RecordKeepingStore
from resolute.core.checkpoint.stores.bucket import BucketStore
from resolute.core.checkpoint.stores.directory import DirectoryStore


@dataclass(frozen=True, slots=True)
class DirectoryStorage:
    """A directory that all processes and the services see under the same path."""

    path: Path


Storage = DirectoryStorage | BucketStorage


def parse_storage(storage: str | Mapping[str, Any]) -> Storage:
    """Parses a checkpoint storage.

    Args:
        storage: A path, ``file://...``, ``s3://bucket/prefix`` or ``gs://bucket/prefix``; or a mapping like
            the section ``checkpoint_storage`` of a config, of any type but ``shared_fs``.

    Raises:
        ValueError: It is none of these.
        TypeError: It is neither text nor a mapping.
    """
    if isinstance(storage, str):
        return _parse_text(storage)
    if isinstance(storage, Mapping):
        return _parse_mapping(storage)
    raise TypeError(f"checkpoint_storage must be a text or a dict, not a {type(storage).__name__}")


def _parse_text(text: str) -> Storage:
    url = urlparse(text)
    if url.query or url.fragment or url.params:
        raise ValueError(f"checkpoint_storage {text!r} must have no query, fragment or parameters")
    if url.scheme == "":
        return DirectoryStorage(Path(text).expanduser().absolute())
    if url.scheme == "file":
        if url.netloc not in {"", "localhost"} or not url.path:
            raise ValueError(f"checkpoint_storage {text!r} must be like file:///absolute/path")
        return DirectoryStorage(Path(url.path))
    kind = {"s3": "s3", "gs": "gcs"}.get(url.scheme)
    if kind is None:
        raise ValueError(
            f"checkpoint_storage {text!r} has the unknown scheme {url.scheme!r}; "
            "use a path, file://, s3:// or gs://"
        )
    if not url.netloc:
        raise ValueError(f"checkpoint_storage {text!r} names no bucket")
    return BucketStorage(kind, url.netloc, prefix=_prefix(url.path))


def _parse_mapping(content: Mapping[str, Any]) -> Storage:
    kind = content.get("type")
    if kind == "shared_fs":
        raise ValueError(
            "checkpoint_storage of type shared_fs cannot be given to core.init; give the path instead"
        )
    if kind == "directory":
        return DirectoryStorage(Path(_required(content, "container_path")).absolute())
    if kind in {"s3", "gcs"}:
        return BucketStorage(
            kind,
            _required(content, "bucket"),
            prefix=_prefix(_optional(content, "prefix")),
            endpoint_url=_optional(content, "endpoint_url"),
            access_key=_optional(content, "access_key"),
            secret_key=_optional(content, "secret_key"),
        )
    if kind == "azure":
        return _parse_azure(content)
    raise ValueError(f"checkpoint_storage has the type {kind!r}; directory, s3, gcs or azure was expected")


def _parse_azure(content: Mapping[str, Any]) -> BucketStorage:
    account, connection = _optional(content, "account_url"), _optional(content, "connection_string")
    credential = _optional(content, "credential")
    if account and connection:
        raise ValueError("checkpoint_storage of type azure takes account_url or connection_string, not both")
    if "?" in account:
        raise ValueError(
            "account_url of checkpoint_storage must have no token in it; give that as credential"
        )
    if credential and not account:
        raise ValueError("checkpoint_storage of type azure takes a credential only beside account_url")
    return BucketStorage(
        "azure",
        _required(content, "container"),
        endpoint_url=account,
        secret_key=credential,
        connection_string=connection,
    )


def _prefix(text: str) -> str:
    prefix = text.strip("/")
    if ".." in prefix.split("/"):
        raise ValueError(f"the prefix {text!r} of checkpoint_storage must have no '..' in it")
    return prefix


def _optional(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    if value is not None and not isinstance(value, str):
        # The value itself may be a secret.
        raise ValueError(
            f"checkpoint_storage of type {content['type']} takes a text as {name}, "
            f"not a {type(value).__name__}"
        )
    return value or ""


def _required(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"checkpoint_storage of type {content['type']} needs {name}: a text")
    return value


def default_storage() -> DirectoryStorage:
    """Returns the storage for checkpoints off cluster: a directory among the user's data."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return DirectoryStorage(Path(data).expanduser().absolute() / "resolute" / "checkpoints")


def open_store(storage: Storage) -> RecordKeepingStore:
    """Opens the store of a storage for a script off cluster.

    Raises:
        FailedPreconditionError: The library for it is not installed, or there are no credentials.
    """
    if isinstance(storage, DirectoryStorage):
        return DirectoryStore(storage.path)
    return BucketStore(open_bucket(storage), prefix=storage.prefix)
