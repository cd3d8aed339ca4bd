"""The callback that makes a training by ``model.fit`` a trial."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from resolute import core
from resolute.core.reporting.train import TRAINING, VALIDATION
from resolute.info import trial_of
from resolute.keras import random_state, weights
from resolute.keras.library import (
    backend_of,
    callback_class,
    check_library,
    check_ranks,
    is_of_legacy,
)
from resolute.keras.position import Position, begin_at
from resolute.keras.progress_lines import ProgressLines
from resolute.trials.batch_watch import BatchWatch
from resolute.trials.code.source import copy_code
from resolute.trials.throughput import Throughput
from resolute.trials.trial_state import CODE_DIRECTORY

_log = logging.getLogger("resolute.keras")
MODEL_FILE = "model_checkpoint"
"""What names of the files with weights begin with."""
_NEVER = -1
LATEST = "latest"
"""Stands for the trial's latest checkpoint."""

_ProgbarLogger: Any = callback_class("ProgbarLogger")


class ResoluteCallback(_ProgbarLogger):  # type: ignore[misc, unused-ignore]  # without Keras it is Any
    """Makes a training by ``model.fit`` a trial. Pass it in ``callbacks``.

    - Metrics are reported: ``training`` after each epoch, or after so many batches; ``validation`` whenever
      the model is evaluated, by the names that Keras gives them; ``throughput`` with those of training.
    - Checkpoints are made after epochs and at the end, of the weights, the optimizer, random numbers and the
      position in training.
    - ``fit`` begins where the trial was: on the torch backend as if it had never stopped, on TensorFlow as
      far as the script draws random numbers by Keras (docs/keras.md).
    - When the trial is preempted, all workers stop after the same epoch. ``epochs`` of ``fit`` says how long
      to train; a search stops trials early by preemption.

    It replaces Keras's progress bar, ``BackupAndRestore`` and ``ModelCheckpoint``.

    Args:
        core_context: The Core API; with several workers, created with
            ``DistributedContext.from_tf_config()``.
        checkpoint: The checkpoint to start from; None to start from none. The default is the latest of the
            trial.
        continue_id: Name of this training; default: the number of the trial, else ``local``. Training
            continues from a checkpoint of the same name; of any other checkpoint, only the weights are
            loaded.
        train_metrics_report_period: Batches between two reports of training metrics, or ``"epoch"``.
        checkpoint_epochs: Epochs between two checkpoints; 0 for one at the end only.

    Raises:
        ImportError: Keras or its backend is not installed.
        ValueError: A period is not valid.

    Examples:
        >>> import keras, numpy
        >>> from resolute import core
        >>> from resolute.keras import ResoluteCallback
        >>> x = numpy.random.rand(32, 4)
        >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        >>> model.compile(optimizer="adam", loss="mse")
        >>> with core.init() as context:
        ...     callback = ResoluteCallback(context)
        ...     history = model.fit(x, x.sum(axis=1), epochs=2, callbacks=[callback], verbose=0)
        >>> len(history.history["loss"])
        2
    """

    _supports_tf_logs = False
    _save_user_code = True

    def __init__(
        self,
        core_context: core.Context,
        checkpoint: str | None = LATEST,
        continue_id: int | str | None = None,
        *,
        train_metrics_report_period: int | str = "epoch",
        checkpoint_epochs: int = 1,
    ) -> None:
        super().__init__()
        self.params: dict[str, Any] = {}
        self._core = core_context
        self._is_chief = core_context.distributed.rank == 0
        info = core_context.info
        latest = info.latest_checkpoint if info else None
        self._checkpoint = latest if checkpoint == LATEST else checkpoint
        if continue_id is None:
            trial = trial_of(info)
            continue_id = trial.trial_id if trial else "local"
        self._continue_id = continue_id
        self._period = _checked_period(train_metrics_report_period)
        self._checkpoint_epochs = _checked_epochs(checkpoint_epochs)
        self._files = contextlib.ExitStack()
        self._lines = ProgressLines(shown=False)
        self._steps = 0
        self._epoch = _NEVER
        self._saved_epoch = _NEVER
        self._epoch_batches = 0
        self._validated_batches = 0
        self._training_length: int | None = None
        self._validation_length: int | None = None
        self._reported_validation = _NEVER
        self._fitting = self._knows_wait = False
        self._throughput = Throughput(core_context)
        self._watch = BatchWatch(self._throughput)

    # What Keras calls.

    def set_params(self, params: dict[str, Any]) -> None:
        """Stores the numbers of epochs and of batches in an epoch."""
        self.params = params

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Restores the trial's latest checkpoint, or the one that the script names.

        Raises:
            TypeError: The model is of another library of Keras.
            ValueError: The model cannot be trained by several processes, or is not built yet.
            InvalidCheckpointException: The checkpoint is another model's.
        """
        check_library(self.model, self)
        check_ranks(self.model, size=self._core.distributed.size)
        self._fitting = True
        self._lines = ProgressLines(shown=self._is_chief and bool(self.params.get("verbose", 1)))
        if self._checkpoint is not None:
            checkpoint, self._checkpoint = self._checkpoint, None
            self._restore(checkpoint)
        self._training_length = self.params.get("steps") or self._training_length
        # Other backends fetch the batch within what the step is.
        self._knows_wait = backend_of(self.model) == "torch"

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Stores the number of the epoch."""
        self._epoch, self._epoch_batches = epoch, 0
        self._set_status("training")
        self._lines.begin(self._training_heading(), self._training_length)
        self._watch.ready()

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Measures how long training waited for the batch."""
        self._watch.arrived()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Counts the batch; reports training metrics when they are due."""
        if batch == 0:
            self._files.close()
        done = batch + 1
        before = self._steps
        self._steps += done - self._epoch_batches  # several, where Keras executes several at once
        self._epoch_batches = done
        self._watch.trained(self._steps - before, knows_wait=self._knows_wait)
        if self._is_chief and self._period and self._steps // self._period > before // self._period:
            self._report(TRAINING, logs)
        self._lines.advance(self._training_heading(), done, self._training_length, logs)
        self._watch.ready()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Reports metrics, saves a checkpoint if one is due, and stops if requested."""
        self._training_length = self._epoch_batches
        if self._is_chief:
            if not self._period:
                own = {name: value for name, value in (logs or {}).items() if not name.startswith("val_")}
                self._report(TRAINING, own)
            self._core.train.report_progress(min((epoch + 1) / max(self.params.get("epochs") or 1, 1), 1.0))
        if self._checkpoint_epochs and (epoch + 1) % self._checkpoint_epochs == 0:
            self._save()
        if self._core.preempt.should_preempt():
            self.model.stop_training = True

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Saves a checkpoint, unless the latest one has this epoch."""
        self._files.close()
        begin_at(self.model, None)
        if self._epoch > self._saved_epoch:
            self._save()
        self._core.checkpoint.wait()
        self._fitting = False
        self._set_status("finishing")

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Sets the trial's status to validating."""
        self._set_status("validating")
        self._validated_batches = 0
        self._lines.begin(self._validation_heading(), self._validation_length)

    def on_test_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Counts the batches."""
        self._validated_batches = batch + 1
        self._lines.advance(self._validation_heading(), batch + 1, self._validation_length, logs)

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Reports the metrics of the validation."""
        self._validation_length = self._validated_batches
        if self._is_chief:
            self._report(VALIDATION, logs)
        if self._fitting:
            self._set_status("training")

    def on_predict_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Does nothing."""

    def on_predict_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Does nothing."""

    def on_predict_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Does nothing."""

    # What scripts may override.

    def save_model(self, model: Any, path: str, distributed: core.DistributedContext) -> None:
        """Saves the model and its optimizer; every worker calls it.

        Args:
            model: The model.
            path: Where to, without what Keras adds to it.
            distributed: The other workers.
        """
        if distributed.rank == 0:
            weights.save_weights(model, path)
            return
        # A strategy of several workers gathers what it saves, so that all of them must.
        with TemporaryDirectory(prefix="resolute-keras-") as temporary:
            weights.save_weights(model, str(Path(temporary) / MODEL_FILE))

    def load_model(self, model: Any, path: str, distributed: core.DistributedContext) -> None:
        """Loads the files of ``save_model``; every worker calls it.

        Args:
            model: The model.
            path: Where from, without what Keras adds to it.
            distributed: The other workers.
        """
        weights.load_weights(model, path)

    # What is done.

    def _restore(self, checkpoint: str) -> None:
        """Restores a checkpoint: its whole state if this trial saved it, otherwise its weights."""
        self._set_status("restoring")
        directory = self._files.enter_context(self._core.checkpoint.restore_path(checkpoint))
        self.load_model(self.model, str(directory / MODEL_FILE), self._core.distributed)
        position = Position.read(directory)
        if position is None or position.continue_id != self._continue_id:
            _log.info("checkpoint %s is of another training: its weights are taken, and no more", checkpoint)
        else:
            self._steps, self._epoch = position.steps_completed, position.epoch
            self._saved_epoch = position.epoch
            self._training_length = position.training_length
            self._validation_length = position.validation_length
            begin_at(self.model, position.epoch + 1)
            if not random_state.read(self.model, directory / _random_file(self._core.distributed.rank)):
                _log.warning("checkpoint %s has no random numbers of this worker: they are new", checkpoint)
        if not is_of_legacy(self.model):  # which reads some of the files with the first batch
            self._files.close()

    def _save(self) -> None:
        """Saves a checkpoint; every worker calls it."""
        self._set_status("checkpointing")
        dist = self._core.distributed
        together = dist.size > 1
        store = self._core.checkpoint.store_path(
            {"steps_completed": self._steps}, shard=together, background=not together
        )
        with store as (directory, _):
            self.save_model(self.model, str(directory / MODEL_FILE), dist)
            random_state.write(self.model, directory / _random_file(dist.rank))
            if self._is_chief:
                self._position().write(directory)
                if self._save_user_code and self._core.info is not None:
                    copy_code(type(self.model), directory / CODE_DIRECTORY, on_cluster=True)
        self._saved_epoch = self._epoch
        self._set_status("training")

    def _position(self) -> Position:
        return Position(
            epoch=self._epoch,
            steps_completed=self._steps,
            continue_id=self._continue_id,
            training_length=self._training_length,
            validation_length=self._validation_length,
        )

    def _report(self, group: str, logs: Mapping[str, Any] | None) -> None:
        if group == VALIDATION and self._reported_validation == self._steps:
            _log.warning("batch %d was validated twice: the second time is not reported", self._steps)
            return
        if group == VALIDATION:
            self._reported_validation = self._steps
        metrics = {name: value for name, value in (logs or {}).items() if name not in {"batch", "size"}}
        counts = {"epochs": self._epoch + 1, "batches": self._steps}
        self._core.train.report_metrics(group, steps_completed=self._steps, metrics={**counts, **metrics})
        if group is TRAINING:
            self._throughput.report(self._steps)

    def _set_status(self, status: str) -> None:
        if self._is_chief:
            self._core.train.set_status(status)

    def _training_heading(self) -> str:
        return f"total batches trained: {self._steps}, epoch"

    def _validation_heading(self) -> str:
        return f"validation after batch: {self._steps}, validation"


def _random_file(rank: int) -> str:
    return f"random_state_{rank}.pkl"


def _checked_period(period: int | str) -> int:
    """Returns the period in batches; 0 for a period of one epoch."""
    if period == "epoch":
        return 0
    if not isinstance(period, int) or isinstance(period, bool) or period < 1:
        raise ValueError(
            f"train_metrics_report_period is {period!r}; 'epoch' or a number of batches from 1 was expected"
        )
    return period


def _checked_epochs(epochs: int) -> int:
    if not isinstance(epochs, int) or isinstance(epochs, bool) or epochs < 0:
        raise ValueError(f"checkpoint_epochs is {epochs!r}; a whole number from 0 was expected")
    return epochs
