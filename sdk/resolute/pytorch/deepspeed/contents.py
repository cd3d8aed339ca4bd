"""The contents of a ``DeepSpeedTrial``'s checkpoints: a part from each rank."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from resolute.pytorch.checkpointing.rank_state import RankState
from resolute.pytorch.deepspeed.context import DeepSpeedTrialContext
from resolute.pytorch.deepspeed.trial import DeepSpeedTrial
from resolute.pytorch.metrics.aggregation import TrainingMetrics
from resolute.pytorch.trial.callbacks import Callbacks
from resolute.trial_errors import InvalidCheckpointException


class EngineContents:
    """The state of the engines, by the trial's ``save``, and the random state and callbacks of every rank.

    Args:
        trial: The trial.
        context: Its context.
        callbacks: Its callbacks.
        metrics: Metrics that are not reported yet. They are part of a checkpoint between two reports.
    """

    trial_type = "DeepSpeedTrial"
    needs_all_ranks = True

    def __init__(
        self,
        trial: DeepSpeedTrial,
        context: DeepSpeedTrialContext,
        *,
        callbacks: Callbacks,
        metrics: TrainingMetrics,
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = callbacks
        self._own = RankState(context, metrics)

    def capture(self, step: int) -> dict[str, Any]:
        """Returns this rank's state in the form that callbacks get."""
        state = {**self._own.capture(step), "callbacks": self._callbacks.state()}
        for callback in self._callbacks:
            callback.on_checkpoint_save_start(state)
        return state

    def write(self, directory: Path, state: Mapping[str, Any], *, step: int) -> None:
        """Writes this rank's files."""
        torch.save(state, directory / _rank_file(self._context.distributed.rank))
        self._trial.save(self._context, directory)
        self._callbacks.end_write(str(directory))

    def load(self, directory: Path, *, resumes: bool) -> None:
        """Restores the files.

        Raises:
            InvalidCheckpointException: It is another model's, or no checkpoint of a ``DeepSpeedTrial``.
        """
        own = self._read(directory)
        for callback in self._callbacks:
            callback.on_checkpoint_load_start(own)
        try:
            self._trial.load(self._context, directory)
        except InvalidCheckpointException:
            raise
        except (AssertionError, RuntimeError) as failure:
            # DeepSpeed asserts without a word.
            raise InvalidCheckpointException(
                f"the checkpoint in {directory} does not fit the engines of {type(self._trial).__name__}: "
                f"{failure or 'DeepSpeed cannot load it'}"
            ) from failure
        self._callbacks.restore(own.get("callbacks", {}))
        self._own.restore(own, resumes=resumes)

    def _read(self, directory: Path) -> dict[str, Any]:
        """Reads this rank's file, or the chief's if the checkpoint has fewer ranks."""
        files = (directory / _rank_file(rank) for rank in (self._context.distributed.rank, 0))
        path = next((path for path in files if path.exists()), None)
        if path is None:
            raise InvalidCheckpointException(
                f"{directory} holds no checkpoint of a DeepSpeedTrial: {_rank_file(0)} is not there"
            )
        state: dict[str, Any] = torch.load(path, weights_only=False, map_location="cpu")
        return state


def _rank_file(rank: int) -> str:
    return f"det_state_dict_rank{rank}.pth"
