"""The paths of a checkpoint's files in the directory of a download."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from resolute.client.schema.records import CheckpointRecord, FileRecord
from resolute.errors import DataLossError, FailedPreconditionError

_PARTIALS = ".partial-"


class DownloadPaths:
    """The paths of the files of one checkpoint, and of their partial downloads.

    Partial downloads lie in a directory whose name no file of the checkpoint has. Their names are hashes,
    because a checkpoint may have any file names, also the longest that the file system allows.

    Args:
        destination: The directory.
        checkpoint: The checkpoint.
    """

    def __init__(self, destination: Path, checkpoint: CheckpointRecord) -> None:
        self._destination = destination
        self._resolved = destination.resolve()
        self._uuid = checkpoint.uuid
        self._safe: set[Path] = set()
        self._own = {PurePosixPath(file.path).parts[:1] for file in checkpoint.files}
        name = f"{_PARTIALS}{checkpoint.uuid}"
        while (name,) in self._own:
            name += "_"
        self.partials = self.of(f"{name}/file").parent

    def of(self, path: str) -> Path:
        """Returns the place of a file.

        Raises:
            DataLossError: It would lie outside of the directory.
        """
        parts = PurePosixPath(path)
        if not path.strip("/") or parts.is_absolute() or ".." in parts.parts or "\0" in path:
            raise DataLossError(
                f"checkpoint {self._uuid} has a file {path!r} outside of it; it was not downloaded"
            )
        target = self._destination / parts
        # What is in the destination already may be links that lead elsewhere.
        if target.parent not in self._safe:
            if not target.parent.resolve().is_relative_to(self._resolved):
                raise DataLossError(
                    f"{target} leads outside of {self._destination}; download into an empty directory"
                )
            self._safe.add(target.parent)
        return target

    def partial(self, file: FileRecord) -> Path:
        """Returns the place of a file that is still coming."""
        named = f"{file.size} {file.digest} {file.path}"
        return self.partials / hashlib.sha256(named.encode()).hexdigest()

    def require_no_other_download(self) -> None:
        """Makes sure that no other checkpoint is half there.

        Raises:
            FailedPreconditionError: One is.
        """
        for partial in self._destination.glob(f"{_PARTIALS}*"):
            if partial != self.partials and (partial.name,) not in self._own:
                other = partial.name.removeprefix(_PARTIALS).rstrip("_")
                raise FailedPreconditionError(
                    f"{self._destination} holds an unfinished download of checkpoint {other}; download "
                    f"{self._uuid} into an empty directory, or remove this one"
                )
