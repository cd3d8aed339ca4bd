"""Downloads and unpacks the code of an experiment for its run."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from resolute.contracts.files.archive import extract_archive
from resolute.contracts.run.directory import RunDirectory
from resolute.errors import DataLossError, InvalidArgumentError

ATTEMPTS = 3
"""How often a damaged archive is fetched before the run fails."""
_log = logging.getLogger("resolute.supervisor")


def archive_file(run: RunDirectory) -> Path:
    """Where the archive is kept: the code as it was submitted, whatever the run does to its copy."""
    return run.path / "model_definition.tar.gz"


def fetch(
    run: RunDirectory,
    *,
    sha256: str,
    chunks: Callable[[], Iterable[bytes]],
    interrupted: Callable[[], bool],
) -> None:
    """Fetches a model definition and unpacks it into the working directory.

    Args:
        run: The run directory.
        sha256: Digest of the archive, in hex; empty when the experiment has no code.
        chunks: Begins to fetch the archive.
        interrupted: Asked now and then; once true, fetching stops with ``InterruptedError``.

    Raises:
        DataLossError: The archive does not have that digest, time and again, or is no archive.
        InvalidArgumentError: It holds what must not be unpacked.
        QuotaError: It is too large, or the disk is full.
        InterruptedError: ``interrupted`` returned True.
    """
    if not sha256:
        return
    archive = archive_file(run)
    for attempt in range(1, ATTEMPTS + 1):
        digest = _download(archive, chunks(), interrupted)
        if digest == sha256:
            break
        _log.warning("attempt %d: the model definition has digest %s, not %s", attempt, digest, sha256)
    else:
        raise DataLossError(
            f"the model definition has the SHA-256 {digest}, expected was {sha256}; submit it again"
        )
    shutil.rmtree(run.work, ignore_errors=True)
    with archive.open("rb") as stream:
        extract_archive(stream, run.work, interrupted=interrupted)


def link(work: Path, links: Mapping[str, str]) -> None:
    """Puts links beside the code; one takes the place of a directory or a file that the code has there.

    Args:
        work: The working directory.
        links: What each leads to, by its path in the working directory.

    Raises:
        InvalidArgumentError: One would lie where a link leads: nothing is removed there.
        OSError: One cannot be made.
    """
    for name, target in links.items():
        place = work / name
        if not place.parent.resolve().is_relative_to(work.resolve()):
            raise InvalidArgumentError(
                f"bind_mounts: {name} lies outside of the working directory, by a link in it: "
                "choose another path"
            )
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def _download(target: Path, chunks: Iterable[bytes], interrupted: Callable[[], bool]) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as file:
        for chunk in chunks:
            if interrupted():
                raise InterruptedError("fetching the model definition was interrupted")
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()
