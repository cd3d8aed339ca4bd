"""What was deleted stays deleted, whatever arrives late."""

from __future__ import annotations

import sqlalchemy as sa
from support.reporting import Metrics, blocks_of

from resolute_metrics import deletion
from resolute_metrics.schema import METADATA, blocks


def _rows(metrics: Metrics) -> dict[str, int]:
    with metrics.database.engine.connect() as link:
        return {
            table.name: link.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in METADATA.sorted_tables
        }


def test_deletion_leaves_nothing_but_the_tombstone(metrics: Metrics) -> None:
    rows = [("validation", step, {"accuracy": 0.5}) for step in range(300)]
    metrics.send(blocks_of(rows))
    metrics.report(("a.b", 301, {"accuracy": 0.5}), first=300)
    metrics.delete()
    assert {name: count for name, count in _rows(metrics).items() if count} == {"experiments": 1}
    assert metrics.points("accuracy", group="validation") == []
    assert not metrics.best().HasField("experiment_best")


def test_late_reports_of_a_deleted_experiment_are_acknowledged_and_dropped(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"loss": 1.0}))
    metrics.delete()
    answer = metrics.report(("training", 8, {"loss": 1.0}), first=7)
    assert answer.next_sequence == 8
    assert not answer.refusals
    assert metrics.points("loss") == []


def test_an_experiment_that_never_reported_can_be_deleted_before_its_spools_arrive(metrics: Metrics) -> None:
    metrics.delete()
    metrics.delete()
    assert metrics.report(("training", 1, {"loss": 1.0})).next_sequence == 1
    assert _rows(metrics)["blocks"] == 0


def test_other_experiments_stay(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"loss": 1.0}))
    kept = metrics.trial, metrics.experiment
    metrics.trial = metrics.experiment = "00000000-0000-4000-8000-000000000000"
    metrics.report(("training", 1, {"loss": 2.0}))
    metrics.delete()
    metrics.trial, metrics.experiment = kept
    assert metrics.points("loss") == [(1, 1)]


def test_deletion_goes_in_steps_that_can_be_interrupted(metrics: Metrics) -> None:
    for step in range(20):
        metrics.report(("training", step, {f"m{step}": 1.0}), first=step)
    before = deletion._BLOCKS_AT_ONCE
    deletion._BLOCKS_AT_ONCE = 7
    try:
        with metrics.database.engine.begin() as link:
            assert deletion.remove_some(link, 1)
            assert link.execute(sa.select(sa.func.count()).select_from(blocks)).scalar_one() == 13
        metrics.delete()
    finally:
        deletion._BLOCKS_AT_ONCE = before
    assert _rows(metrics)["blocks"] == 0
