"""The parts of the training loop that differ between kinds of trials, and those of a ``PyTorchTrial``."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch.utils.data import DataLoader as TorchDataLoader

from resolute.pytorch.checkpointing.checkpointer import CheckpointContents
from resolute.pytorch.checkpointing.contents import TrialContents
from resolute.pytorch.data.generators import OwnGenerators
from resolute.pytorch.data.loader import DataLoader
from resolute.pytorch.data.ordering import derived_seed
from resolute.pytorch.data.replay import DataOrder
from resolute.pytorch.data.stateful import StatefulLoaders, is_stateful_loader
from resolute.pytorch.data.torch_loader import from_torch
from resolute.pytorch.metrics.aggregation import Metrics, TrainingMetrics
from resolute.pytorch.training.batches import TrialBatchTrainer
from resolute.pytorch.training.restorable import check_wrapped, wrapped_schedulers
from resolute.pytorch.training.segment import BatchTrainer
from resolute.pytorch.training.unsaved import with_unsaved_state_warning
from resolute.pytorch.training.validation import TrialEvaluator, check_evaluation, evaluates_full_dataset
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import Callbacks, PyTorchCallback, overrides
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.definition import PyTorchTrial

_log = logging.getLogger("resolute.pytorch")


class ComponentFactory(Protocol):
    """Creates the loop's parts for one kind of trial. Every rank creates all of them, in this order."""

    def make_callbacks(self) -> Mapping[str, PyTorchCallback]:
        """Returns the trial's callbacks by name."""

    def make_metrics(self) -> TrainingMetrics:
        """Returns the collector of training metrics."""

    def make_contents(self, callbacks: Callbacks, metrics: TrainingMetrics) -> CheckpointContents:
        """Returns the contents of checkpoints."""

    def make_batch_trainer(self, metrics: TrainingMetrics) -> tuple[BatchTrainer, int]:
        """Returns the trainer of batches, beginning at the initial batch, and the length of an epoch.

        Raises:
            RuntimeError: The training loader is empty, or of a wrong kind.
        """

    def make_evaluation(self, callbacks: Callbacks, *, most: int | None) -> Callable[[], Metrics]:
        """Returns the evaluation.

        Args:
            callbacks: Called for it.
            most: Most batches to look at; None for all.

        Raises:
            RuntimeError: The validation loader is of a wrong kind.
        """

    def on_ready(self) -> None:
        """Called when a checkpoint was loaded, or there is none."""


class TrialComponentFactory:
    """Creates the parts for a ``PyTorchTrial``.

    Args:
        trial: The trial.
        context: Its context.

    Raises:
        InvalidExperimentException: The trial defines no evaluation method, or more than one.
    """

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        check_evaluation(trial)
        self._trial = trial
        self._context = context

    def make_callbacks(self) -> Mapping[str, PyTorchCallback]:
        """Returns the trial's callbacks, and one that warns of state that no checkpoint has."""
        context = self._context
        schedulers = wrapped_schedulers(context)
        kept = [*context.optimizers, *schedulers, context._precision.scaler]
        callbacks, self._unsaved = with_unsaved_state_warning(
            self._trial, context, kept=kept, schedulers=schedulers
        )
        return callbacks

    def make_metrics(self) -> TrainingMetrics:
        """Returns means over ranks, or the chief's metrics if the config says so."""
        return TrainingMetrics(
            self._context.distributed.allgather, average=averages_training_metrics(self._context)
        )

    def make_contents(self, callbacks: Callbacks, metrics: TrainingMetrics) -> CheckpointContents:
        """Returns the contents: the state of everything that was wrapped."""
        return TrialContents(self._context, callbacks=callbacks, metrics=metrics)

    def make_batch_trainer(self, metrics: TrainingMetrics) -> tuple[BatchTrainer, int]:
        """Returns the trainer of this rank's loader; an epoch has as many batches as the chief's loader."""
        context, dist = self._context, self._context.distributed
        built: Any = self._managed(self._trial.build_training_data_loader())
        loader = built
        if isinstance(built, DataLoader):
            loader = built.get_data_loader(
                repeat=True,
                skip=context._steps_completed,
                num_replicas=dist.size,
                rank=dist.rank,
                seed=context.get_trial_seed(),
            )
        else:
            self._check_loader(built, "build_training_data_loader")
            warn_of_first_batch(built, context, self._unsaved.callbacks)
        check_wrapped(self._trial, context, self._unsaved.callbacks)
        context._data_order = order_of(built, self._trial, context, callbacks=self._unsaved.callbacks)
        self._unsaved.watch_data(built)
        length = dist.broadcast(loader_length(loader))
        if length == 0:
            raise RuntimeError(
                "the training loader is empty: build_training_data_loader() must return at least one batch; "
                "a batch size above the number of records with drop_last leaves none"
            )
        epoch_length = sys.maxsize if length is None else length
        batches = TrialBatchTrainer(
            self._trial, context, loader=loader, epoch_length=epoch_length, metrics=metrics
        )
        return batches, epoch_length

    def make_evaluation(self, callbacks: Callbacks, *, most: int | None) -> Callable[[], Metrics]:
        """Returns the evaluation: of this rank's shard in batches, or of the whole data set on the chief."""
        evaluation = TrialEvaluator(
            self._trial, self._context, callbacks=callbacks, loader=self._validation_loader(), batches=most
        )
        return evaluation.evaluate

    def on_ready(self) -> None:
        """Broadcasts the chief's state to all ranks."""
        self._context._backend.broadcast_state(self._context.models, self._context.optimizers)

    def _validation_loader(self) -> Any:
        context, dist = self._context, self._context.distributed
        if evaluates_full_dataset(self._trial) and dist.rank:
            return ()
        built: Any = self._trial.build_validation_data_loader()
        if not evaluates_full_dataset(self._trial):
            built = self._managed(built)
        if not isinstance(built, DataLoader):
            if not evaluates_full_dataset(self._trial):
                self._check_loader(built, "build_validation_data_loader")
            return built
        replicas, rank = (1, 0) if evaluates_full_dataset(self._trial) else (dist.size, dist.rank)
        return built.get_data_loader(num_replicas=replicas, rank=rank, seed=context.get_trial_seed())

    def _managed(self, loader: object) -> object:
        """Converts a loader of torch into ours, unless the trial shards, shuffles and skips data itself."""
        return from_torch(loader) if self._context.experimental.reproducibility_checks else loader

    def _check_loader(self, loader: object, method: str) -> None:
        experimental = self._context.experimental
        remedy = "context.experimental.disable_dataset_reproducibility_checks()"
        check_third_party_loader(
            loader, method, allowed=not experimental.reproducibility_checks, remedy=remedy
        )


def check_third_party_loader(loader: object, method: str, *, allowed: bool, remedy: str) -> None:
    """Checks a loader other than ``resolute.pytorch.DataLoader``.

    Args:
        loader: The loader.
        method: The trial's method that returned it.
        allowed: Whether the trial declared that it shards, shuffles and skips itself.
        remedy: The call by which it says so.

    Raises:
        RuntimeError: It is not allowed, or no loader.
    """
    if not allowed:
        raise RuntimeError(
            f"{method}() returned a {type(loader).__module__}.{type(loader).__qualname__}: return a "
            "resolute.pytorch.DataLoader, which takes the same arguments; or, if the trial shards, shuffles "
            f"and skips its data itself, call {remedy}"
        )
    if not isinstance(loader, TorchDataLoader) and not hasattr(loader, "__iter__"):
        raise RuntimeError(f"{method}() returned a {type(loader).__qualname__}, which yields no batches")


def warn_of_first_batch(
    loader: object, context: TrialContext, callbacks: Mapping[str, PyTorchCallback]
) -> None:
    """Warns of a training loader that begins each run with its first batch.

    Args:
        loader: What the trial built.
        context: Its context.
        callbacks: Its callbacks; they may know the place, or learn it at the start.
    """
    informed = [
        callback
        for callback in callbacks.values()
        if overrides(callback, "on_trial_startup") or overrides(callback, "state_dict")
    ]
    if not (context._asked_for_initial_batch or informed or is_stateful_loader(loader)):
        _log.warning(
            "the training loader is a %s.%s, which begins with its first batch after a pause: leave out as "
            "many batches as context.get_initial_batch() says, or return a loader with state_dict() and "
            "load_state_dict(), such as torchdata's StatefulDataLoader",
            type(loader).__module__,
            type(loader).__qualname__,
        )


def order_of(
    loader: Any, trial: object, context: TrialContext, *, callbacks: Mapping[str, PyTorchCallback]
) -> DataOrder:
    """Returns the state of the data's order, for checkpoints.

    Args:
        loader: What the trial built for training.
        trial: The trial.
        context: Its context.
        callbacks: The trial's callbacks, by name.
    """
    order = loader.order if isinstance(loader, DataLoader) else DataOrder(dataset=_read_here(loader))
    named = [("the training loader", loader), *vars(trial).items()]
    seed = derived_seed(context.get_trial_seed(), context.distributed.rank)
    return dataclasses.replace(
        order,
        loaders=StatefulLoaders(named, seed=seed),
        trial=OwnGenerators(trial, without=context),
        callbacks=OwnGenerators(callbacks, without=context),
    )


def _read_here(loader: Any) -> OwnGenerators:
    """Returns the generators with which this process reads records, whose states are restored.

    Of a loader that deals its earlier batches again, to skip them, those of samplers are not among them.
    """
    if is_stateful_loader(loader):
        return OwnGenerators(loader)
    in_workers = getattr(loader, "num_workers", 0)
    read_by = () if in_workers else (getattr(loader, "dataset", None), getattr(loader, "collate_fn", None))
    return OwnGenerators(read_by)


def loader_length(loader: Any) -> int | None:
    """Returns the number of batches of a loader; None if it has no length."""
    try:
        return len(loader)
    except TypeError:
        return None


def averages_training_metrics(context: TrialContext) -> bool:
    """Whether metrics of training are means over ranks; unless the config says otherwise, they are."""
    config = context._exp_conf
    return True if config is None else config.average_training_metrics_enabled()
