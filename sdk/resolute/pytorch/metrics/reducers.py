"""Metrics that are reduced over all batches and all slots at once."""

from __future__ import annotations

import abc
import enum
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class Reducer(enum.Enum):
    """The function that reduces the values of a validation metric to one.

    Examples:
        >>> from resolute import pytorch
        >>> pytorch.Reducer.MAX.name
        'MAX'
    """

    AVG = 1
    """Mean over batches, each of the same weight."""
    SUM = 2
    MAX = 3
    MIN = 4


class MetricReducer(abc.ABC):
    """A metric that is accumulated on each slot and then reduced over slots; wrap it with the context.

    Examples:
        >>> from resolute import pytorch
        >>> class Largest(pytorch.MetricReducer):
        ...     def __init__(self):
        ...         self.reset()
        ...     def reset(self):
        ...         self.largest = float("-inf")
        ...     def update(self, value):
        ...         self.largest = max(self.largest, value)
        ...     def per_slot_reduce(self):
        ...         return self.largest
        ...     def cross_slot_reduce(self, per_slot_metrics):
        ...         return max(per_slot_metrics)
        >>> with pytorch.init() as context:
        ...     largest = context.wrap_reducer(Largest(), name="largest")
        ...     largest.update(0.5)
    """

    @abc.abstractmethod
    def reset(self) -> None:
        """Resets the reducer. Called before each period of training metrics, and before a validation."""

    @abc.abstractmethod
    def per_slot_reduce(self) -> Any:
        """Returns the values accumulated on this slot. They must be picklable."""

    @abc.abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """Returns the metric, or a dict of metrics.

        Args:
            per_slot_metrics: What ``per_slot_reduce`` returned on each slot, by rank.
        """


class FunctionReducer(MetricReducer):
    """A metric that a function computes from all values that the trial passed to ``update``.

    Args:
        function: Takes the values of all slots. The values of the slots alternate, in the order in which one
            slot with all batches would have them.
    """

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self.function = function
        self.values: list[Any] = []

    def update(self, value: Any) -> None:
        """Adds the value of one batch."""
        self.values.append(value)

    def reset(self) -> None:
        """Removes all values."""
        self.values = []

    def per_slot_reduce(self) -> list[Any]:
        """Returns the values of this slot."""
        return self.values

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """Applies the function to the values of all slots."""
        missing = object()
        turns = itertools.zip_longest(*per_slot_metrics, fillvalue=missing)
        return self.function([value for turn in turns for value in turn if value is not missing])


@dataclass(frozen=True, slots=True)
class _Wrapped:
    reducer: MetricReducer
    name: str | None
    for_training: bool
    for_validation: bool

    def applies(self, *, for_training: bool) -> bool:
        return self.for_training if for_training else self.for_validation

    def title(self) -> str:
        return self.name or type(self.reducer).__name__


class ReducerContext:
    """The reducers of a trial.

    Args:
        allgather_fn: Collects every rank's value on all ranks.
    """

    def __init__(self, allgather_fn: Callable[[Any], list[Any]] | None = None) -> None:
        self._allgather = allgather_fn or (lambda value: [value])
        self._wrapped: list[_Wrapped] = []

    def wrap_reducer(
        self,
        reducer: Callable[[list[Any]], Any] | MetricReducer,
        name: str | None = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> Any:
        """Registers a reducer; its metrics are reported beside those that the trial returns.

        Args:
            reducer: A ``MetricReducer``; or a function of all values, for which the returned object has a
                method ``update(value)``.
            name: Name of the metric. None if the reducer gives a dict of metrics.
            for_training: Whether it is reset and reduced with training metrics.
            for_validation: Whether with validation metrics.

        Returns:
            The reducer to be updated.

        Raises:
            AssertionError: It is neither, or it was wrapped before.
        """
        assert callable(reducer) or isinstance(reducer, MetricReducer), (
            f"wrap_reducer takes a function or a MetricReducer, not a {type(reducer).__name__}"
        )
        wrapped = reducer if isinstance(reducer, MetricReducer) else FunctionReducer(reducer)
        assert all(known.reducer is not wrapped for known in self._wrapped), "this reducer was wrapped before"
        self._wrapped.append(_Wrapped(wrapped, name, for_training, for_validation))
        return wrapped

    def reset_reducers(self, for_training: bool | None = None) -> None:
        """Resets the reducers.

        Args:
            for_training: Only those of training, or only those of validation; None for all.
        """
        for wrapped in self._wrapped:
            if for_training is None or wrapped.applies(for_training=for_training):
                wrapped.reducer.reset()

    def reduce_metrics(self, for_training: bool) -> dict[str, Any]:
        """Reduces over all slots; every rank calls it and gets the metrics.

        Args:
            for_training: Whether the metrics of training are wanted, else those of validation.

        Raises:
            ValueError: A reducer failed; the message names it.
            AssertionError: A reducer without a name gave no dict, or one with a name gave a dict.
        """
        active = [wrapped for wrapped in self._wrapped if wrapped.applies(for_training=for_training)]
        if not active:
            return {}
        mine = [_named(wrapped, "per_slot_reduce", wrapped.reducer.per_slot_reduce) for wrapped in active]
        slots = self._allgather(mine)
        metrics: dict[str, Any] = {}
        for wrapped, *values in zip(active, *slots, strict=True):
            across = functools.partial(wrapped.reducer.cross_slot_reduce, values)
            reduced = _named(wrapped, "cross_slot_reduce", across)
            metrics.update(_as_metrics(wrapped, reduced))
        return metrics

    def function_reducer_values(self) -> list[list[Any]] | None:
        """Returns the values of training's function reducers; None if there are reducers of other kinds."""
        active = [wrapped.reducer for wrapped in self._wrapped if wrapped.for_training]
        if not all(isinstance(reducer, FunctionReducer) for reducer in active):
            return None
        return [reducer.values for reducer in active if isinstance(reducer, FunctionReducer)]

    def restore_function_reducer_values(self, values: Sequence[list[Any]]) -> None:
        """Restores the values of training's function reducers."""
        active = [wrapped.reducer for wrapped in self._wrapped if wrapped.for_training]
        for reducer, held in zip(active, values, strict=False):
            if isinstance(reducer, FunctionReducer):
                reducer.values = list(held)


def _named(wrapped: _Wrapped, method: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as failure:
        raise ValueError(f"the reducer {wrapped.title()!r} failed in {method}: {failure}") from failure


def _as_metrics(wrapped: _Wrapped, reduced: Any) -> dict[str, Any]:
    if wrapped.name is None:
        assert isinstance(reduced, dict), (
            f"the reducer {wrapped.title()!r} was wrapped without a name, so it must give a dict of metrics, "
            f"not a {type(reduced).__name__}"
        )
        return reduced
    assert not isinstance(reduced, dict), (
        f"the reducer of the metric {wrapped.name!r} gave a dict; wrap it with name=None for several metrics"
    )
    return {wrapped.name: reduced}


def reduce_values(reducer: Reducer, metrics: Iterable[Any], num_batches: Sequence[int] | None = None) -> Any:
    """Reduces the values of one metric.

    Args:
        reducer: How.
        metrics: Its values: numbers or arrays.
        num_batches: Weight of each value in a mean; None for equal weights.
    """
    stacked = np.asarray(list(metrics))
    if reducer is Reducer.AVG:
        if num_batches is not None and sum(num_batches) != 0:
            return np.average(stacked, axis=0, weights=num_batches)
        return np.mean(stacked, axis=0)
    if reducer is Reducer.SUM:
        return np.sum(stacked, axis=0)
    if reducer is Reducer.MAX:
        return np.max(stacked, axis=0)
    return np.min(stacked, axis=0)
