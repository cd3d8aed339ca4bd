"""How far trials have come, as the experiments service asks it."""

from __future__ import annotations

import uuid

from support.services.metrics import Metrics

from resolute.api.metrics.v1 import metrics_service_pb2 as api


def last(metrics: Metrics, *trials: str) -> dict[str, tuple[int, int]]:
    """Run and steps by trial."""
    response = metrics.call("ListLastSteps", api.ListLastStepsRequest(trial_ids=trials))
    return {one.trial_id: (one.run, one.steps) for one in response.trials}


def test_training_and_validation_count_and_groups_of_the_script_do_not(alone: Metrics) -> None:
    silent = str(uuid.uuid4())
    alone.report(("training", 7, {"loss": 1.0}), ("mine", 900, {"x": 1.0}))
    assert last(alone, alone.trial, silent) == {alone.trial: (1, 7)}
    alone.report(("validation", 9, {"accuracy": 0.5}), first=2)
    assert last(alone, alone.trial) == {alone.trial: (1, 9)}
    assert last(alone) == {}


def test_a_later_run_that_has_reported_counts_though_it_has_fewer_steps(alone: Metrics) -> None:
    alone.report(("training", 50, {"loss": 1.0}))
    alone.report(("training", 31, {"loss": 1.0}), run=2)
    assert last(alone, alone.trial) == {alone.trial: (2, 31)}


def test_the_time_is_that_of_the_newest_report(alone: Metrics) -> None:
    alone.report(("training", 1, {"loss": 1.0}))
    (found,) = alone.call("ListLastSteps", api.ListLastStepsRequest(trial_ids=[alone.trial])).trials
    (report,) = alone.call("ListReports", api.ListReportsRequest(trial_id=alone.trial)).reports
    assert found.time == report.time.ToMicroseconds() / 1e6
