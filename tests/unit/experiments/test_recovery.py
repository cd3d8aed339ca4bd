"""What a start of the service does about runs that an earlier life left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from support.clocks import ManualClock

from resolute_experiments import schema
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.fleet import Fleet
from resolute_experiments.leases import Leases
from resolute_experiments.notifier import Notifier
from resolute_experiments.resources.local import LocalResourceManager
from resolute_experiments.states import RunOutcome
from resolute_experiments.store import experiments, trials
from resolute_serving.bootstrap import upgrade
from resolute_serving.database import Database

EXPERIMENT = {
    "id": "e",
    "request_id": "r",
    "name": "digits",
    "description": "",
    "labels": [],
    "state": "ACTIVE",
    "archived": False,
    "owner": "ada",
    "workspace": "w",
    "project": "p",
    "config": {"resources": {"slots_per_trial": 1, "max_slots": None}},
    "progress": 0.0,
    "failure": "",
    "revision": 1,
    "created_at": 1.0,
    "definition_sha256": "",
    "definition_size": 4,
    "search_created": True,
    "action_cursor": 0,
}
TRIAL = {
    "id": "t",
    "experiment_id": "e",
    "request_id": "r",
    "state": "COMPLETED",
    "hparams": {},
    "seed": 1,
    "restarts": 0,
    "run": 1,
    "status": "",
    "metadata": {},
    "explanation": "",
    "source_checkpoint_id": "",
    "latest_checkpoint_id": "",
    "steps_completed": 0,
    "settled_length": 0,
    "closed": True,
    "kill_requested": False,
    "queued_at": 1.0,
    "created_at": 1.0,
}
RUN = {
    "trial_id": "t",
    "experiment_id": "e",
    "failure": "",
    "slot_ids": [0],
    "started_at": 2.0,
    "trace_id": "trace",
    "signal_revision": 0,
    "preempt": False,
    "kill": False,
    "signal_reason": "",
    "acknowledged": False,
}


@asynccontextmanager
async def fleet(tmp_path: Path, *, settled: str) -> AsyncIterator[Fleet]:
    """The machines of a service that has one run, which was settled."""
    url = f"sqlite:///{tmp_path}/experiments.sqlite"
    upgrade(BLUEPRINT, url)
    database = Database(url, name="experiments")
    run: dict[str, Any] = {**RUN, "run": 1, "allocation_id": settled, "outcome": RunOutcome.LOST.value}
    await database.write(lambda c: experiments.insert(c, EXPERIMENT, [b"code"]))
    await database.write(lambda c: trials.insert(c, TRIAL))
    await database.write(lambda c: c.execute(sa.insert(schema.runs).values(**run)))
    manager = LocalResourceManager(tmp_path / "runs", slots=1)
    clock = ManualClock()
    try:
        yield Fleet(
            manager,
            database=database,
            notifier=Notifier(),
            clock=clock,
            leases=Leases(clock, ttl=30.0),
            issue_token=lambda _: "token",
            address="127.0.0.1:1",
            preemption_timeout=60.0,
        )
    finally:
        await manager.close()
        database.close()


async def come_true(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # nothing tells of what the file system shows
        await asyncio.sleep(0.01)


def test_a_run_that_was_settled_but_not_released_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    async def body() -> None:
        async with fleet(tmp_path, settled="t.1") as machines:
            (tmp_path / "runs/t.1/0").mkdir(parents=True)
            await machines.recover()
            await come_true(lambda: not (tmp_path / "runs/t.1").exists())

    asyncio.run(asyncio.wait_for(body(), 20))


def test_what_is_left_of_a_run_that_nobody_knows_is_not_touched(tmp_path: Path) -> None:
    async def body() -> None:
        async with fleet(tmp_path, settled="t.1") as machines:
            (tmp_path / "runs/t.1/0").mkdir(parents=True)
            (tmp_path / "runs/stranger.1/0").mkdir(parents=True)
            await machines.recover()
            await come_true(lambda: not (tmp_path / "runs/t.1").exists())
            assert (tmp_path / "runs/stranger.1/0").is_dir()

    asyncio.run(asyncio.wait_for(body(), 20))
