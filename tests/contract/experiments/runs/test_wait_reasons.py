"""Why trials wait is recorded as it is decided, on both databases: a restart tells it as before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import Store
from support.databases.prepared import migrate
from support.services.access import Calls, Scenario
from support.services.in_process import Running

from resolute.api.experiments.v1 import (
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
    trial_pb2,
    trials_service_pb2,
    trials_service_pb2_grpc,
)
from resolute_experiments.scheduling.placement import SlotInventory
from resolute_experiments.scheduling.scheduler import Scheduler
from resolute_experiments.scheduling.waits import BEHIND
from resolute_experiments.store import experiments, outbox, wait_reasons
from resolute_experiments.store.wait_reasons import Wait
from resolute_serving.database.engine import create_engine

SLOTS = 4000


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


async def explanations(running: Running, trials: list[int]) -> list[str]:
    """What people are told of each trial, and then of the only experiment."""
    async with running.channel(running.user_token(name="admin")) as channel:
        trials_stub: Any = trials_service_pb2_grpc.TrialsServiceStub(channel)
        stub: Any = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
        told = []
        for number in trials:
            key = trial_pb2.TrialKey(number=number)
            answer = await trials_stub.GetTrial(trials_service_pb2.GetTrialRequest(trial=key))
            told.append(answer.trial.explanation)
        request = experiments_service_pb2.GetExperimentRequest(
            experiment=experiment_pb2.ExperimentKey(number=1)
        )
        return [*told, (await stub.GetExperiment(request)).experiment.wait_reason]


async def once_told(running: Running, trials: list[int], first: str) -> list[str]:
    """The same once the first trial's explanation begins with some words."""
    for _ in range(1000):
        found = await explanations(running, trials)
        if found[0].startswith(first):
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"it never said {first!r}, but {found}")


def test_a_restart_tells_what_the_last_life_decided_until_a_pass_decides_again(
    store: Store, play: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "resources": {"slots_per_trial": SLOTS, "max_slots": None},
        "searcher": {"name": "random", "metric": "loss", "smaller_is_better": True},
    }
    store.run(lambda c: experiments.edit(c, store.experiment_id, config=config, slots_per_trial=SLOTS))
    waiting = [store.create_trial(), store.create_trial()]
    # No search is there that would hear of them.
    unsent = [message.position for message in store.messages()]
    store.run(lambda c: outbox.remove(c, unsent))
    numbers = [store.trial(trial_id).number for trial_id in waiting]
    told: list[str] = []

    async def life(running: Running, _: Calls) -> None:
        told.extend(await once_told(running, numbers, f"needs {SLOTS} slots"))
        assert told[1:] == [BEHIND, told[0]]

    async def life_without_a_pass(running: Running, _: Calls) -> None:
        assert await explanations(running, numbers) == told

    async def life_of_other_code(running: Running, _: Calls) -> None:
        await once_told(running, numbers, "other words")

    play(life)
    # The code that decides is another now, and has decided nothing yet.
    monkeypatch.setattr(SlotInventory, "explain", lambda *_: "other words")
    with monkeypatch.context() as before_its_first_pass:
        before_its_first_pass.setattr(Scheduler, "schedule", no_pass)
        play(life_without_a_pass)
    play(life_of_other_code)
    assert recorded(store) == {store.experiment_id: Wait(reason="other words", trial_id=waiting[0])}
    store.run(lambda c: experiments.delete_contents(c, store.experiment_id))
    assert recorded(store) == {}


async def no_pass(_: Scheduler) -> None:
    """The pass that a scheduler does not come to make."""


def recorded(store: Store) -> dict[str, Wait]:
    return store.run(wait_reasons.read)


def test_only_what_changed_is_written(store: Store) -> None:
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement.split(maxsplit=1)[0])

    waits = {f"e{number}": Wait(reason="at its limit") for number in range(1200)}
    store.run(lambda c: wait_reasons.write(c, waits))
    assert recorded(store) == waits
    sa.event.listen(store.engine, "before_cursor_execute", note)
    store.run(lambda c: wait_reasons.write(c, waits))
    assert not {"DELETE", "INSERT", "UPDATE"} & {*statements}
    statements.clear()

    changed = {**waits, "e7": Wait(reason="needs 2 slots", trial_id="t")}
    del changed["e3"]
    store.run(lambda c: wait_reasons.write(c, changed))
    assert [one for one in statements if one in {"DELETE", "INSERT", "UPDATE"}] == ["DELETE", "INSERT"]
    assert recorded(store) == changed
    store.run(lambda c: wait_reasons.write(c, {}))
    assert recorded(store) == {}
