"""Reports of a trial that reaches its limit of bytes: they are acknowledged, counted and not kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from support.services.metrics import Metrics, metrics_on

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute_metrics.limits import Limits
from resolute_metrics.store.deletion import delete_expired
from resolute_metrics.store.schema import INTAKE
from resolute_serving.ingestion.byte_limits import ByteLimits

REPORT = 2 * 8 + 8
"""Bytes of a report of one number, as they are counted."""


@pytest.fixture
def metrics(database_url: str) -> Iterator[Metrics]:
    """A service that keeps three reports of one number of each trial."""
    limits = Limits(bytes=ByteLimits(prefix="RESOLUTE_METRICS", trial=3 * REPORT, workspace=0))
    with metrics_on(database_url, limits=limits) as service:
        yield service


def losses(metrics: Metrics, *steps: int, first: int = 0) -> api.IngestReportsResponse:
    return metrics.report(*(("training", step, {"loss": float(step)}) for step in steps), first=first)


def test_reports_beyond_the_limit_are_dropped_and_the_answer_says_so(metrics: Metrics) -> None:
    assert not losses(metrics, 1, 2).HasField("dropped")
    answer = losses(metrics, 3, 4, 5, first=2)
    assert (answer.next_sequence, list(answer.refusals)) == (5, [])
    assert answer.dropped == api.DroppedReports(
        trial_id=metrics.trial,
        reports=2,
        bytes=2 * REPORT,
        explanation="2 reports of this trial (48 B) were dropped so far: "
        "the trial has reached 72 B (RESOLUTE_METRICS_TRIAL_BYTES)",
    )
    assert metrics.points("loss") == [(1, 1), (2, 2), (3, 3)]
    assert losses(metrics, 3, 4, 5, first=2).dropped.reports == 2
    assert losses(metrics, 6, first=5).dropped.reports == 3
    request = api.ListDroppedReportsRequest(experiment_id=metrics.experiment)
    (found,) = metrics.call("ListDroppedReports", request).trials
    assert (found.trial_id, found.reports) == (metrics.trial, 3)
    assert not losses(metrics.anew(), 1).HasField("dropped")


def test_the_best_and_the_last_validation_stay_right(metrics: Metrics) -> None:
    losses(metrics, 1, 2, 3)
    answer = metrics.report(
        ("validation", 4, {"accuracy": 0.5}), ("validation", 5, {"accuracy": 0.9}), first=3
    )
    assert answer.dropped.reports == 2
    assert metrics.points("accuracy", group="validation") == []
    assert (metrics.best().experiment_best.value, metrics.best().experiment_best.steps) == (0.9, 5)


def test_text_counts_by_its_length(metrics: Metrics) -> None:
    answer = metrics.report(("training", 1, {"note": "x" * 100}))
    assert (answer.dropped.reports, answer.dropped.bytes) == (1, 16 + len('{"note": ""}') + 100)


def test_points_that_retention_removes_make_room(metrics: Metrics) -> None:
    losses(metrics, 1, 2, 3)

    def remove(link: object) -> int:
        delete_expired(link, before=time.time())  # type: ignore[arg-type]
        found = INTAKE.lock_usage(link, metrics.trial)  # type: ignore[arg-type]
        assert found is not None
        return found[1].bytes

    assert asyncio.run(metrics.database.write(remove)) == 0
    assert not losses(metrics, 4, first=3).HasField("dropped")
