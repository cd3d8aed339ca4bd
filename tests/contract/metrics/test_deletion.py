"""What was deleted stays deleted, whatever arrives late."""

from __future__ import annotations

import sqlalchemy as sa
from support.services.metrics import Metrics, blocks_of

from resolute_metrics.store import deletion
from resolute_metrics.store.schema import METADATA, blocks


def _rows(metrics: Metrics) -> dict[str, int]:
    with metrics.database.engine.connect() as link:
        return {
            table.name: link.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in METADATA.sorted_tables
        }


def test_deletion_leaves_nothing_but_the_tombstone(alone: Metrics) -> None:
    rows = [("validation", step, {"accuracy": 0.5}) for step in range(300)]
    alone.send(blocks_of(rows))
    alone.report(("a.b", 301, {"accuracy": 0.5}), first=300)
    alone.delete()
    left = {name: count for name, count in _rows(alone).items() if count}
    assert left == {"experiments": 1, "validation_revisions": 1}
    assert alone.points("accuracy", group="validation") == []
    assert not alone.best().HasField("experiment_best")


def test_late_reports_of_a_deleted_experiment_are_acknowledged_and_dropped(alone: Metrics) -> None:
    alone.report(("training", 1, {"loss": 1.0}))
    alone.delete()
    answer = alone.report(("training", 8, {"loss": 1.0}), first=7)
    assert answer.next_sequence == 8
    assert not answer.refusals
    assert alone.points("loss") == []


def test_an_experiment_that_never_reported_can_be_deleted_before_its_spools_arrive(alone: Metrics) -> None:
    alone.delete()
    alone.delete()
    assert alone.report(("training", 1, {"loss": 1.0})).next_sequence == 1
    assert _rows(alone)["blocks"] == 0


def test_other_experiments_stay(alone: Metrics) -> None:
    alone.report(("training", 1, {"loss": 1.0}))
    kept = alone.trial, alone.experiment
    alone.trial = alone.experiment = "00000000-0000-4000-8000-000000000000"
    alone.report(("training", 1, {"loss": 2.0}))
    alone.delete()
    alone.trial, alone.experiment = kept
    assert alone.points("loss") == [(1, 1)]


def test_deletion_goes_in_steps_that_can_be_interrupted(alone: Metrics) -> None:
    for step in range(20):
        alone.report(("training", step, {f"m{step}": 1.0}), first=step)
    before = deletion._BLOCKS_AT_ONCE
    deletion._BLOCKS_AT_ONCE = 7
    try:
        with alone.database.engine.begin() as link:
            assert deletion.delete_part(link, 1)
            assert link.execute(sa.select(sa.func.count()).select_from(blocks)).scalar_one() == 13
        alone.delete()
    finally:
        deletion._BLOCKS_AT_ONCE = before
    assert _rows(alone)["blocks"] == 0
