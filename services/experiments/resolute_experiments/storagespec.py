"""A checked config's ``checkpoint_storage``, in the words of the checkpoints service's contract."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.api.checkpoints.v1 import checkpoint_pb2
from resolute.errors import InvalidConfigError, Violation
from resolute_experiments.config.environment import RegistryAuth
from resolute_experiments.config.storage import S3Storage

_SECRETS = {"checkpoint_storage": S3Storage.secrets, "registry_auth": RegistryAuth.secrets}
"""Fields that are not kept, by the section that they are in."""


def storage(config: Mapping[str, Any]) -> checkpoint_pb2.Storage:
    """Says where the checkpoints of an experiment lie. No secret is in it.

    Args:
        config: The whole checked config, defaults filled in.

    Raises:
        InvalidConfigError: This platform has no store of that type.
    """
    section = config["checkpoint_storage"]
    kind = section["type"]
    if kind == "shared_fs":
        return _directory(Path(section["host_path"]) / (section.get("storage_path") or ""))
    if kind == "directory":
        return _directory(Path(section["container_path"]))
    if kind == "s3":
        return _bucket(section)
    message = f"checkpoints cannot be stored as {kind!r} here; use shared_fs, directory or s3"
    raise InvalidConfigError(message, violations=[Violation("checkpoint_storage.type", message)])


def without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Takes credentials out of a config, which every process of its trials can read and anyone can print.

    Those of the store only the checkpoints service has; those of a registry of images nothing uses.

    Args:
        config: The whole checked config.
    """
    kept = _without(config, "checkpoint_storage")
    return {**kept, "environment": _without(kept["environment"], "registry_auth")}


def _without(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = config[name]
    if section is None:
        return dict(config)
    return {**config, name: {k: None if k in _SECRETS[name] else v for k, v in section.items()}}


def _bucket(section: Mapping[str, Any]) -> checkpoint_pb2.Storage:
    prefix = posixpath.normpath(str(section.get("prefix") or "").strip("/") or ".")
    return checkpoint_pb2.Storage(
        bucket=checkpoint_pb2.Storage.Bucket(
            bucket=section["bucket"],
            prefix="" if prefix == "." else prefix,
            endpoint_url=section.get("endpoint_url") or "",
        )
    )


def _directory(path: Path) -> checkpoint_pb2.Storage:
    return checkpoint_pb2.Storage(directory=checkpoint_pb2.Storage.Directory(path=str(path)))
