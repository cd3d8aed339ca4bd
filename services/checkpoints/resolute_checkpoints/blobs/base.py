"""The protocol of a store. Every method may block, and is called in a thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

from resolute.errors import AlreadyExistsError, DataLossError
from resolute_checkpoints.domain.checkpoint import File


@dataclass(frozen=True, slots=True)
class Fault:
    """One file that differs from its writer's record of it."""

    path: str
    """The file."""
    problem: str
    """What is wrong, as the end of a sentence."""

    def __str__(self) -> str:
        return f"{self.path!r} {self.problem}"


@dataclass(frozen=True, slots=True)
class Upload:
    """The requests by which one file is uploaded directly to the store."""

    path: str
    urls: tuple[str, ...]
    """Of its parts, in order."""
    part_size: int = 0
    """Bytes of each part but the last."""
    upload_id: str = ""
    """Identifies a multipart upload; empty for a file that goes whole."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What the store expects with each part."""


@dataclass(frozen=True, slots=True)
class FinishedUpload:
    """A multipart upload whose parts are all uploaded."""

    path: str
    upload_id: str
    etags: tuple[str, ...]
    """What the store answered, in order of the parts; empty texts from one that gives no tags."""


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """A multipart upload that was not completed."""

    path: str
    upload_id: str


class BlobStore(Protocol):
    """A store of checkpoint files.

    Every method raises ``UnavailableError`` if the store cannot be reached, and ``FailedPreconditionError``
    if it refuses the service.
    """

    def require_free(self, checkpoint_id: str) -> None:
        """Checks that a checkpoint can be begun: nothing has its name in the store, and there is space.

        Raises:
            AlreadyExistsError: Something is stored there, which the checkpoint would take for its own.
            UnavailableError: The store is full; a writer waits as for a store that is away.
        """

    def upload_urls(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Upload]:
        """Returns URLs to upload files to.

        Raises:
            FailedPreconditionError: The store takes files in place, not by URL.
        """

    def finish_uploads(self, checkpoint_id: str, uploads: Sequence[FinishedUpload]) -> None:
        """Completes multipart uploads. Idempotent."""

    def drop_uploads(self, checkpoint_id: str, uploads: Sequence[OpenUpload]) -> None:
        """Aborts multipart uploads that will not be completed. Idempotent."""

    def download_urls(self, checkpoint_id: str, paths: Sequence[str]) -> Sequence[str]:
        """Returns a download URL for each file, in order; empty if the store has no URLs."""

    def faults(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Fault]:
        """Returns the files that are missing or do not have the size that their writer reported."""

    def damaged(
        self, checkpoint_id: str, files: Sequence[File], *, wanted: Callable[[], bool]
    ) -> Sequence[Fault]:
        """Returns the files whose content is known to differ from their digest.

        Args:
            checkpoint_id: The checkpoint.
            files: Its files, with digests.
            wanted: Asked while files are read; once false, reading ends with ``UnavailableError``.
        """

    def open(self, checkpoint_id: str, path: str, *, offset: int) -> BinaryIO:
        """Opens one file at an offset, for reading.

        Raises:
            DataLossError: The file is missing, or is not a plain file within the checkpoint.
        """

    def remove(self, checkpoint_id: str, *, committed: bool, kept: Collection[str] = ()) -> None:
        """Removes a checkpoint and all its files. Idempotent.

        Args:
            checkpoint_id: The checkpoint.
            committed: Whether its files were once seen there; then an absent store is an error.
            kept: Files that stay, because other checkpoints need their bytes.
        """

    def write_other(self, directory: str, name: str, content: bytes) -> None:
        """Writes a file outside of checkpoints; it is durable when the call returns.

        It takes the place of an earlier one in one step. ``open`` reads it, with the directory as the
        checkpoint.

        Args:
            directory: Path of the directory below the storage; it is made if it is missing.
            name: Name of the file.
            content: Its bytes.

        Raises:
            FailedPreconditionError: It is reached through a link, so that the files may be anybody's.
            QuotaError: The disk is full.
        """

    def remove_others(self, directory: str) -> None:
        """Removes a directory outside of checkpoints, such as of TensorBoard files. Idempotent.

        Args:
            directory: Its path below the storage.

        Raises:
            FailedPreconditionError: It is reached through a link, so that the files may be anybody's.
        """

    def remove_files(self, checkpoint_id: str, paths: Sequence[str]) -> None:
        """Removes some files; directories only when nothing is left in them. Safe to repeat."""


def taken(checkpoint_id: str, place: str) -> AlreadyExistsError:
    """Returns the error that something else is stored at a checkpoint's place."""
    return AlreadyExistsError(
        f"checkpoint {checkpoint_id} cannot be begun: {place} is in use by something else; "
        "choose another identifier",
        resource=f"checkpoint {checkpoint_id}",
    )


def faults(store: BlobStore, checkpoint_id: str, files: Sequence[File]) -> list[Fault]:
    """Compares files with their stored sizes; lists each stored checkpoint once.

    Args:
        store: The store.
        checkpoint_id: The checkpoint that the files belong to.
        files: The files.

    Returns:
        Those that are missing or of another size, by their paths in the checkpoint.
    """
    places: defaultdict[str, dict[str, list[File]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        home = file.home_in(checkpoint_id)
        places[home.checkpoint_id][home.path].append(file)
    return [
        replace(fault, path=file.path)
        for home_id, wanted in places.items()
        for fault in store.faults(home_id, [File(path, of[0].size) for path, of in wanted.items()])
        for file in wanted[fault.path]
    ]


def damaged(checkpoint_id: str, path: str, problem: str) -> DataLossError:
    """Returns the error of a file that is not what was committed; ``problem`` is the end of a sentence."""
    return DataLossError(
        f"{path!r} of checkpoint {checkpoint_id} {problem}; restore it from a copy or use another checkpoint",
        resource=f"checkpoint {checkpoint_id}",
    )
