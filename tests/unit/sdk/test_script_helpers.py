from __future__ import annotations

import enum
import json
from typing import Any

import numpy as np
import pytest

from resolute.script_helpers import calculate_batch_sizes, is_overridden, json_encode, merge_dicts
from resolute.trial_errors import InvalidExperimentException


@pytest.mark.parametrize(("slots", "sizes"), [(0, (10, 10)), (1, (10, 10)), (3, (3, 9)), (5, (2, 10))])
def test_slots_share_a_batch(slots: int, sizes: tuple[int, int]) -> None:
    assert calculate_batch_sizes({"global_batch_size": 10}, slots, "MyTrial") == sizes


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        ({}, "MyTrial needs the hyperparameter global_batch_size"),
        ({"global_batch_size": "8"}, "is '8'; a whole number was expected"),
        ({"global_batch_size": 3}, "is 3, and the trial has 4 slots"),
    ],
)
def test_a_batch_that_cannot_be_shared_is_refused(hparams: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidExperimentException, match=message):
        calculate_batch_sizes(hparams, 4, "MyTrial")


class Parent:
    def method(self) -> None: ...


class Child(Parent):
    def method(self) -> None: ...


def test_a_method_of_a_child_overrides_that_of_its_parent() -> None:
    assert is_overridden(Child().method, Parent)
    assert is_overridden(Child.method, Parent)
    assert not is_overridden(Parent().method, Parent)
    assert not is_overridden(Child().method, Child)


def test_what_json_lacks_is_written_so_that_every_reader_takes_it() -> None:
    class Color(enum.Enum):
        RED = 1

    class Own:
        def __json__(self) -> Any:
            return {"own": float("inf")}

    value = {"a": [float("nan"), -float("inf"), 1.5], "b": np.array([1, 2]), "c": np.float32(0.5)}
    written = json_encode({**value, "d": Color.RED, "e": Own()}, sort_keys=True)
    assert json.loads(written) == {
        "a": ["NaN", "-Infinity", 1.5],
        "b": [1, 2],
        "c": 0.5,
        "d": "RED",
        "e": {"own": "Infinity"},
    }
    with pytest.raises(TypeError):
        json_encode(object())


def test_dicts_merge_all_the_way_down() -> None:
    merged = merge_dicts({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}, "d": {"e": 5}})
    assert merged == {"a": {"b": 1, "c": 4}, "d": {"e": 5}}
