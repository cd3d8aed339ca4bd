"""The position of a trial at a checkpoint, and the names of files that all kinds of checkpoints have."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resolute.trials.counters import Progress

TRIAL_STATE_FILE = "trial_state.pkl"
LOAD_DATA_FILE = "load_data.json"
METADATA_FILE = "metadata.json"
CODE_DIRECTORY = "code"


@dataclass(frozen=True, slots=True)
class TrialState:
    """The position of a trial at its checkpoint."""

    trial_id: int
    batches_trained: int
    epochs_trained: int = 0
    last_val: int = -1
    last_ckpt: int = -1
    step_id: int = 0
    seed: int | None = None
    """Seed of the order of the data."""

    @classmethod
    def of(cls, progress: Progress, *, trial_id: int, seed: int) -> TrialState:
        """Captures the state of a trial for a checkpoint."""
        return cls(
            trial_id=trial_id,
            batches_trained=progress.step,
            epochs_trained=progress.epochs,
            last_val=progress.validated,
            last_ckpt=progress.step,
            seed=seed,
        )

    def restore(self, progress: Progress) -> None:
        """Sets the counters of the trial that made the checkpoint."""
        progress.step = progress.saved = self.batches_trained
        progress.validated = self.last_val

    def write(self, directory: Path) -> None:
        """Writes the state into a checkpoint's directory."""
        (directory / TRIAL_STATE_FILE).write_bytes(pickle.dumps(asdict(self)))

    @classmethod
    def read(cls, directory: Path) -> TrialState | None:
        """Reads the state from a checkpoint's directory; None if it has no such file."""
        for name in (TRIAL_STATE_FILE, "workload_sequencer.pkl"):
            path = directory / name
            if path.exists():
                return cls._from(pickle.loads(path.read_bytes()))  # noqa: S301 - a checkpoint is trusted code
        return None

    @classmethod
    def _from(cls, state: Mapping[str, Any]) -> TrialState:
        counters = (state.get(name) for name in ("batches_trained", "steps_completed", "latest_batch"))
        batches = next((counter for counter in counters if counter is not None), 0)
        return cls(
            trial_id=int(state.get("trial_id") or 0),
            batches_trained=int(batches),
            epochs_trained=int(state.get("epochs_trained") or 0),
            last_val=_number(state, "last_val"),
            last_ckpt=_number(state, "last_ckpt"),
            step_id=int(state.get("step_id") or 0),
            seed=state.get("seed"),
        )


def _number(state: Mapping[str, Any], name: str) -> int:
    value = state.get(name)
    return -1 if value is None else int(value)
