"""Lists of summaries: filters, orders and pages."""

from __future__ import annotations

import math
import uuid
from typing import Any

import pytest
from support.services.metrics import Metrics

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import summary_pb2
from resolute.errors import InvalidArgumentError
from resolute_metrics.queries import summary_pages

NAMES = [("a", "z"), ("b", "x"), ("b", "y")]


def listed(metrics: Metrics, *, size: int = 1000, **fields: Any) -> list[summary_pb2.Summary]:
    """The summaries that match, from all pages."""
    request = api.ListSummariesRequest(page_size=size, **fields)
    pages = metrics.pages("ListSummaries", request, "summaries")
    assert all(len(page) == size for page in pages[:-1])
    return [one for page in pages for one in page]


@pytest.fixture
def trials(metrics: Metrics) -> list[str]:
    """Five trials of the experiment, by UUID, that reported three metrics each."""
    found = sorted(str(uuid.uuid4()) for _ in range(5))
    for number, trial in enumerate(found):
        value = float(number)
        metrics.report(("b", number, {"y": value, "x": -value}), ("a", 7, {"z": value}), trial=trial)
    return found


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_they_come_by_trial_group_and_name(
    metrics: Metrics, trials: list[str], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_pages, "_TRIALS_AT_ONCE", 2)
    everything = [(trial, *name) for trial in trials for name in NAMES]
    for wanted in (
        {"experiment_id": metrics.experiment},
        {"trial_ids": [*reversed(trials), str(uuid.uuid4())]},
    ):
        found = listed(metrics, size=size, **wanted)
        assert [(one.trial_id, one.group, one.name) for one in found] == everything


def test_filters_that_are_set_must_all_match(metrics: Metrics, trials: list[str]) -> None:
    found = listed(metrics, experiment_id=metrics.experiment, trial_ids=trials[:2], names=["x", "z"])
    assert [(one.trial_id, one.name) for one in found] == [
        (trial, name) for trial in trials[:2] for name in ("z", "x")
    ]
    assert {one.name for one in listed(metrics, trial_ids=trials, groups=["b", "c"])} == {"x", "y"}
    assert listed(metrics, experiment_id=str(uuid.uuid4()), trial_ids=trials) == []


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("name, trial_id desc", lambda number, name: (name, -number)),
        ("last_number", lambda number, name: (-number if name == "x" else number, number, name)),
        ("max desc, name", lambda number, name: (number if name == "x" else -number, name, number)),
        (
            "group desc, last_steps desc",
            lambda number, name: (name == "z", 0 if name == "z" else -number, number),
        ),
    ],
)
def test_they_can_be_ordered(metrics: Metrics, trials: list[str], size: int, order: str, key: Any) -> None:
    found = listed(metrics, size=size, experiment_id=metrics.experiment, order_by=order)
    shown = [(trials.index(one.trial_id), one.name) for one in found]
    expected = [(number, name) for number in range(len(trials)) for _, name in NAMES]
    assert sorted(shown) == sorted(expected)
    keys = [key(number, name)[:2] for number, name in shown]
    assert keys == sorted(keys)


@pytest.mark.parametrize("direction", ["", " desc"])
def test_what_has_no_number_comes_last(metrics: Metrics, direction: str) -> None:
    values = {"a": math.nan, "b": "text", "c": 1.0, "d": math.inf}
    metrics.report(("training", 1, values))
    found = listed(metrics, size=1, trial_ids=[metrics.trial], order_by=f"last_number{direction}")
    assert [one.name for one in found][2:] == ["a", "b"]
    assert {one.name for one in found[:2]} == {"c", "d"}


def test_a_page_of_long_names_ends_before_it_is_too_large_for_a_message(metrics: Metrics) -> None:
    names = {f"{'x' * 490}{number:05}": 1.0 for number in range(900)}
    for group in range(9):
        metrics.report((f"g{group}", 1, names), first=group)
    request = api.ListSummariesRequest(trial_ids=[metrics.trial], page_size=1000)
    pages = metrics.pages("ListSummaries", request, "summaries")
    assert sum(map(len, pages)) == 8100
    assert max(sum(one.ByteSize() for one in page) for page in pages) < 4 << 20


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "neither trial_ids nor experiment_id is set"),
        ({"trial_ids": ["12"]}, "must be a UUID"),
        ({"experiment_id": "12"}, "must be a UUID"),
        ({"experiment_id": str(uuid.uuid4()), "names": ["x"] * 1001}, "names has 1001 entries"),
        ({"experiment_id": str(uuid.uuid4()), "order_by": "mean"}, "order_by has 'mean'"),
    ],
)
def test_wrong_requests_are_refused(metrics: Metrics, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        listed(metrics, **fields)
