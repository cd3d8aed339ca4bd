"""The callback that makes a Lightning training a trial: it saves, resumes, stops, and follows a search."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolute import core
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.core import Unit
from resolute.core.reporting.train import TRAINING, VALIDATION
from resolute.lightning.data_wait import DataWaitProfiler
from resolute.lightning.position import EpochPosition
from resolute.pytorch.lightning.library import find_library
from resolute.trials.search_operations import SearchOperations
from resolute.trials.stopping import StopCoordinator
from resolute.trials.throughput import Throughput

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
else:
    Callback = find_library().Callback

CHECKPOINT_FILE = "lightning.ckpt"
"""What Lightning saved, in a checkpoint's directory."""
POSITION_FILE = "position-{}.pt"
"""What a rank saved besides."""


class ResoluteCallback(Callback):  # type: ignore[misc, unused-ignore]  # without Lightning it is Any
    """Makes a training by Lightning's ``Trainer`` a trial.

    - Every validation is followed by a checkpoint, and so is the end of an epoch without one.
    - When the trial is preempted, all ranks save and stop after the same batch; with accumulated gradients,
      after a batch that steps.
    - On a cluster whose search gives operations, training continues until none is left; the validation that
      completes each of them is done at its very end, whatever the trainer's own intervals say.
    - In a trial of a cluster, how fast training is and how much of it waits for data is reported as group
      ``throughput``, every ``log_every_n_steps`` batches and after epochs.

    Args:
        context: The Core API; with several ranks, created with a ``DistributedContext``.
        latest_checkpoint: The checkpoint to resume from; default: on a cluster the trial's latest, else none.
        save_validated: Whether a checkpoint follows each validation and each end of an epoch. Without it
            there is only one at a preemption and one at the end.

    Attributes:
        checkpoint_path: Value for ``ckpt_path`` of ``fit``; None to start from the beginning.
        batches: Number of batches trained over all runs of the trial. It is the step of reports and
            checkpoints.

    Raises:
        ValueError: The config has lengths in records.

    Examples:
        >>> import lightning.pytorch as pl
        >>> from lightning.pytorch.demos.boring_classes import BoringModel
        >>> from resolute import core
        >>> from resolute.lightning import ResoluteCallback
        >>> quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        >>> with core.init() as context:
        ...     callback = ResoluteCallback(context)
        ...     trainer = pl.Trainer(
        ...         max_steps=4, callbacks=[callback], enable_checkpointing=False, accelerator="cpu", **quiet
        ...     )
        ...     trainer.fit(BoringModel(), ckpt_path=callback.checkpoint_path)
        >>> callback.batches
        4
    """

    def __init__(
        self, context: core.Context, *, latest_checkpoint: str | None = None, save_validated: bool = True
    ) -> None:
        super().__init__()
        self.core = context
        self.batches = 0
        self.search = SearchOperations(context)
        self._stopping = StopCoordinator(context, requested=lambda: False)
        self._save_validated = save_validated
        self._trainer: Trainer | None = None
        self._fitting = False
        self._saved = 0
        self._validation_requested = False
        self._interval: int | None = None
        self._position = EpochPosition()
        self._throughput = Throughput(context)
        self._clock: Clock = SYSTEM_CLOCK
        self._profiler: DataWaitProfiler | None = None
        self._batch_began = 0.0
        self._files = contextlib.ExitStack()
        latest = latest_checkpoint or (context.info.latest_checkpoint if context.info else None)
        self.checkpoint_path: Path | None = None
        if latest is not None:
            self.checkpoint_path = (
                self._files.enter_context(context.checkpoint.restore_path(latest)) / CHECKPOINT_FILE
            )

    # What the logger asks.

    @property
    def group(self) -> str:
        """The group that metrics belong to which are logged now."""
        if self._trainer is not None and self._trainer.testing:
            return "test"
        return VALIDATION if self._trainer is not None and self._trainer.validating else TRAINING

    @property
    def counts(self) -> dict[str, float]:
        """What a search needs among the metrics that reads their time from them; empty for others."""
        if not self.search.time_driven or self._trainer is None:
            return {}
        return {"batches": self.batches, "epochs": self.batches / self._trainer.num_training_batches}

    # What Lightning calls.

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Checks that the trainer leaves it to the search how long to train.

        Raises:
            ValueError: It would stop before the search has what it asks for, or it does not validate.
        """
        self._trainer, self._fitting = trainer, stage == "fit"
        if self._fitting and self.search.unit is not None:
            _check(trainer, self.search)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Goes to the batch that comes next in the epoch; stops at once if the search wants no more."""
        if self.batches and self.checkpoint_path is not None:
            self._position.read(self.checkpoint_path.with_name(self._position_file))
        self._position.begin_training(trainer, pl_module)
        self._files.close()
        self._saved = self.batches
        self._begin_measuring(trainer)
        self.core.train.set_status("training")
        if self.search.is_over:
            trainer.should_stop = True

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begins a pass of the loaders."""
        self._position.begin_epoch(trainer)

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Has the data of a batch."""
        self._batch_began = self._clock.monotonic()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Counts, and asks whether to validate or to stop."""
        self.batches += 1
        self._measure(trainer)
        if self.search.is_reached(batches=self.batches, epochs=_epochs(trainer)):
            self._request_validation(trainer)
        elif _is_between_steps(trainer, batch_idx) and self._stopping.at_step(self.batches):
            self._save(trainer)
            trainer.limit_val_batches = 0  # or it would validate before it stops
            trainer.should_stop = True

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Says what the trial is doing."""
        if not trainer.sanity_checking:
            self.core.train.set_status("validating")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Completes what the search asked for, saves, and asks whether to stop."""
        if trainer.sanity_checking or not self._fitting:
            return
        self._report_progress(trainer)
        if self.search.is_reached(batches=self.batches, epochs=_epochs(trainer)):
            self._complete(trainer)
        self._save_and_check_stop(trainer)
        self.core.train.set_status("training")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Saves and asks whether to stop, where no validation did."""
        self._throughput.report(self.batches)
        if self._saved < self.batches and not trainer.should_stop:
            self._save_and_check_stop(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Saves what was not saved yet."""
        self._save(trainer)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Lets go of files and of the trainer's profiler, also after a failure."""
        self._files.close()
        self._end_measuring(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Returns what belongs to Lightning's checkpoint."""
        return {"batches": self.batches}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` returned."""
        self.batches = state_dict["batches"]

    # What is done.

    def _begin_measuring(self, trainer: Any) -> None:  # Lightning declares no profiler
        self._profiler = trainer.profiler = DataWaitProfiler(trainer.profiler, clock=self._clock)
        size = getattr(trainer.train_dataloader, "batch_size", None)
        if self._throughput.batch_size is None and isinstance(size, int):
            self._throughput.batch_size = size * trainer.world_size

    def _end_measuring(self, trainer: Any) -> None:
        if self._profiler is not None:
            trainer.profiler, self._profiler = self._profiler.inner, None

    def _measure(self, trainer: Trainer) -> None:
        waited = self._profiler.take_waited() if self._profiler is not None else None
        seconds = self._clock.monotonic() - self._batch_began + (waited or 0.0)
        self._throughput.add(batches=1, seconds=seconds, waited=waited)
        interval = getattr(trainer, "log_every_n_steps", 0)
        if interval and self.batches % interval == 0:
            self._throughput.report(self.batches)

    def _request_validation(self, trainer: Trainer) -> None:
        """Has Lightning validate after this batch, as it does before it stops early."""
        self._validation_requested, self._interval = not trainer.should_stop, trainer.check_val_every_n_epoch
        trainer.should_stop = True
        trainer.check_val_every_n_epoch = 1

    def _complete(self, trainer: Trainer) -> None:
        self.search.complete({name: value.item() for name, value in trainer.callback_metrics.items()})
        if self._validation_requested:
            trainer.should_stop = self.search.is_over
            trainer.check_val_every_n_epoch = self._interval
            self._validation_requested = False

    def _report_progress(self, trainer: Trainer) -> None:
        if self.search.unit is not None:
            self.search.report_progress(batches=self.batches, epochs=_epochs(trainer))
        elif self.core.distributed.rank == 0 and trainer.estimated_stepping_batches < float("inf"):
            self.core.train.report_progress(min(trainer.global_step / trainer.estimated_stepping_batches, 1))

    def _save_and_check_stop(self, trainer: Trainer) -> None:
        if self._save_validated:
            self._save(trainer)
        if self._stopping.at_boundary():
            self._save(trainer)
            trainer.should_stop = True

    def _save(self, trainer: Trainer) -> None:
        if self._saved == self.batches:
            return
        self._saved = self.batches
        metadata = {"steps_completed": self.batches}
        with self.core.checkpoint.store_path(metadata, shard=True) as (directory, _):
            trainer.save_checkpoint(directory / CHECKPOINT_FILE)
            module, path = trainer.lightning_module, directory / self._position_file
            self._position.write(path, trainer, module, gradients=_has_gradients(trainer))

    @property
    def _position_file(self) -> str:
        return POSITION_FILE.format(self.core.distributed.rank)


def _epochs(trainer: Trainer) -> int:
    """Whole epochs trained, also while the hooks of the last batch run."""
    return trainer.current_epoch + int(trainer.is_last_batch)


def _is_between_steps(trainer: Trainer, batch_idx: int) -> bool:
    """Whether no gradients are on their way, and the end of the epoch, a better place, is not due."""
    return not trainer.is_last_batch and (batch_idx + 1) % trainer.accumulate_grad_batches == 0


def _has_gradients(trainer: Trainer) -> bool:
    """Whether gradients may wait for a step: unknown for modules that step themselves."""
    batches = trainer.fit_loop.epoch_loop.batch_progress.current.ready
    accumulates = not trainer.is_last_batch and batches % trainer.accumulate_grad_batches != 0
    return accumulates or not trainer.lightning_module.automatic_optimization


def _check(trainer: Trainer, search: SearchOperations) -> None:
    assert search.unit is not None
    if not trainer.enable_validation:
        raise ValueError(
            "the search decides by validations, and the trainer does none: give the module a "
            "validation_step() and fit() a loader for it"
        )
    if trainer.fit_loop.min_epochs or trainer.fit_loop.min_steps:
        raise ValueError(
            "min_epochs and min_steps keep the trainer from stopping when the search says so: leave them out"
        )
    length = search.max_length
    limits = {Unit.EPOCHS: ("max_epochs", trainer.max_epochs), Unit.BATCHES: ("max_steps", trainer.max_steps)}
    for unit, (name, limit) in limits.items():
        unlimited = limit is None or limit == -1
        enough = unit is search.unit and length is not None and (limit or 0) >= length
        if not unlimited and not enough:
            raise ValueError(
                f"Trainer({name}={limit}) may stop before the search, which counts in "
                f"{search.unit.name.lower()} and goes to {length}: give Trainer(max_epochs=-1) on a cluster"
            )
