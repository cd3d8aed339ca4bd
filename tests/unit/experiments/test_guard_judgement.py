"""Which values a guard calls bad, and which batches are left out then."""

from __future__ import annotations

import math
import random
from statistics import median
from typing import Any

import pytest
from unit.experiments.exits.test_repetition import run_that_failed

from resolute_experiments.guard.judgement import Judge
from resolute_experiments.guard.skipping import skipped_batches


def guard(**fields: Any) -> dict[str, Any]:
    return {"metric": "loss", "nan": True, "above": None, "skip_batches": 0, **fields}


def faults(values: list[float], **fields: Any) -> dict[int, str]:
    judge = Judge(guard(**fields))
    found = {number: judge.fault(value) for number, value in enumerate(values)}
    return {number: fault for number, fault in found.items() if fault}


def test_what_is_no_finite_number_is_bad_unless_that_is_allowed() -> None:
    values = [1.0, math.nan, math.inf, -math.inf, 2.0]
    assert faults(values) == {1: "loss is nan", 2: "loss is inf", 3: "loss is -inf"}
    assert faults(values, nan=False, above=5) == {}


def test_a_bound_is_passed_only_above_it() -> None:
    assert faults([4.9, 5, 5.1], above=5) == {2: "loss is 5.1, above 5"}


def test_a_spike_is_measured_by_the_median_of_good_values_before() -> None:
    values = [*([2.0, 1.0, 3.0] * 10), 6.0, 6.1, 6.1, 2.0]
    text = "loss is 6.1, more than 3 times the median 2 of 31 values before"
    assert faults(values, above="3 x median of 200") == {31: text, 32: text}, "spikes move no median"


def test_a_median_counts_once_a_tenth_of_its_values_is_there() -> None:
    assert faults([1.0] * 19 + [100.0], above="3 x median of 200") == {}
    assert list(faults([1.0] * 20 + [100.0], above="3 x median of 200")) == [20]
    assert list(faults([1.0, 1.0, 100.0], above="3 x median of 2")) == [2]


@pytest.mark.parametrize("size", [2, 5, 8])
def test_a_median_is_of_the_last_good_values(size: int) -> None:
    chance = random.Random(size)
    judge, good = Judge(guard(above=f"2 x median of {size}")), list[float]()
    for _ in range(500):
        value = chance.choice([1.0, 2.0, 3.0, chance.random(), 100.0])
        usual = median(good[-size:]) if len(good) >= min(size, 5) else math.inf
        assert bool(judge.fault(value)) == (value > 2 * usual)
        if value <= 2 * usual:
            good.append(value)


def test_losses_below_zero_have_a_bound_as_far_above() -> None:
    assert faults([-2.0] * 10 + [-1.0, 1.9, 2.0, 2.1], above="3 x median of 50") == {
        13: "loss is 2.1, more than 3 times the median -2 of 13 values before"
    }


@pytest.mark.parametrize(
    ("kept", "bad", "window"),
    [(400, 412, (400, 450)), (300, 412, (362, 412)), (0, 20, (0, 50)), (None, 20, (0, 50))],
)
def test_the_batches_before_the_bad_report_are_left_out(
    kept: int | None, bad: int, window: tuple[int, int]
) -> None:
    ended = run_that_failed(1, "", kept_steps=kept, bad_steps=bad)
    runs = [ended, run_that_failed(2, "", kept_steps=500)]
    (skipped,) = skipped_batches(guard(skip_batches=50), runs)
    assert (skipped.first, skipped.end) == window
    assert skipped_batches(guard(), runs) == skipped_batches(None, runs) == []
