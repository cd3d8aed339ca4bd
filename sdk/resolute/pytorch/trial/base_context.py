"""The context that all kinds of trials share: the position of training, the trial's identity, its output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from resolute import core
from resolute.pytorch.backends.devices import choose_device
from resolute.pytorch.data.loader import to_device
from resolute.pytorch.data.replay import DataOrder
from resolute.pytorch.metrics.reducers import ReducerContext
from resolute.trial_errors import InternalException
from resolute.trials.hyperparameters import Settings


class TrialContext(Settings, ReducerContext):
    """The part of a trial's context that does not depend on how its models are trained.

    Args:
        core_context: The Core API.
        trial_seed: Seed of the trial; None for 0.
        hparams: The hyperparameters; None if the script gave none.
        slots: Number of ranks that share a batch.
        exp_conf: The experiment's config; None if there is none.
        steps_completed: Number of batches trained in earlier runs.
        debug_enabled: Whether the config asks for more log output.
        tensorboard: Whether metrics are written for TensorBoard.

    Attributes:
        device: The device on which this rank trains.
        distributed: The other ranks.
        models: The wrapped models.
        profiler: Torch's profiler; None before ``set_profiler``.
    """

    models: list[Any]

    def __init__(
        self,
        core_context: core.Context,
        *,
        trial_seed: int | None,
        hparams: Mapping[str, Any] | None,
        slots: int,
        exp_conf: Mapping[str, Any] | None,
        steps_completed: int,
        debug_enabled: bool,
        tensorboard: bool,
    ) -> None:
        Settings.__init__(self, hparams, exp_conf, slots=max(slots, 1))
        ReducerContext.__init__(self, core_context.distributed.allgather)
        self._core = core_context
        self._trial_seed = trial_seed
        self._steps_completed = steps_completed
        self._asked_for_initial_batch = False
        self._debug_enabled = debug_enabled
        self._tensorboard_logging = tensorboard
        self._stop_requested = False
        self._batch_idx: int | None = None
        self._epoch_length: int | None = None
        self._data_order: DataOrder | None = None
        self._writer: Any = None
        self._warned_types: set[type] = set()
        self.distributed = core_context.distributed
        self.device = choose_device(self.distributed.local_rank)
        self.models = []
        self.profiler: Any = None

    def to_device(self, data: Any) -> Any:
        """Moves a batch, however nested, to this rank's device."""
        return to_device(data, self.device, self._warned_types)

    # Where training is.

    def current_train_batch(self) -> int:
        """Returns the number of the batch that is being trained, from 0, over all runs of the trial.

        Raises:
            InternalException: Training has not begun.
        """
        if self._batch_idx is None:
            raise InternalException("training has not begun: there is no current batch yet")
        return self._batch_idx

    def current_train_epoch(self) -> int:
        """Returns the number of the epoch that is being trained, from 0.

        Raises:
            InternalException: Training has not begun.
        """
        return self.current_train_batch() // self._length_of_epoch()

    def is_epoch_start(self) -> bool:
        """Returns whether the current batch is the first of its epoch.

        Raises:
            InternalException: Training has not begun.
        """
        return self.current_train_batch() % self._length_of_epoch() == 0

    def is_epoch_end(self) -> bool:
        """Returns whether the current batch is the last of its epoch.

        Raises:
            InternalException: Training has not begun.
        """
        return (self.current_train_batch() + 1) % self._length_of_epoch() == 0

    def get_initial_batch(self) -> int:
        """Returns how many batches were trained before this process, for loaders that skip them."""
        self._asked_for_initial_batch = True
        return self._steps_completed

    def get_stop_requested(self) -> bool:
        """Returns whether the trial asked to be stopped."""
        return self._stop_requested

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Requests a stop at the next report, validation or checkpoint. One rank's request is enough.

        Args:
            stop_requested: Whether to stop.

        Raises:
            AssertionError: It is no bool.
        """
        assert isinstance(stop_requested, bool), f"a bool was expected, not {stop_requested!r}"
        self._stop_requested = stop_requested

    def _length_of_epoch(self) -> int:
        if self._epoch_length is None:
            raise InternalException("training has not begun: the length of an epoch is not known yet")
        return self._epoch_length

    # Who and what the trial is.

    def get_experiment_id(self) -> int:
        """Returns the number of the experiment; 0 off cluster."""
        return 0 if self._core.info is None else self._core.info.trial.experiment_id

    def get_trial_id(self) -> int:
        """Returns the number of the trial; 0 off cluster."""
        return 0 if self._core.info is None else self._core.info.trial.trial_id

    def get_trial_seed(self) -> int:
        """Returns the seed of the trial, equal on all ranks and in all its runs."""
        return self._trial_seed or 0

    # TensorBoard and profiling.

    def get_enable_tensorboard_logging(self) -> bool:
        """Returns whether metrics are written for TensorBoard."""
        return self._tensorboard_logging

    def set_enable_tensorboard_logging(self, enable_tensorboard_logging: bool) -> None:
        """Sets whether metrics are written for TensorBoard.

        Raises:
            AssertionError: It is no bool.
        """
        assert isinstance(enable_tensorboard_logging, bool), "a bool was expected"
        self._tensorboard_logging = enable_tensorboard_logging

    def get_tensorboard_path(self) -> Path:
        """Returns the directory in which this process may write TensorBoard events."""
        return self._core.train.get_tensorboard_path()

    def get_tensorboard_writer(self) -> Any:
        """Returns a ``torch.utils.tensorboard.SummaryWriter`` whose events are kept with the trial.

        Raises:
            ImportError: TensorBoard is not installed.
        """
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            directory = str(self.get_tensorboard_path())
            self._writer = SummaryWriter(log_dir=directory)
        return self._writer

    def set_profiler(self, *args: Any, **kwargs: Any) -> None:
        """Profiles training with torch's profiler; it steps by itself, and its traces go to TensorBoard.

        Args:
            args: As for ``torch.profiler.profile``.
            kwargs: As for ``torch.profiler.profile``; ``on_trace_ready`` is set unless given.
        """
        kwargs.setdefault(
            "on_trace_ready", torch.profiler.tensorboard_trace_handler(str(self.get_tensorboard_path()))
        )
        self.profiler = torch.profiler.profile(*args, **kwargs)
