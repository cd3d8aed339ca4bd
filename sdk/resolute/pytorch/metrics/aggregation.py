"""Aggregates the metrics of batches to those of a training interval or of a validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from resolute.pytorch.metrics.reducers import Reducer, reduce_values

Metrics = dict[str, Any]
Allgather = Callable[[Any], list[Any]]


def keep(value: Any) -> Any:
    """Copies a value of a batch, without waiting for a device.

    Numbers of the CPU are read at once, which is faster than to keep their tensors.
    """
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_cpu:
        return value.item() if value.numel() == 1 else value.detach().clone()
    return value.detach().clone()


def batch_metrics(returned: Any) -> Metrics:
    """Converts the result of ``train_batch`` into metrics by name.

    Raises:
        TypeError: It is neither a tensor nor a dict.
    """
    if type(returned) is dict or isinstance(returned, Mapping):
        return {name: keep(value) for name, value in returned.items()}
    if isinstance(returned, torch.Tensor):
        return {"loss": keep(returned)}
    raise TypeError(
        f"train_batch() returned a {type(returned).__name__}; a dict of metrics, or the loss as a tensor, "
        "was expected"
    )


class TrainingMetrics:
    """Metrics of batches since the last report.

    Args:
        allgather: Collects every rank's value on all ranks.
        average: Whether the metrics are means over ranks, else the chief's.
    """

    def __init__(self, allgather: Allgather, *, average: bool = True) -> None:
        self._allgather = allgather
        self._average = average
        self.batches: list[Metrics] = []

    def add(self, returned: Any) -> None:
        """Adds the result of ``train_batch``.

        Raises:
            TypeError: It is neither a tensor nor a dict.
            ValueError: It has other keys than the batch before.
        """
        metrics = batch_metrics(returned)
        if self.batches and metrics.keys() != self.batches[-1].keys():
            raise ValueError(
                "training metrics must have the same names in every batch: train_batch() returned "
                f"{sorted(metrics)} after {sorted(self.batches[-1])}"
            )
        self.batches.append(metrics)

    def take(self) -> tuple[Metrics, list[Metrics]]:
        """Returns means over the batches and the metrics of each, then resets; every rank calls it."""
        mine = [{name: _to_host(value) for name, value in batch.items()} for batch in _read(self.batches)]
        self.batches = []
        ranks = self._allgather(mine) if self._average else [mine]
        batches = [_mean_of_ranks(of_ranks) for of_ranks in zip(*ranks, strict=True)]
        names = batches[0].keys() if batches else ()
        return {name: _mean([batch[name] for batch in batches]) for name in names}, batches


def _read(batches: list[Metrics]) -> list[Metrics]:
    """Copies numbers from the device, all values of a metric at once."""
    read = [dict(batch) for batch in batches]
    for name in batches[0] if batches else ():
        values = [batch[name] for batch in batches]
        if all(isinstance(value, torch.Tensor) and value.numel() == 1 for value in values):
            numbers = torch.stack([value.reshape(()) for value in values]).tolist()
            for batch, number in zip(read, numbers, strict=True):
                batch[name] = number
    return read


def _to_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.item() if value.numel() == 1 else _array(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    return value.item() if isinstance(value, np.generic) else value


def _array(tensor: torch.Tensor) -> Any:
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def _mean_of_ranks(batches: Sequence[Metrics]) -> Metrics:
    # Of the ranks that share a copy of the model, some may have nothing to say.
    saying = [batch for batch in batches if batch] or batches[:1]
    if len(saying) == 1:
        return dict(saying[0])
    return {name: _mean([batch.get(name) for batch in saying]) for name in saying[0]}


def _mean(values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    if not present:
        return None
    if all(isinstance(value, (int, float, bool)) for value in present):
        return float(np.mean(present))
    if all(isinstance(value, np.ndarray) for value in present):
        return np.mean(present, axis=0)
    return present[-1]  # what is no number has no mean: the latest stands for all


class ValidationMetrics:
    """Metrics of the batches of one validation.

    Args:
        reducers: One for all metrics, or one for each by name.
        allgather: Collects every rank's value on all ranks.
    """

    def __init__(self, reducers: Reducer | Mapping[str, Reducer], allgather: Allgather) -> None:
        self._reducers = reducers
        self._allgather = allgather
        self._batches: list[Metrics] = []

    def add(self, returned: Any) -> Metrics:
        """Adds the result of ``evaluate_batch``.

        Raises:
            TypeError: It is no dict.
            ValueError: It has other keys than the batch before.
        """
        if not isinstance(returned, Mapping):
            raise TypeError(
                f"evaluate_batch() must return a dict of metrics by name, not a {type(returned).__name__}"
            )
        metrics = {name: keep(value) for name, value in returned.items()}
        if self._batches and metrics.keys() != self._batches[0].keys():
            raise ValueError(
                "Validation metric names must match across all batches of data: evaluate_batch() returned "
                f"{sorted(metrics)} after {sorted(self._batches[0])}"
            )
        self._batches.append(metrics)
        return metrics

    def reduce(self) -> tuple[Metrics, int]:
        """Reduces over batches and ranks; every rank calls it.

        Returns:
            The metrics and the number of batches of all ranks.

        Raises:
            ValueError: ``evaluation_reducer()`` names other metrics than there are, or a metric is nothing
                that can be reduced.
        """
        mine = [{name: _to_host(value) for name, value in batch.items()} for batch in _read(self._batches)]
        names = list(mine[0]) if mine else []
        reduced = {name: self._over_batches(name, [batch[name] for batch in mine]) for name in names}
        if mine:
            self._check_reducers(names)
        # A rank whose shard is empty has nothing to say; there may be fewer batches than ranks.
        ranks = [(values, count) for values, count in self._allgather((reduced, len(mine))) if count]
        counts = [count for _, count in ranks]
        if len(ranks) == 1:
            return {name: _plain(value) for name, value in ranks[0][0].items()}, counts[0]
        metrics = {
            name: _plain(reduce_values(self._of(name), [values[name] for values, _ in ranks], counts))
            for name in (ranks[0][0] if ranks else ())
        }
        return metrics, sum(counts)

    def _over_batches(self, name: str, values: list[Any]) -> Any:
        try:
            return reduce_values(self._of(name), values)
        except (TypeError, ValueError) as failure:
            raise ValueError(
                f"the validation metric {name!r} cannot be reduced over batches by {self._of(name).name}: "
                f"evaluate_batch() must return numbers, or arrays of one shape, and it returned {values[0]!r}"
            ) from failure

    def _of(self, name: str) -> Reducer:
        if isinstance(self._reducers, Reducer):
            return self._reducers
        return self._reducers.get(name, Reducer.AVG)

    def _check_reducers(self, names: list[str]) -> None:
        if isinstance(self._reducers, Reducer) or set(self._reducers) == set(names):
            return
        raise ValueError(
            f"evaluation_reducer() gives reducers of {sorted(self._reducers)}, and the metrics are "
            f"{sorted(names)}: they must be the same"
        )


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def reportable(metrics: Mapping[str, Any]) -> Metrics:
    """Returns the metrics in the form of a report: arrays as lists."""
    return {
        name: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        for name, value in ((name, _to_host(value)) for name, value in metrics.items())
    }
