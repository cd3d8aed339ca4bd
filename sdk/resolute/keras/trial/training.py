"""Trains a ``TFKerasTrial``: the parts of the training loop, and their construction from a config."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from resolute import core
from resolute.info import ClusterInfo
from resolute.keras import random_state
from resolute.keras.library import backend_of, find_library, is_of_legacy
from resolute.keras.trial.callback_list import CallbackList
from resolute.keras.trial.checkpoint import Checkpointer, build_weights
from resolute.keras.trial.context import TFKerasTrialContext
from resolute.keras.trial.data import adapt_data, is_dataset, length_of, training_batches, weigh_classes
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.trial_errors import InvalidExperimentException
from resolute.trials.counters import Intervals, Progress
from resolute.trials.display import choose_display
from resolute.trials.goals import SingleBatchGoal, cluster_goals
from resolute.trials.loop import CheckpointPolicy, LoopComponents, TrainingLoop
from resolute.trials.search_metric import is_time_driven
from resolute.trials.stopping import StopCoordinator
from resolute.trials.units import NEVER, Batch, TrainUnit

_log = logging.getLogger("resolute.keras")


class Segments:
    """Trains batches. Their metrics are averages since the last report.

    Args:
        context: The trial's context.
        callbacks: Its callbacks.
        progress: The counters of training, which are updated.
        batches: The training data from this position.
    """

    def __init__(
        self,
        context: TFKerasTrialContext,
        callbacks: CallbackList,
        *,
        progress: Progress,
        batches: Iterator[Any],
    ) -> None:
        self._context = context
        self._model = context.model
        self._callbacks = callbacks
        self._progress = progress
        self._batches = batches
        self._is_torch = backend_of(self._model) == "torch"
        self.metrics: list[dict[str, Any]] = []
        """Of the batches since the last report."""
        self.waited_seconds = 0.0
        """Seconds for which it has waited for batches so far."""

    def train_until(self, end: int, *, interrupted: Callable[[int], bool]) -> bool:
        """Trains up to a step; returns False if interrupted before it."""
        progress, callbacks = self._progress, self._callbacks
        if self._is_torch:
            self._model.train()
        begun = False
        while progress.step < end:
            epoch, within = divmod(progress.step, progress.epoch_length)
            if within == 0:
                callbacks.call("on_epoch_begin", epoch, {})
            if not begun:
                callbacks.call_own("on_train_workload_begin", progress.step, end - progress.step, {})
                begun = True
            callbacks.call("on_train_batch_begin", within, {})
            logs = self._train_batch()
            self.metrics.append(logs)
            progress.step += 1
            callbacks.call("on_train_batch_end", within, logs)
            if within == progress.epoch_length - 1:
                callbacks.call("on_epoch_end", epoch, {})
            take_stop_request(self._context)
            if progress.step < end and interrupted(progress.step):
                return False
        return True

    def _train_batch(self) -> dict[str, Any]:
        model = self._model
        began = time.perf_counter()
        batch = next(self._batches)
        self.waited_seconds += time.perf_counter() - began
        batch = weigh_classes(batch, self._context._fit_options.class_weight)
        if is_of_legacy(model):
            first = not self.metrics
            return dict(model.train_on_batch(*batch, reset_metrics=first, return_dict=True))
        if not self.metrics:
            model.reset_metrics()
            return _numbers(model.train_on_batch(*batch, return_dict=True))
        return _numbers(model.train_function([batch] if self._is_torch else iter([batch])))


class Validator:
    """Evaluates the model.

    Args:
        context: The trial's context.
        callbacks: Its callbacks.
        data: Validation data.
        most: Largest number of batches to evaluate; None for all.
    """

    def __init__(
        self, context: TFKerasTrialContext, callbacks: CallbackList, *, data: Any, most: int | None
    ) -> None:
        self._context = context
        self._callbacks = callbacks
        self._data = data
        self._steps = most or (context._fit_options.validation_steps if is_dataset(data) else None)

    def validate(self) -> dict[str, Any]:
        """Returns the metrics, named ``val_…``. A validation leaves the random state as it was."""
        model = self._context.model
        state = random_state.capture(model)
        hooks = [self._callbacks.for_evaluation()]
        logs = model.evaluate(self._data, verbose=0, steps=self._steps, callbacks=hooks, return_dict=True)
        random_state.restore(model, state)
        ended = getattr(self._data, "on_epoch_end", None)
        if ended is not None and is_of_legacy(model):
            ended()
        metrics = {f"val_{name}": value for name, value in _numbers(logs).items()}
        self._callbacks.call("on_test_end", metrics)
        take_stop_request(self._context)
        return metrics


class Reports:
    """Reports metrics.

    Args:
        context: The trial's context.
        callbacks: Its callbacks.
        segments: The source of training metrics.
    """

    def __init__(self, context: TFKerasTrialContext, callbacks: CallbackList, segments: Segments) -> None:
        self._core = context._core
        self._callbacks = callbacks
        self._segments = segments
        self._counts = is_time_driven(self._core)

    def report_training(self, progress: Progress) -> None:
        """Reports the training metrics, averaged over the batches since the last report."""
        batches, self._segments.metrics = self._segments.metrics, []
        if not batches:
            return
        own = {name: value for name, value in batches[-1].items() if name not in {"batch", "size"}}
        self._core.train.report_training_metrics(
            steps_completed=progress.step,
            metrics=self._counted(own, progress),
            batch_metrics=batches if self._core.info is not None else None,
        )
        self._callbacks.call_own("on_train_workload_end", progress.step, own)

    def report_validation(self, metrics: Mapping[str, Any], progress: Progress) -> None:
        """Reports the metrics of a validation."""
        self._core.train.report_validation_metrics(
            steps_completed=progress.step, metrics=self._counted(metrics, progress)
        )

    def upload_tensorboard(self) -> None:
        """Does nothing: events are kept by themselves."""

    def _counted(self, metrics: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        counts = {"batches": progress.step, "epochs": progress.step / progress.epoch_length}
        return {**metrics, **counts} if self._counts else dict(metrics)


def take_stop_request(context: TFKerasTrialContext) -> None:
    """Requests a stop of the trial if a callback has set ``model.stop_training``."""
    if getattr(context.model, "stop_training", False):
        context.model.stop_training = False
        context.set_stop_requested(True)


def train(trial_class: Any, info: ClusterInfo, config: ExperimentConfig) -> None:
    """Trains a trial on a cluster, for the length in its config or from its search.

    Raises:
        ValueError: It has several slots; or the config does not say how long to train.
        InvalidExperimentException: The trial lacks what training needs.
    """
    if len(info.container_addrs) > 1 or len(info.slot_ids) > 1:
        raise ValueError(
            "a TFKerasTrial trains on one slot, and this trial has several: set slots_per_trial: 1, or train "
            "with ResoluteCallback and tf_keras, whose workers are started by "
            "determined.launch.tensorflow (docs/keras.md)"
        )
    with core.init() as core_context:
        _run(trial_class, core_context, config, hparams=info.trial.hparams, seed=info.trial.trial_seed)


def test_one_batch(trial_class: Any, config: ExperimentConfig, *, hparams: Mapping[str, Any]) -> None:
    """Trains one batch off cluster, validates with one, and makes a checkpoint."""
    with core.init() as core_context:
        core_context.info = None
        _run(trial_class, core_context, config, hparams=hparams, seed=0)


def _run(
    trial_class: Any,
    core_context: core.Context,
    config: ExperimentConfig,
    *,
    hparams: Mapping[str, Any],
    seed: int,
) -> None:
    random_state.seed_all(seed, find_library())
    context = TFKerasTrialContext(core_context, hparams=hparams, exp_conf=config, trial_seed=seed)
    trial = trial_class(context)
    size = context.get_per_slot_batch_size()
    training = trial.build_training_data_loader()
    training = adapt_data(training, batch_size=size, wrapped=context._dataset_wrapped)
    validation = trial.build_validation_data_loader()
    validation = adapt_data(validation, batch_size=size, wrapped=context._dataset_wrapped)
    _build_model(trial, context)
    build_weights(context.model, training)
    known = _epoch_length(config, context, training)
    progress = Progress(known or sys.maxsize)
    callbacks = CallbackList(trial.keras_callbacks(), context.model, epoch_length=known)
    saved = Checkpointer(context, trial_class, callbacks)
    local = core_context.info is None
    with contextlib.ExitStack() as stack:
        stack.callback(core_context.checkpoint.wait)
        latest = None if core_context.info is None else core_context.info.latest_checkpoint
        if latest is None:
            callbacks.call("on_train_begin", {})
        else:
            with core_context.checkpoint.restore_path(latest) as directory:
                saved.load(directory, progress)
        options = context._fit_options
        batches = training_batches(
            training,
            step=progress.step,
            seed=seed,
            shuffle=options.shuffle,
            workers=options.workers,
            queue_size=options.max_queue_size,
        )
        stack.callback(batches.close)  # type: ignore[attr-defined]
        segments = Segments(context, callbacks, progress=progress, batches=batches)
        parts = LoopComponents(
            core=core_context,
            segments=segments,
            validator=Validator(context, callbacks, data=validation, most=1 if local else None),
            reports=Reports(context, callbacks, segments),
            checkpoints=saved,
            stopping=StopCoordinator(core_context, context.get_stop_requested),
            display=choose_display(on_cluster=not local, rank=0),
            keeps_open_metrics=lambda: False,
            batch_cost=context.get_batch_cost,
        )
        stack.callback(parts.display.close)
        _loop(parts, config, progress, context).run(
            SingleBatchGoal(lambda: 0)
            if local
            else cluster_goals(core_context, None, global_batch_size=context.get_global_batch_size())
        )
    callbacks.call("on_train_end", {})


def _loop(
    parts: LoopComponents, config: ExperimentConfig, progress: Progress, context: TFKerasTrialContext
) -> TrainingLoop:
    size = context.get_global_batch_size()
    lengths = [config.get("min_validation_period"), config.get("min_checkpoint_period")]
    lengths.append((config.get("searcher") or {}).get("max_length"))
    if progress.epoch_length == sys.maxsize and any("epochs" in (length or {}) for length in lengths):
        raise InvalidExperimentException(
            "the config counts in epochs, and the length of an epoch is not known: set records_per_epoch, or "
            "count in batches"
        )
    validate, checkpoint = (_period(length, size) for length in lengths[:2])
    return TrainingLoop(
        parts,
        progress=progress,
        intervals=Intervals(Batch(config.scheduling_unit()), validate, checkpoint),
        policy=CheckpointPolicy(str(config.get("checkpoint_policy", "best"))),
        validate_first=bool(config.get("perform_initial_validation", False)),
    )


def _period(length: Any, global_batch_size: int) -> TrainUnit:
    if isinstance(length, int):
        length = {"batches": length}
    if not length or not any(length.values()):
        return NEVER
    return TrainUnit.from_config(length, global_batch_size)


def _build_model(trial: Any, context: TFKerasTrialContext) -> None:
    model = trial.build_model()
    if context.model is None:
        raise InvalidExperimentException(
            "Please call wrap_model: build_model() must give its model to context.wrap_model() before it "
            "compiles it"
        )
    context.model = model
    if getattr(model, "optimizer", None) is None:
        raise InvalidExperimentException(
            "Please call model.compile: build_model() must compile the model that context.wrap_model() "
            "returned"
        )


def _epoch_length(config: ExperimentConfig, context: TFKerasTrialContext, data: Any) -> int | None:
    records = int(config.get("records_per_epoch") or 0)
    if records:
        return max(records // context.get_global_batch_size(), 1)
    return length_of(data)


def _numbers(logs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(value) for name, value in logs.items()}
