"""Compares the checkpoint of a reproduced trial with that of the trial, bit for bit."""

from __future__ import annotations

import filecmp
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from resolute.client.downloads.checkpoint_files import METADATA_FILE, download
from resolute.client.remote.checkpoints import Checkpoints
from resolute.client.reproduction.directory import CHECKPOINTS
from resolute.client.reproduction.recipe import Recipe
from resolute.client.reproduction.weights import holds_weights, read_tensors
from resolute.client.schema.records import CheckpointRecord
from resolute.client.schema.states import CheckpointState
from resolute.errors import NotFoundError

_STEPS = "steps_completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFile:
    """A file that both checkpoints or one of them have."""

    path: str
    equal: bool
    weights: bool
    """Whether it may hold weights, by its name."""
    differing: tuple[str, ...] = ()
    """Names of tensors that differ; empty where the file was compared as bytes."""


@dataclass(frozen=True, kw_only=True)
class WeightComparison:
    """The comparison of a trial's checkpoint with that of its reproduction at the same step."""

    steps: int
    checkpoint: str
    """UUID of the trial's."""
    reproduced: str
    """UUID of the other."""
    files: tuple[ComparedFile, ...]

    @property
    def equal(self) -> bool:
        """Whether all weights are equal, of one file at least; without such files, whether all files are."""
        compared = [file for file in self.files if file.weights] or self.files
        return bool(compared) and all(file.equal for file in compared)


def compare_weights(recipe: Recipe, directory: Path, checkpoints: Checkpoints) -> WeightComparison:
    """Compares the last checkpoints that both have written after equally many steps.

    Raises:
        NotFoundError: There are no such two.
        DataLossError: The trial's checkpoint arrived damaged.
    """
    trial = recipe.trial
    source = "" if recipe.source is None else recipe.source.uuid
    reproduced = _written(directory / CHECKPOINTS, source)
    recorded = _by_steps(checkpoints.of_trial(trial.uuid))
    common = sorted({*reproduced} & {*recorded})
    if not common:
        raise NotFoundError(
            f"trial {trial.id} has checkpoints at {_listed(recorded)}, its reproduction at "
            f"{_listed(reproduced)}: none can be compared"
        )
    steps = common[-1]
    record, actual = (
        checkpoints.get(recorded[steps].uuid),
        reproduced[steps],
    )  # lists may leave out files
    with tempfile.TemporaryDirectory(prefix="resolute-") as scratch:
        expected = download(record, Path(scratch) / record.uuid, registry=checkpoints)
        files = compare_directories(expected, actual)
    return WeightComparison(steps=steps, checkpoint=record.uuid, reproduced=actual.name, files=tuple(files))


def compare_directories(expected: Path, actual: Path) -> list[ComparedFile]:
    """Compares the files of two checkpoints, except their metadata."""
    paths = {
        path.relative_to(root).as_posix()
        for root in (expected, actual)
        for path in root.rglob("*")
        if path.is_file() and path != root / METADATA_FILE
    }
    return [_compare(expected / path, actual / path, name=path) for path in sorted(paths)]


def _compare(expected: Path, actual: Path, *, name: str) -> ComparedFile:
    weights = holds_weights(name)
    if not (expected.is_file() and actual.is_file()):
        return ComparedFile(path=name, equal=False, weights=weights)
    if filecmp.cmp(expected, actual, shallow=False):
        return ComparedFile(path=name, equal=True, weights=weights)
    first, second = (read_tensors(path) if weights else None for path in (expected, actual))
    if not first or not second:  # bytes are all that can be compared, and they differ
        return ComparedFile(path=name, equal=False, weights=weights)
    differing = tuple(
        tensor for tensor in sorted({*first, *second}) if first.get(tensor) != second.get(tensor)
    )
    return ComparedFile(path=name, equal=not differing, weights=weights, differing=differing)


def _written(directory: Path, source: str) -> dict[int, Path]:
    """The finished checkpoints of a reproduction, by their steps."""
    directories = {}
    for path in sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        metadata = path / METADATA_FILE
        if path.name != source and metadata.is_file():
            steps = json.loads(metadata.read_bytes()).get(_STEPS)
            if isinstance(steps, int):
                directories[steps] = path
    return directories


def _by_steps(records: Iterable[CheckpointRecord]) -> dict[int, CheckpointRecord]:
    return {record.steps_completed: record for record in records if record.state is CheckpointState.COMPLETED}


def _listed(steps: Iterable[int]) -> str:
    ordered = sorted(steps)
    return f"steps {', '.join(map(str, ordered))}" if ordered else "no step"
