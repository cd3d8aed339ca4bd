from __future__ import annotations

import sys
from typing import Any

import pytest

from resolute.pytorch import Batch, Epoch, TrainUnit


@pytest.mark.parametrize(
    ("unit", "step", "due"),
    [
        (Batch(3), 0, 3),
        (Batch(3), 3, 6),
        (Batch(3), 4, 6),
        (Batch(0), 4, 5),
        (Epoch(1), 0, 5),
        (Epoch(2), 5, 10),
        (Epoch(2), 10, 20),
        (Batch([2, 7]), 2, 7),
        (Batch([2, 7]), 7, sys.maxsize),
        (Epoch({1, 3}), 5, 15),
        (Batch(range(0, 9, 4)), 1, 4),
    ],
)
def test_an_interval_says_when_it_is_due_next(unit: TrainUnit, step: int, due: int) -> None:
    assert unit.next_step(step, 5) == due


@pytest.mark.parametrize("unit", [Batch(3), Batch(0), Batch([1, 4]), Batch((2,)), Epoch(2)])
def test_next_step_and_should_stop_agree(unit: TrainUnit) -> None:
    size = 5 if isinstance(unit, Epoch) else 1
    due = [step for step in range(1, 41) if step % size == 0 and unit.should_stop(step // size)]
    found, step = [], 0
    while (step := unit.next_step(step, 5)) <= 40:
        found.append(step)
    assert found == due


@pytest.mark.parametrize(
    ("length", "unit"),
    [
        ({"batches": 7}, Batch(7)),
        ({"epochs": 2}, Epoch(2)),
        ({"records": 100}, Batch(6)),
        ({"records": 3}, Batch(1)),
    ],
)
def test_lengths_of_a_config_become_units(length: dict[str, int], unit: TrainUnit) -> None:
    assert TrainUnit.from_config(length, 16) == unit


def test_records_need_a_batch_size() -> None:
    with pytest.raises(ValueError, match="global_batch_size"):
        TrainUnit.from_config({"records": 100}, None)


@pytest.mark.parametrize("value", ["3", 1.5, True, None, [1, "2"]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="a number, or a list of numbers"):
        Batch(value)


def test_a_list_is_no_length() -> None:
    with pytest.raises(TypeError, match="is not a length"):
        Epoch([1, 2]).steps(5)
