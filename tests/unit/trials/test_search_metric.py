"""The metric that an experiment decides by: when a validation without it is a fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from resolute import core
from resolute.trials.search_metric import SearcherMetric


def metric(*, time_driven: bool, **searcher: Any) -> SearcherMetric:
    connection = SimpleNamespace(time_driven=time_driven, searcher_metric="loss", smaller_is_better=True)
    trial = SimpleNamespace(_config={"searcher": {"metric": "loss", **searcher}})
    info = SimpleNamespace(connection=connection, local=None, trial=trial, task_type="TRIAL")
    found = SearcherMetric.of(cast("core.Context", SimpleNamespace(info=info)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("time_driven", "name"), [(False, "single"), (True, "random"), (True, "adaptive_asha"), (False, "grid")]
)
def test_a_search_that_compares_or_sets_lengths_needs_it(time_driven: bool, name: str) -> None:
    needed = metric(time_driven=time_driven, name=name)
    assert needed.pick({"loss": 0.5}) == 0.5
    with pytest.raises(RuntimeError, match="the validation gave accuracy"):
        needed.pick({"accuracy": 0.9})


def test_a_single_trial_that_ends_with_its_script_may_go_without() -> None:
    free = metric(time_driven=True, name="single")
    assert free.pick({"accuracy": 0.9}) is None
    assert free.pick({"loss": 0.5}) == 0.5
    with pytest.raises(RuntimeError, match="must be a scalar"):
        free.pick({"loss": "low"})
