"""The storage of a checked config, as a message of the checkpoints service's contract."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.api.checkpoints.v1 import storage_pb2
from resolute_experiments.specs.azure_account import account_url

_PROVIDERS = {
    "s3": storage_pb2.Storage.PROVIDER_S3,
    "gcs": storage_pb2.Storage.PROVIDER_GCS,
}


def storage(config: Mapping[str, Any]) -> storage_pb2.Storage:
    """Says where the checkpoints of an experiment lie. No secret is in it.

    Args:
        config: The whole checked config, defaults filled in.

    Raises:
        InvalidConfigError: The address of an account cannot be read.
    """
    section = config["checkpoint_storage"]
    kind = section["type"]
    if kind == "shared_fs":
        return _directory(Path(section["host_path"]) / (section.get("storage_path") or ""))
    if kind == "directory":
        return _directory(Path(section["container_path"]))
    if kind == "azure":
        return _container(section)
    return _bucket(section, _PROVIDERS[kind])


def moved(config: Mapping[str, Any], directory: str) -> Mapping[str, Any]:
    """Puts the checkpoints of a config with the type ``shared_fs`` into another directory.

    Args:
        config: The whole checked config.
        directory: The directory; empty for that of the config.
    """
    if not directory:
        return config
    place = {"host_path": directory, "storage_path": None}
    return {**config, "checkpoint_storage": {**config["checkpoint_storage"], **place}}


def without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Takes credentials out of a config, which every process of its trials can read and anyone can print.

    Those of the store only the checkpoints service has; those of a registry of images nothing uses.

    Args:
        config: The whole checked config.
    """
    kept = _without(config, "checkpoint_storage")
    if kept["checkpoint_storage"]["type"] == "azure":
        address = account_url(config["checkpoint_storage"])
        kept["checkpoint_storage"] = {**kept["checkpoint_storage"], "account_url": address}
    return {**kept, "environment": _without(kept["environment"], "registry_auth")}


def partial_without_secrets(part: Mapping[str, Any]) -> dict[str, Any]:
    """Takes credentials out of a part of a config, such as a layer that is merged under others.

    Args:
        part: Sections of a config; none has to be there.
    """
    kept = _without(part, "checkpoint_storage") if part.get("checkpoint_storage") else dict(part)
    environment = part.get("environment")
    if environment and environment.get("registry_auth"):
        kept["environment"] = _without(environment, "registry_auth")
    return kept


def _without(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    # Here: the models of configs are not loaded by the start of a cluster.
    from resolute_config.sections.environment import RegistryAuth
    from resolute_config.sections.storage import AzureStorage, S3Storage

    hidden = {
        "checkpoint_storage": S3Storage.hidden | AzureStorage.hidden,
        "registry_auth": RegistryAuth.hidden,
    }[name]
    section = config[name]
    if section is None:
        return dict(config)
    return {**config, name: {k: None if k in hidden else v for k, v in section.items()}}


def _bucket(
    section: Mapping[str, Any], provider: storage_pb2.Storage.Provider.ValueType
) -> storage_pb2.Storage:
    prefix = posixpath.normpath(str(section.get("prefix") or "").strip("/") or ".")
    return storage_pb2.Storage(
        bucket=storage_pb2.Storage.Bucket(
            bucket=section["bucket"],
            prefix="" if prefix == "." else prefix,
            endpoint_url=section.get("endpoint_url") or "",
            provider=provider,
        )
    )


def _container(section: Mapping[str, Any]) -> storage_pb2.Storage:
    return storage_pb2.Storage(
        bucket=storage_pb2.Storage.Bucket(
            bucket=section["container"],
            endpoint_url=account_url(section),
            provider=storage_pb2.Storage.PROVIDER_AZURE,
        )
    )


def _directory(path: Path) -> storage_pb2.Storage:
    return storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(path)))
