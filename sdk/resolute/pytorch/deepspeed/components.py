"""Creates the parts of the training loop for a ``DeepSpeedTrial``."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from resolute.pytorch.checkpointing.checkpointer import CheckpointContents
from resolute.pytorch.data.loader import DataLoader
from resolute.pytorch.data.torch_loader import from_torch
from resolute.pytorch.deepspeed.batches import EngineBatchTrainer, EngineEvaluator
from resolute.pytorch.deepspeed.contents import EngineContents
from resolute.pytorch.deepspeed.context import DeepSpeedTrialContext
from resolute.pytorch.deepspeed.trial import DeepSpeedTrial
from resolute.pytorch.metrics.aggregation import Metrics, TrainingMetrics
from resolute.pytorch.training.components import (
    averages_training_metrics,
    check_third_party_loader,
    loader_length,
    order_of,
    warn_of_first_batch,
)
from resolute.pytorch.training.segment import BatchTrainer
from resolute.pytorch.training.unsaved import with_unsaved_state_warning
from resolute.pytorch.trial.callbacks import Callbacks, PyTorchCallback
from resolute.trial_errors import InvalidExperimentException

_log = logging.getLogger("resolute.pytorch.deepspeed")


class EngineComponentFactory:
    """Creates the parts of the training loop.

    Args:
        trial: The trial.
        context: Its context.

    Raises:
        InvalidExperimentException: The trial has not wrapped an engine.
    """

    def __init__(self, trial: DeepSpeedTrial, context: DeepSpeedTrialContext) -> None:
        if not context.models:
            raise InvalidExperimentException(
                f"{type(trial).__name__} has wrapped no engine: call context.wrap_model_engine() in __init__"
            )
        self._trial = trial
        self._context = context

    def make_callbacks(self) -> Mapping[str, PyTorchCallback]:
        """Returns the trial's callbacks, and one that warns of state that no checkpoint has."""
        callbacks, self._unsaved = with_unsaved_state_warning(self._trial, self._context)
        return callbacks

    def make_metrics(self) -> TrainingMetrics:
        """Returns means over the ranks that report, or the chief's metrics if the config says so."""
        return TrainingMetrics(
            self._context.distributed.allgather, average=averages_training_metrics(self._context)
        )

    def make_contents(self, callbacks: Callbacks, metrics: TrainingMetrics) -> CheckpointContents:
        """Returns the contents, with a part of every rank."""
        return EngineContents(self._trial, self._context, callbacks=callbacks, metrics=metrics)

    def make_batch_trainer(self, metrics: TrainingMetrics) -> tuple[BatchTrainer, int]:
        """Returns the trainer of batches, and the length of an epoch: that of the shortest loader."""
        context = self._context
        micro_batches = context.num_micro_batches_per_slot
        loader = self._loader(
            self._trial.build_training_data_loader,
            "build_training_data_loader",
            repeat=True,
            skip=context._steps_completed * micro_batches,
        )
        shortest = self._shortest(loader, "training")
        length = sys.maxsize if shortest is None else shortest // micro_batches
        if length == 0:
            raise RuntimeError(
                f"the training loader is empty: build_training_data_loader() gives {shortest} micro batches "
                f"to some rank, and a batch has {micro_batches}"
            )
        return EngineBatchTrainer(self._trial, context, loader=loader, metrics=metrics), length

    def make_evaluation(self, callbacks: Callbacks, *, most: int | None) -> Callable[[], Metrics]:
        """Returns the evaluation, by as many batches on each rank as the shortest loader has."""
        context = self._context
        loader = self._loader(self._trial.build_validation_data_loader, "build_validation_data_loader")
        shortest = self._shortest(loader, "validation")
        if shortest is None:
            raise RuntimeError(
                "the length of the validation loader is not known: build_validation_data_loader() must "
                "return one that has a len()"
            )
        calls = shortest
        if context.use_pipeline_parallel:
            calls = self._whole_batches(shortest)
        evaluation = EngineEvaluator(
            self._trial,
            context,
            callbacks=callbacks,
            loader=loader,
            calls=calls if most is None else min(calls, most),
        )
        return evaluation.evaluate

    def on_ready(self) -> None:
        """Does nothing: DeepSpeed has broadcast the chief's weights."""

    def _loader(
        self, build: Callable[[], Any], method: str, *, repeat: bool = False, skip: int = 0
    ) -> Any | None:
        """Builds the loader of this rank; None if it needs none."""
        context = self._context
        mpu = context._mpu
        if not mpu.should_build_data_loader:
            return None
        built: Any = build() if context._data_repro_checks_disabled else from_torch(build())
        loader = built
        if isinstance(built, DataLoader):
            loader = built.get_data_loader(
                repeat=repeat,
                skip=skip,
                num_replicas=mpu.data_parallel_world_size,
                rank=mpu.data_parallel_rank,
                seed=context.get_trial_seed(),
            )
        else:
            remedy = "context.disable_dataset_reproducibility_checks()"
            check_third_party_loader(
                built, method, allowed=context._data_repro_checks_disabled, remedy=remedy
            )
            if repeat:
                warn_of_first_batch(built, context, self._unsaved.callbacks)
        if repeat:
            order = order_of(built, self._trial, context, callbacks=self._unsaved.callbacks)
            context._data_order = dataclasses.replace(
                order, batches_per_step=context.num_micro_batches_per_slot
            )
            self._unsaved.watch_data(built)
        return loader

    def _shortest(self, loader: Any | None, kind: str) -> int | None:
        """Returns the fewest micro batches of a rank; None if no loader has a length. Every rank calls it."""
        # A loader that DeepSpeed repeats forever keeps the one that has a length.
        mine = None if loader is None else loader_length(getattr(loader, "loader", loader))
        lengths = [length for length in self._context.distributed.allgather(mine) if length is not None]
        if lengths and min(lengths) < max(lengths):
            _log.warning(
                "the %s loaders of the ranks have %d to %d micro batches: the fewest count",
                kind,
                min(lengths),
                max(lengths),
            )
        return min(lengths, default=None)

    def _whole_batches(self, micro_batches: int) -> int:
        each = self._context.num_micro_batches_per_slot
        if micro_batches < each:
            raise InvalidExperimentException(
                f"the validation loader has {micro_batches} micro batches, and the pipeline evaluates {each} "
                "at once: validate with more records, or lower gradient_accumulation_steps in DeepSpeed's "
                "config"
            )
        if micro_batches % each:
            _log.warning("the last %d micro batches are left out of validations", micro_batches % each)
        return micro_batches // each
