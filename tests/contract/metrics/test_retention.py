"""Points that are too old go, and no late spool brings them back; what sums them up stays."""

from __future__ import annotations

import asyncio

import pytest
from support.clocks import ManualClock
from support.services.metrics import Metrics, blocks_of

from resolute.errors import InvalidArgumentError
from resolute_metrics.store.deletion import delete_expired
from resolute_serving.database.retention import RetentionSweeper, days_from_environment

_DAY = 86_400.0


def _sweep(metrics: Metrics, *, now: float, days: float = 30.0) -> None:
    async def sweep() -> None:
        await RetentionSweeper(metrics.database, delete_expired, days=days, clock=ManualClock(now)).sweep()

    asyncio.run(sweep())


def test_points_go_with_age_and_their_summary_and_best_stay(alone: Metrics) -> None:
    # Times are ten seconds a sequence.
    reports = [("validation", step, {"accuracy": step / 1000}) for step in range(600)]
    alone.report(*reports)
    _sweep(alone, now=5990.0 + 30 * _DAY)
    assert len(alone.points("accuracy", group="validation")) == 600
    _sweep(alone, now=5991.0 + 30 * _DAY)
    assert alone.points("accuracy", group="validation") == []
    assert alone.summaries()["validation", "accuracy"].count == 600
    assert alone.best().experiment_best.steps == 599


def test_a_late_spool_brings_nothing_back_and_goes_on_where_it_was(alone: Metrics) -> None:
    reports = [("training", step, {"loss": float(step)}) for step in range(10)]
    alone.report(*reports)
    _sweep(alone, now=1e9)
    assert alone.send(blocks_of(reports), count=10).next_sequence == 10
    assert alone.points("loss") == []
    alone.report(("training", 10, {"loss": 10.0}), first=10)
    assert alone.points("loss") == [(10, 10.0)]
    assert alone.summaries()["training", "loss"].count == 11


def test_a_trial_that_still_reports_keeps_everything(alone: Metrics) -> None:
    alone.report(*[("training", step, {"loss": 1.0}) for step in range(5)])
    _sweep(alone, now=_DAY, days=30.0)
    assert len(alone.points("loss")) == 5


@pytest.mark.parametrize("text", ["-1", "soon", "inf", "nan"])
def test_a_retention_that_is_no_number_of_days_is_named(text: str) -> None:
    assert days_from_environment({}, "DAYS") == 0.0
    assert days_from_environment({"DAYS": "1.5"}, "DAYS") == 1.5
    with pytest.raises(InvalidArgumentError, match="DAYS is"):
        days_from_environment({"DAYS": text}, "DAYS")
