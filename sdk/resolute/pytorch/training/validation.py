"""Validation of a trial."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import torch

from resolute.pytorch.backends.random_state import preserve_random_state
from resolute.pytorch.metrics.aggregation import Metrics, ValidationMetrics, reportable
from resolute.pytorch.metrics.reducers import Reducer
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import Callbacks
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.definition import PyTorchTrial
from resolute.trial_errors import InvalidExperimentException

_log = logging.getLogger("resolute.pytorch")


class Validator:
    """Validates a trial.

    Args:
        evaluate: Returns the metrics that the trial itself computes. Every rank calls it.
        context: The trial's context.
        callbacks: Its callbacks.
    """

    def __init__(
        self, evaluate: Callable[[], Metrics], context: TrialContext, *, callbacks: Callbacks
    ) -> None:
        self._evaluate = evaluate
        self._context = context
        self._callbacks = callbacks

    def validate(self) -> Metrics:
        """Validates; every rank calls it. A validation leaves the random state as it was.

        Returns:
            The metrics; without meaning but on the chief, unless some callback wants them.

        Raises:
            RuntimeError: There is nothing to validate with.
        """
        context = self._context
        for model in context.models:
            model.eval()
        for callback in self._callbacks:
            callback.on_validation_start()
        context.reset_reducers(for_training=False)
        # Random numbers that a validation draws must not decide how training continues.
        with preserve_random_state(context.device), torch.no_grad():
            metrics = self._evaluate()
        metrics = reportable({**metrics, **context.reduce_metrics(for_training=False)})
        if not metrics and not context.distributed.rank:
            _log.warning("the validation has no metric: return some from evaluate_batch(), or wrap a reducer")
        context.reset_reducers()  # what was evaluated is not to count as training
        if self._callbacks.want_validation_metrics:
            metrics = context.distributed.broadcast(metrics)
        for callback in self._callbacks:
            callback.on_validation_end(metrics)
        return metrics


def evaluate_and_reduce(
    evaluated: Iterable[Any],
    context: TrialContext,
    *,
    callbacks: Callbacks,
    reducers: Reducer | dict[str, Reducer] = Reducer.AVG,
) -> Metrics:
    """Evaluates all batches and reduces their metrics over batches and ranks; every rank calls it.

    Args:
        evaluated: Evaluates a batch each time that it is asked, and gives its metrics.
        context: The trial's context.
        callbacks: Its callbacks.
        reducers: How metrics are reduced: one way, or one for each metric.

    Raises:
        RuntimeError: No rank has evaluated anything.
    """
    for callback in callbacks:
        callback.on_validation_epoch_start()
    collected = ValidationMetrics(reducers, context.distributed.allgather)
    outputs: list[Any] = []
    for returned in evaluated:
        collected.add(returned)
        outputs.append(returned)
    for callback in callbacks:
        callback.on_validation_epoch_end(outputs)
    metrics, count = collected.reduce()
    if not count:
        raise RuntimeError(
            "validation_loader is empty: build_validation_data_loader() must return at least one batch"
        )
    return metrics


class TrialEvaluator:
    """Evaluates a ``PyTorchTrial``.

    Args:
        trial: The trial.
        context: Its context.
        callbacks: Its callbacks.
        loader: The validation data of this rank, or all of it for ``evaluate_full_dataset``.
        batches: Largest number of batches to evaluate; None for all.
    """

    def __init__(
        self,
        trial: PyTorchTrial,
        context: PyTorchTrialContext,
        *,
        callbacks: Callbacks,
        loader: Iterable[Any],
        batches: int | None = None,
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = callbacks
        self._loader = loader
        self._batches = batches
        self._evaluate = _with_batch_index(trial.evaluate_batch)

    def evaluate(self) -> Metrics:
        """Returns the metrics that the trial computes; every rank calls it."""
        context = self._context
        with context._backend.evaluation_mode(context.models):
            if evaluates_full_dataset(self._trial):
                return self._full()
            reducers = self._trial.evaluation_reducer()
            return evaluate_and_reduce(self._each(), context, callbacks=self._callbacks, reducers=reducers)

    def _each(self) -> Iterator[Any]:
        for number, batch in enumerate(islice(self._loader, self._batches)):
            moved = self._context.to_device(batch) if self._context.experimental.auto_to_device else batch
            yield self._evaluate(moved, number)

    def _full(self) -> Metrics:
        if self._context.distributed.rank:
            return {}
        limited = self._loader if self._batches is None else islice(self._loader, self._batches)
        metrics = self._trial.evaluate_full_dataset(limited)
        if not isinstance(metrics, dict):
            raise TypeError(
                f"evaluate_full_dataset() must return a dict of metrics, not a {type(metrics).__name__}"
            )
        return metrics


def _overrides(trial: PyTorchTrial, method: str) -> bool:
    return getattr(type(trial), method, None) is not getattr(PyTorchTrial, method)


def evaluates_full_dataset(trial: PyTorchTrial) -> bool:
    """Whether a trial evaluates the whole data set at once."""
    return _overrides(trial, "evaluate_full_dataset")


def check_evaluation(trial: PyTorchTrial) -> None:
    """Checks that the trial defines exactly one way to validate.

    Raises:
        InvalidExperimentException: It overrides none, or both, of the two ways.
    """
    ways = [name for name in ("evaluate_batch", "evaluate_full_dataset") if _overrides(trial, name)]
    if len(ways) != 1:
        raise InvalidExperimentException(
            f"{type(trial).__name__} must define one of evaluate_batch() and evaluate_full_dataset(), and "
            "not "
            f"both; it defines {' and '.join(ways) or 'neither'}"
        )


def _with_batch_index(evaluate: Callable[..., Any]) -> Callable[[Any, int], Any]:
    """Returns ``evaluate_batch`` as one that takes the number of the batch, also if it does not."""
    parameters = inspect.signature(evaluate).parameters
    many = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
    if many or len(parameters) >= 2 or "batch_idx" in parameters:
        return evaluate
    return lambda batch, _: evaluate(batch)
