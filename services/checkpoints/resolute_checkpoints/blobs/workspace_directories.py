"""Subdirectories of a checkpoint directory, one for each workspace, for trials that see no other part."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from resolute.errors import FailedPreconditionError
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.os_errors import file_system_errors
from resolute_checkpoints.blobs.roots import WORKSPACES
from resolute_checkpoints.domain.checkpoint import DirectoryStorage

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ANYBODY_WRITES = stat.S_IWOTH | stat.S_IXOTH


def make_workspace_directory(
    stores: StoreFactory, directory: str, *, cluster_id: str, workspace_id: int
) -> str:
    """Creates the directory of a workspace, with its parent's owner and mode. Idempotent.

    Args:
        stores: Knows where checkpoints may lie.
        directory: The directory of all workspaces.
        cluster_id: UUID of the cluster: several may share a directory.
        workspace_id: The workspace.

    Returns:
        Its path.

    Raises:
        FailedPreconditionError: It cannot be made; what is in its place, for example, is a link.
        InvalidArgumentError: The path is not absolute.
        PermissionDeniedError: Checkpoints may not lie there.
    """
    stores.open(DirectoryStorage(directory))
    names = (f"{WORKSPACES}{cluster_id}", str(workspace_id))
    _make(Path(directory), names)
    return str(Path(directory, *names))


def _make(root: Path, names: tuple[str, ...]) -> None:
    """Creates nested directories, none of which may be a link.

    An engine mounts what the last path leads to, and a user who could once write to the first directory may
    have left a link to anywhere on the engine's machine.
    """
    with file_system_errors(root):
        try:
            current = os.open(root, _DIRECTORY)
        except FileNotFoundError as error:
            raise FailedPreconditionError(
                f"{root} is not there on the machine of the checkpoints service; mount or make it"
            ) from error
        try:
            wanted, path = os.fstat(current), root
            for name in names:
                path /= name
                following = _enter(current, path)
                os.close(current)
                current = following
                _make_like(current, wanted, path=path)
        finally:
            os.close(current)


def _enter(parent: int, path: Path) -> int:
    with suppress(FileExistsError):
        os.mkdir(path.name, 0o700, dir_fd=parent)
        os.fsync(parent)
    try:
        return os.open(path.name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if path.is_symlink() or not path.is_dir():
            raise FailedPreconditionError(
                f"{path} is not a directory, and must be one: see who put it there, and remove it"
            ) from error
        raise


def _make_like(directory: int, wanted: os.stat_result, *, path: Path) -> None:
    """Gives a directory the owner and the mode of another; a process that was killed before did not."""
    found = os.fstat(directory)
    if (found.st_uid, found.st_gid) != (wanted.st_uid, wanted.st_gid):
        with suppress(PermissionError):
            os.fchown(directory, wanted.st_uid, wanted.st_gid)
    if stat.S_IMODE(os.fstat(directory).st_mode) != stat.S_IMODE(wanted.st_mode):
        os.fchmod(directory, stat.S_IMODE(wanted.st_mode))
    owner = os.fstat(directory).st_uid
    if owner != wanted.st_uid and wanted.st_mode & _ANYBODY_WRITES != _ANYBODY_WRITES:
        raise FailedPreconditionError(
            f"{path} belongs to user {owner}, and trials write to it as user {wanted.st_uid}: let the "
            f"checkpoints service run as that user or as root, or `chown {wanted.st_uid} {path}`"
        )
