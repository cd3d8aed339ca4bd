"""Providers of object stores, by the types in configs."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.api.checkpoints.v1.storage_pb2 import Storage

_KINDS: Mapping[Storage.Provider.ValueType, str] = {
    Storage.PROVIDER_S3: "s3",
    Storage.PROVIDER_GCS: "gcs",
    Storage.PROVIDER_AZURE: "azure",
}
_PROVIDERS = {kind: provider for provider, kind in _KINDS.items()}


def kind_of(provider: Storage.Provider.ValueType) -> str:
    """Returns ``s3``, ``gcs`` or ``azure``; nothing for a provider that this release does not know."""
    return _KINDS.get(provider, "")


def of_kind(kind: str) -> Storage.Provider.ValueType:
    """Returns the provider of a type of storage."""
    return _PROVIDERS[kind]
