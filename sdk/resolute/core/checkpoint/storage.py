"""What ``core.init(checkpoint_storage=...)`` takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from resolute.core.checkpoint.reuse import Reuse
from resolute.core.checkpoint.stores import CheckpointStore, DirectoryStore
from resolute.errors import UnimplementedError


@dataclass(frozen=True, slots=True)
class DirectoryStorage:
    """A directory that everyone sees under the same path."""

    path: Path


@dataclass(frozen=True, slots=True)
class BucketStorage:
    """A bucket of an object store."""

    kind: str
    """``s3``, ``gcs`` or ``azure``."""
    bucket: str
    prefix: str = ""
    endpoint_url: str = ""


Storage = DirectoryStorage | BucketStorage


def parse_storage(storage: str | Mapping[str, Any]) -> Storage:
    """Reads where checkpoints shall lie.

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
    return BucketStorage(kind, url.netloc, prefix=url.path.strip("/"))


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
            prefix=str(content.get("prefix") or "").strip("/"),
            endpoint_url=str(content.get("endpoint_url") or ""),
        )
    if kind == "azure":
        return BucketStorage(kind, _required(content, "container"))
    raise ValueError(f"checkpoint_storage has the type {kind!r}; directory, s3, gcs or azure was expected")


def _required(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"checkpoint_storage of type {content['type']} needs {name}: a text")
    return value


def default_storage() -> DirectoryStorage:
    """Returns where checkpoints lie off cluster: in the user's data directory."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return DirectoryStorage(Path(data).expanduser().absolute() / "resolute" / "checkpoints")


def open_store(storage: Storage, *, reuse: Reuse | None = None) -> CheckpointStore:
    """Returns the store of a storage.

    Args:
        storage: Where checkpoints lie.
        reuse: Finds files of earlier checkpoints; None for where nobody keeps a list.

    Raises:
        UnimplementedError: This release has none for it.
    """
    if isinstance(storage, DirectoryStorage):
        return DirectoryStore(storage.path, reuse=reuse)
    raise UnimplementedError(
        f"checkpoint storage of type {storage.kind} cannot be used directly by this release; give a directory"
    )
