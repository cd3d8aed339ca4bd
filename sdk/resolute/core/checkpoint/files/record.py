"""The record of a checkpoint that no service registers: its files and metadata, stored beside its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.errors import DataLossError

RECORDS = ".records"
"""Where records lie, beside the checkpoints; no identifier of one begins with a dot."""


@dataclass(frozen=True, slots=True)
class Record:
    """The files and metadata of a checkpoint, as its writer recorded them."""

    finished: bool = False
    """Whether all its files are there; one that was only begun counts for nothing."""
    files: tuple[FileEntry, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def written(self) -> bytes:
        """The record as bytes."""
        files = [{"path": file.path, "size": file.size, "digest": file.digest} for file in self.files]
        content = {"finished": self.finished, "files": files, "metadata": dict(self.metadata)}
        return json.dumps(content, indent=1).encode()

    @classmethod
    def read(cls, content: bytes, *, checkpoint_id: str) -> Record:
        """Reads a record.

        Raises:
            DataLossError: It is none.
        """
        try:
            fields = json.loads(content)
            files = tuple(FileEntry(file["path"], file["size"], file["digest"]) for file in fields["files"])
            return cls(finished=fields["finished"] is True, files=files, metadata=fields["metadata"])
        except (ValueError, KeyError, TypeError) as failure:
            raise DataLossError(
                f"the record of checkpoint {checkpoint_id} is damaged ({failure!r}); "
                "restore from another checkpoint"
            ) from failure
