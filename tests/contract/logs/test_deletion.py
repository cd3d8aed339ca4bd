"""What was deleted stays deleted, whatever arrives late."""

from __future__ import annotations

import asyncio
import uuid

import pytest
import sqlalchemy as sa
from support.clocks import ManualClock
from support.services.logs import Logs, line

from resolute_logs.store import deletion
from resolute_logs.store.schema import INTAKE, lines
from resolute_serving.database.retention import RetentionSweeper


def _count(logs: Logs, table: sa.Table) -> int:
    with logs.database.engine.connect() as link:
        return link.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_deletion_leaves_nothing_but_the_tombstone(alone: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "_LINES_AT_ONCE", 3)
    alone.send(*"abcdefgh")
    alone.send("i", trial=str(uuid.uuid4()))
    alone.delete()
    assert alone.messages() == []
    assert [_count(alone, table) for table in (lines, INTAKE.trials, INTAKE.sources, INTAKE.experiments)] == [
        0,
        0,
        0,
        1,
    ]


def test_late_lines_of_a_deleted_experiment_are_acknowledged_and_dropped(logs: Logs) -> None:
    logs.send("a")
    logs.delete()
    assert logs.send("b", first=9) == 10
    assert logs.messages() == []


def test_lines_go_with_age_and_no_late_spool_brings_them_back(
    alone: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "_LINES_AT_ONCE", 3)
    alone.send(*(line(text, seconds=100.0 + number) for number, text in enumerate("abcdefgh")))
    alone.send(line("late", seconds=1.0), source="other")

    async def sweep() -> None:
        clock = ManualClock(103.0 + 86_400)
        await RetentionSweeper(alone.database, deletion.delete_expired, days=1.0, clock=clock).sweep()

    asyncio.run(sweep())
    assert alone.messages() == ["d", "e", "f", "g", "h", "late"]
    assert alone.send(*"abcdefgh") == 8
    assert alone.messages() == ["d", "e", "f", "g", "h", "late"]


def test_an_experiment_that_never_wrote_can_be_deleted_before_its_spools_arrive(logs: Logs) -> None:
    logs.delete()
    logs.delete()
    assert logs.send("a") == 1
    assert logs.messages() == []


def test_other_experiments_stay_and_keys_do_not_come_again(logs: Logs) -> None:
    logs.send("a")
    before = logs.pages()[0][0].line_id
    kept = logs.trial, logs.experiment
    logs.trial, logs.experiment = str(uuid.uuid4()), str(uuid.uuid4())
    logs.send("b", "c")
    logs.delete()
    logs.trial, logs.experiment = kept
    logs.send("d", first=1)
    assert logs.messages() == ["a", "d"]
    assert logs.pages()[0][1].line_id > before + 2
