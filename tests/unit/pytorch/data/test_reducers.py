from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from resolute.pytorch import MetricReducer, Reducer, _simple_reduce_metrics
from resolute.pytorch.metrics.aggregation import TrainingMetrics, ValidationMetrics, reportable
from resolute.pytorch.metrics.reducers import ReducerContext


def alone(value: Any) -> list[Any]:
    return [value]


class Span(MetricReducer):
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.values: list[float] = []

    def per_slot_reduce(self) -> Any:
        return (min(self.values), max(self.values))

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        return {
            "low": min(low for low, _ in per_slot_metrics),
            "high": max(high for _, high in per_slot_metrics),
        }


def test_a_function_gets_the_values_of_all_slots_in_the_order_of_one() -> None:
    context = ReducerContext(lambda mine: [mine, [["b0", "b1"]]])
    reducer = context.wrap_reducer("".join, name="joined")
    for value in ("a0", "a1", "a2"):
        reducer.update(value)
    assert context.reduce_metrics(for_training=True) == {"joined": "a0b0a1b1a2"}
    context.reset_reducers()
    reducer.update("x")
    assert context.reduce_metrics(for_training=False) == {"joined": "xb0b1"}


def test_a_class_may_give_several_metrics_for_one_kind_of_batch() -> None:
    context = ReducerContext(alone)
    span = context.wrap_reducer(Span(), for_training=False)
    span.values = [1.0, 3.0]
    assert context.reduce_metrics(for_training=True) == {}
    assert context.reduce_metrics(for_training=False) == {"low": 1.0, "high": 3.0}


def test_mistakes_name_the_reducer() -> None:
    context = ReducerContext(alone)
    span = context.wrap_reducer(Span(), name="span")
    with pytest.raises(AssertionError, match="wrapped before"):
        context.wrap_reducer(span)
    with pytest.raises(ValueError, match="'span' failed in per_slot_reduce"):
        context.reduce_metrics(for_training=True)
    span.values = [1.0]
    with pytest.raises(AssertionError, match="gave a dict"):
        context.reduce_metrics(for_training=True)
    unnamed = ReducerContext(alone)
    unnamed.wrap_reducer(len)
    with pytest.raises(AssertionError, match="without a name"):
        unnamed.reduce_metrics(for_training=True)
    with pytest.raises(AssertionError, match="a function or a MetricReducer"):
        context.wrap_reducer(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reducer", "value"), [(Reducer.AVG, 2.5), (Reducer.SUM, 5.0), (Reducer.MAX, 4.0), (Reducer.MIN, 1.0)]
)
def test_values_are_reduced(reducer: Reducer, value: float) -> None:
    assert _simple_reduce_metrics(reducer, [4.0, 1.0]) == value
    if reducer is Reducer.AVG:
        assert _simple_reduce_metrics(reducer, [4.0, 1.0], num_batches=[3, 1]) == 3.25


def test_training_metrics_are_means_over_batches_and_ranks() -> None:
    other = [{"loss": 3.0, "size": 1, "rare": None}, {"loss": 5.0, "size": 3, "rare": 4.0}]
    metrics = TrainingMetrics(lambda mine: [mine, other])
    metrics.add({"loss": torch.tensor(1.0), "size": 1, "rare": None})
    metrics.add({"loss": torch.tensor(1.0), "size": 1, "rare": None})
    averages, batches = metrics.take()
    assert averages == {"loss": 2.5, "size": 1.5, "rare": 4.0}
    assert batches == [{"loss": 2.0, "size": 1.0, "rare": None}, {"loss": 3.0, "size": 2.0, "rare": 4.0}]
    assert metrics.batches == []


def test_a_tensor_is_the_loss_and_is_kept_as_it_was() -> None:
    metrics = TrainingMetrics(alone)
    running = torch.tensor(1.0)
    metrics.add(running)
    running += 5
    vector = torch.tensor([1.0, 2.0])
    other = TrainingMetrics(alone)
    other.add({"v": vector})
    vector += 1
    assert metrics.take()[0] == {"loss": 1.0}
    assert reportable(other.take()[0]) == {"v": [1.0, 2.0]}


def test_training_metrics_keep_their_names() -> None:
    metrics = TrainingMetrics(alone)
    metrics.add({"loss": 1.0})
    with pytest.raises(ValueError, match=r"\['cost'\] after \['loss'\]"):
        metrics.add({"cost": 1.0})
    with pytest.raises(TypeError, match="train_batch"):
        metrics.add("loss")


def test_validation_metrics_are_weighted_by_batches_and_a_rank_may_have_none() -> None:
    metrics = ValidationMetrics(Reducer.AVG, lambda mine: [mine, ({"a": 10.0}, 1), ({}, 0)])
    for value in (1.0, 2.0, 3.0):
        metrics.add({"a": torch.tensor(value)})
    assert metrics.reduce() == ({"a": 4.0}, 4)


def test_each_validation_metric_may_have_its_reducer() -> None:
    metrics = ValidationMetrics({"a": Reducer.MAX, "b": Reducer.SUM}, alone)
    metrics.add({"a": 1, "b": np.float32(1)})
    metrics.add({"a": 3, "b": np.float32(2)})
    assert metrics.reduce()[0] == {"a": 3, "b": 3.0}
    unknown = ValidationMetrics({"a": Reducer.MAX}, alone)
    unknown.add({"a": 1, "b": 1})
    with pytest.raises(ValueError, match="must be the same"):
        unknown.reduce()


def test_validation_metrics_that_make_no_sense_are_refused() -> None:
    metrics = ValidationMetrics(Reducer.AVG, alone)
    with pytest.raises(TypeError, match="must return a dict"):
        metrics.add(1.0)
    metrics.add({"a": 1})
    with pytest.raises(ValueError, match="Validation metric names must match"):
        metrics.add({"b": 1})
