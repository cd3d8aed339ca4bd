"""``Trainer.fit``: checks its arguments, creates the parts and runs the loop."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from resolute.pytorch.checkpointing.checkpointer import Checkpointer, open_checkpoint
from resolute.pytorch.training.components import ComponentFactory, TrialComponentFactory
from resolute.pytorch.training.reports import MetricReporter
from resolute.pytorch.training.segment import SegmentTrainer
from resolute.pytorch.training.validation import Validator
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import Callbacks
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.legacy import adapt_trial
from resolute.trials.counters import Intervals, Progress
from resolute.trials.display import choose_display
from resolute.trials.goals import GoalSource, SingleBatchGoal, cluster_goals, local_goal
from resolute.trials.loop import CheckpointPolicy, LoopComponents, TrainingLoop
from resolute.trials.search_metric import is_time_driven
from resolute.trials.stopping import StopCoordinator
from resolute.trials.units import NEVER, Batch, TrainUnit

_log = logging.getLogger("resolute.pytorch")


@dataclass(frozen=True, slots=True)
class _FitOptions:
    """The options of ``fit``."""

    intervals: Intervals
    goals: GoalSource
    policy: CheckpointPolicy
    latest_checkpoint: str | None
    step_zero_validation: bool
    test_mode: bool
    profiling: bool


class Trainer:
    """Trains a trial.

    Args:
        trial: The trial.
        context: The context of the trial.

    Raises:
        TypeError: The trial is not a ``PyTorchTrial``.
        InvalidExperimentException: The trial defines no evaluation method, or more than one.

    Examples:
        ``Line`` is the example of ``PyTorchTrial``.

        >>> from resolute import pytorch
        >>> with pytorch.init() as context:
        ...     trainer = pytorch.Trainer(Line(context), context)
        ...     trainer.fit(max_length=pytorch.Epoch(2), validation_period=pytorch.Epoch(1))
    """

    def __init__(self, trial: Any, context: PyTorchTrialContext) -> None:
        self._set_up(trial, context, TrialComponentFactory(adapt_trial(trial, context), context))

    def _set_up(self, trial: Any, context: TrialContext, components: ComponentFactory) -> None:
        """Stores the trial, and the factory of the parts of its training loop."""
        self._trial_class = type(trial)
        self._context = context
        self._core = context._core
        self._components = components
        self._from_trainer = True

    def configure_profiler(
        self,
        sync_timings: bool = True,
        enabled: bool = False,
        begin_on_batch: int = 0,
        end_after_batch: int | None = None,
    ) -> None:
        """Has no effect. Use ``fit(profiling_enabled=True)``."""
        _log.error("Trainer.configure_profiler() has no effect: use fit(profiling_enabled=True)")

    def fit(  # noqa: PLR0913, PLR0917 - the documented signature
        self,
        checkpoint_period: TrainUnit | None = None,
        validation_period: TrainUnit | None = None,
        max_length: TrainUnit | None = None,
        reporting_period: TrainUnit = Batch(100),  # noqa: B008 - an immutable value
        checkpoint_policy: str = "best",
        latest_checkpoint: str | None = None,
        step_zero_validation: bool = False,
        test_mode: bool = False,
        profiling_enabled: bool = False,
    ) -> None:
        """Trains until the end, or until the platform or the trial asks to stop.

        Args:
            checkpoint_period: How often to make a checkpoint; default only at the end, and as the policy
                says.
            validation_period: How often to validate; default only at the end.
            max_length: How long to train off cluster; on cluster the search decides.
            reporting_period: How often to report training metrics.
            checkpoint_policy: ``best``, ``all`` or ``none``: which validations are followed by a checkpoint.
                Off cluster, where no search says what is best, ``best`` means ``all``.
            latest_checkpoint: Checkpoint to go on from; on cluster ``get_cluster_info().latest_checkpoint``.
            step_zero_validation: Whether to validate before the first batch.
            test_mode: Whether to train one batch, validate with one, make a checkpoint, and end.
            profiling_enabled: Whether to sample use of the machine, on cluster.

        Raises:
            ValueError: Something is missing or cannot be combined with something else; the message says what.
            TypeError: Something is of a wrong type.
        """
        policy = _parse_policy(checkpoint_policy)
        intervals = _parse_intervals(
            reporting_period=reporting_period,
            validation_period=validation_period,
            checkpoint_period=checkpoint_period,
        )
        info = self._core.info
        if info is None and policy is CheckpointPolicy.BEST:
            policy = CheckpointPolicy.ALL
        if info is None and profiling_enabled:
            _log.warning("profiling_enabled has no effect off cluster")
        goals = self._choose_goals(max_length, test_mode=test_mode)
        if info is not None and info.latest_checkpoint and latest_checkpoint is None:
            _log.warning(
                "this trial has a checkpoint, and fit() was called without it: training begins anew. Pass "
                "latest_checkpoint=get_cluster_info().latest_checkpoint to go on instead"
            )
        self._run(
            _FitOptions(
                intervals=Intervals(Batch(1), NEVER, NEVER) if test_mode else intervals,
                goals=goals,
                policy=policy,
                latest_checkpoint=latest_checkpoint,
                step_zero_validation=step_zero_validation and not test_mode,
                test_mode=test_mode,
                profiling=profiling_enabled and info is not None,
            )
        )

    def _choose_goals(self, max_length: TrainUnit | None, *, test_mode: bool) -> GoalSource:
        if self._core.info is not None:
            if test_mode:
                raise ValueError(
                    "test_mode is for training off cluster; on cluster the search decides how long to train"
                )
            return cluster_goals(self._core, max_length, global_batch_size=self._context._global_batch_size)
        goals = local_goal(max_length)
        return SingleBatchGoal(lambda: self._context._steps_completed) if test_mode else goals

    def _run(self, request: _FitOptions) -> None:
        callbacks = Callbacks(self._components.make_callbacks())
        with contextlib.ExitStack() as stack:
            # The last checkpoint counts once fit() has ended, however it ends.
            stack.callback(self._core.checkpoint.wait)
            stack.callback(callbacks.shut_down)
            loop = stack.enter_context(self._prepare_loop(request, callbacks))
            for callback in callbacks:
                callback.on_training_start()
            loop.run(request.goals)

    @contextlib.contextmanager
    def _prepare_loop(self, request: _FitOptions, callbacks: Callbacks) -> Iterator[TrainingLoop]:
        """Builds loaders and parts, and loads the checkpoint."""
        context, components = self._context, self._components
        metrics = components.make_metrics()
        saved = Checkpointer(
            components.make_contents(callbacks, metrics),
            trial_class=self._trial_class,
            context=context,
            callbacks=callbacks,
            from_trainer=self._from_trainer,
        )
        with contextlib.ExitStack() as stack:
            with open_checkpoint(context, request.latest_checkpoint) as directory:
                for callback in callbacks:
                    callback.on_trial_startup(context._steps_completed, request.latest_checkpoint)
                batches, epoch_length = components.make_batch_trainer(metrics)
                stack.callback(batches.close)
                progress = Progress(epoch_length, step=context._steps_completed)
                context._epoch_length = epoch_length
                evaluate = components.make_evaluation(callbacks, most=1 if request.test_mode else None)
                context.reset_reducers()
                if directory is not None:
                    saved.load(directory, progress)
            components.on_ready()
            timed = is_time_driven(self._core)
            reports = MetricReporter(context, callbacks=callbacks, metrics=metrics, count_progress=timed)
            stack.callback(reports.close)
            display = choose_display(on_cluster=self._core.info is not None, rank=context.distributed.rank)
            stack.callback(display.close)
            if request.profiling:
                self._core.profiler.on()
                stack.callback(self._core.profiler.off)
            if context.profiler is not None:
                stack.enter_context(context.profiler)
            parts = LoopComponents(
                core=self._core,
                segments=SegmentTrainer(batches, context, callbacks=callbacks, progress=progress),
                validator=Validator(evaluate, context, callbacks=callbacks),
                reports=reports,
                checkpoints=saved,
                stopping=StopCoordinator(self._core, context.get_stop_requested),
                display=display,
                keeps_open_metrics=lambda: context.function_reducer_values() is not None,
                batch_cost=context.get_batch_cost,
            )
            yield TrainingLoop(
                parts,
                progress=progress,
                intervals=request.intervals,
                policy=request.policy,
                validate_first=request.step_zero_validation,
            )


def _parse_policy(policy: str) -> CheckpointPolicy:
    try:
        return CheckpointPolicy(policy)
    except ValueError:
        raise ValueError(f"checkpoint_policy is {policy!r}; 'best', 'all' or 'none' was expected") from None


def _parse_intervals(
    *, reporting_period: TrainUnit, validation_period: TrainUnit | None, checkpoint_period: TrainUnit | None
) -> Intervals:
    for name, unit in (
        ("checkpoint_period", checkpoint_period),
        ("validation_period", validation_period),
        ("reporting_period", reporting_period),
    ):
        if unit is not None and not isinstance(unit, TrainUnit):
            raise TypeError(f"{name} is {unit!r}; pytorch.Batch(...) or pytorch.Epoch(...) was expected")
    return Intervals(reporting_period, validation_period or NEVER, checkpoint_period or NEVER)
