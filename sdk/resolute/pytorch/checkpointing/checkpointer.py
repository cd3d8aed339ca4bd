"""Saves the checkpoints of a trial and restores them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

import resolute
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import Callbacks
from resolute.trials.code.source import copy_code, trial_class_name
from resolute.trials.counters import Progress
from resolute.trials.trial_state import CODE_DIRECTORY, LOAD_DATA_FILE, TrialState


class CheckpointContents(Protocol):
    """The contents of the checkpoints of one kind of trial."""

    trial_type: str
    """Name of the kind."""
    needs_all_ranks: bool
    """Whether a checkpoint of one rank alone is none."""

    def capture(self, step: int) -> Mapping[str, Any]:
        """Returns this rank's state after a number of batches."""

    def write(self, directory: Path, state: Mapping[str, Any], *, step: int) -> None:
        """Writes this rank's files, then calls callbacks."""

    def load(self, directory: Path, *, resumes: bool) -> None:
        """Restores the files; the position in training only if the trial resumes."""


class Checkpointer:
    """Saves and loads the checkpoints of one trial.

    Args:
        contents: Their contents.
        trial_class: The trial's class.
        context: Its context.
        callbacks: Its callbacks.
        from_trainer: Whether a script created the trial, with unknown arguments.
    """

    def __init__(
        self,
        contents: CheckpointContents,
        *,
        trial_class: type,
        context: TrialContext,
        callbacks: Callbacks,
        from_trainer: bool,
    ) -> None:
        self._contents = contents
        self._trial_class = trial_class
        self._context = context
        self._callbacks = callbacks
        self._from_trainer = from_trainer

    def save(self, progress: Progress, *, chief_only: bool = False) -> str | None:
        """Saves a checkpoint; every rank calls it.

        Args:
            progress: How far training is.
            chief_only: Whether only this rank may know that a checkpoint is wanted, so that others cannot
                take part. Their random numbers are not in it then; and where every rank has a part of the
                model, there is none.

        Returns:
            Its identifier; None on ranks that took no part.
        """
        context, contents = self._context, self._contents
        dist = context.distributed
        if chief_only and dist.size > 1 and (dist.rank or contents.needs_all_ranks):
            return None
        state = contents.capture(progress.step)
        context._core.train.set_status("checkpointing")
        together = dist.size > 1 and not chief_only
        # A commit takes all ranks; and a caller that waits for its end must be notified in time.
        background = not together and not self._callbacks.want_upload_end
        store = context._core.checkpoint.store_path(
            _metadata(progress), shard=together, background=background
        )
        with store as (directory, uuid):
            if dist.rank == 0:
                self._write_description(directory, progress)
            contents.write(directory, state, step=progress.step)
        progress.saved = progress.step
        for callback in self._callbacks:
            callback.on_checkpoint_upload_end(uuid)
        return uuid

    def load(self, directory: Path, progress: Progress) -> None:
        """Restores a checkpoint; if another trial saved it, without the counters.

        Raises:
            InvalidCheckpointException: It is another model's.
        """
        trial_state = TrialState.read(directory)
        resumes = trial_state is not None and trial_state.trial_id == self._context.get_trial_id()
        self._contents.load(directory, resumes=resumes)
        if trial_state is not None and resumes:
            trial_state.restore(progress)

    def _write_description(self, directory: Path, progress: Progress) -> None:
        """Writes the progress of training, the name of the trial's class, and its code."""
        context = self._context
        state = TrialState.of(progress, trial_id=context.get_trial_id(), seed=context.get_trial_seed())
        state.write(directory)
        load_data = {
            "trial_type": self._contents.trial_type,
            "experiment_config": context._exp_conf,
            "hparams": context._hparams,
            "trial_cls_spec": trial_class_name(self._trial_class),
            "is_trainer": self._from_trainer,
            "trial_in_main": self._trial_class.__module__ == "__main__",
        }
        (directory / LOAD_DATA_FILE).write_text(json.dumps(load_data, default=str))
        copy_code(self._trial_class, directory / CODE_DIRECTORY, on_cluster=context._core.info is not None)


def _metadata(progress: Progress) -> dict[str, Any]:
    return {
        "determined_version": resolute.__version__,
        "steps_completed": progress.step,
        "latest_batch": progress.step,
        "framework": f"torch-{torch.__version__}",
        "format": "pickle",
    }


@contextlib.contextmanager
def open_checkpoint(context: TrialContext, checkpoint: str | None) -> Iterator[Path | None]:
    """Returns the directory of a checkpoint, and tells the context how far training was in it.

    Args:
        context: The trial's context.
        checkpoint: Its identifier; None for none.
    """
    if checkpoint is None:
        context._steps_completed = 0
        yield None
        return
    with context._core.checkpoint.restore_path(checkpoint) as directory:
        state = TrialState.read(directory)
        resumes = state is not None and state.trial_id == context.get_trial_id()
        context._steps_completed = state.batches_trained if state is not None and resumes else 0
        if state is not None and resumes and state.seed is not None:
            context._trial_seed = state.seed
        yield directory
