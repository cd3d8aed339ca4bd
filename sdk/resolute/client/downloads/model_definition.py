"""Downloads a submitted model definition."""

from __future__ import annotations

from pathlib import Path

from resolute.client.remote.experiments import Experiments
from resolute.contracts.files.archive import extract_archive
from resolute.transfer.disk import full_disk_errors


def save_model_definition(experiments: Experiments, key: int | str, path: Path) -> Path:
    """Writes an experiment's model definition as a gzipped tar archive.

    Args:
        experiments: The experiments service.
        key: The experiment, by number or UUID.
        path: The file; it is there only once it is whole.

    Returns:
        ``path``.

    Raises:
        NotFoundError: There is no such experiment.
        QuotaError: The disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with full_disk_errors(f"write {path}", remedy="free some space"), partial.open("wb") as output:
            for chunk in experiments.model_definition(key):
                output.write(chunk)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def unpack_model_definition(archive: Path, destination: Path) -> None:
    """Unpacks a model definition into a directory that is empty or not there.

    Raises:
        InvalidArgumentError: An entry of it leads outside of the directory.
        FileExistsError: The directory holds something.
    """
    with archive.open("rb") as stream:
        extract_archive(stream, destination)
