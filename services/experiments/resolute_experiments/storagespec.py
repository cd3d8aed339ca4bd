"""A checked config's ``checkpoint_storage``, in the words of the checkpoints service's contract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.api.checkpoints.v1 import checkpoint_pb2
from resolute.errors import InvalidConfigError, Violation


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
    message = f"checkpoints cannot be stored as {kind!r} here yet; use shared_fs or directory"
    raise InvalidConfigError(message, violations=[Violation("checkpoint_storage.type", message)])


def _directory(path: Path) -> checkpoint_pb2.Storage:
    return checkpoint_pb2.Storage(directory=checkpoint_pb2.Storage.Directory(path=str(path)))
