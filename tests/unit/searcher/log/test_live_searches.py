"""The searches in memory never part from their logs, whatever happens to the writes."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.searcher import adaptive, run

from resolute.errors import ConflictError, ResoluteError, UnavailableError
from resolute_searcher.log.events import TrialClosed, ValidationCompleted
from resolute_searcher.runtime.live_searches import MOST_ON_LOOP, Change, LiveSearches
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_searcher.state_machine.search import Search
from resolute_searcher.store import log, repository
from resolute_searcher.wire.spec import spec_from
from resolute_serving.database.engine import Database, Work
from resolute_serving.notifier import Notifier

T = TypeVar("T")
SEARCH = "7b3c5f6e-0a53-4f0e-8f8c-7f2f0b6f8d55"
ANOTHER = "7b3c5f6e-0a53-4f0e-8f8c-7f2f0b6f8d56"
LARGE = MOST_ON_LOOP + 1


class FailingDatabase(Database):
    """Fails some writes before they are done, and some after, which nobody can tell apart."""

    failing: random.Random | None = None
    failures: Counter[str]

    async def write(self, work: Work[T], *, order: str = "") -> T:
        lucky = self.failing.random() if self.failing else 1.0
        if lucky < 0.15:
            self.failures["before"] += 1
            await asyncio.sleep(0)
            raise UnavailableError("the disk is away")
        result = await super().write(work, order=order)
        if lucky < 0.3:
            self.failures["after"] += 1
            raise UnavailableError("the answer was lost")
        return result


@asynccontextmanager
async def searches(
    tmp_path: Path, *, capacity: int = 100, shared: bool = False
) -> AsyncIterator[tuple[LiveSearches, FailingDatabase]]:
    database = FailingDatabase(f"sqlite:///{tmp_path / 'searcher.sqlite'}", name="searcher")
    database.failures = Counter()
    migrate(database.engine, package="resolute_searcher", schema="searcher")
    storage = Storage(database)
    try:
        yield (
            LiveSearches(
                storage,
                clock=ManualClock(),
                trial_index=TrialIndex(storage),
                notifier=Notifier(),
                shared=shared,
                capacity=capacity,
            ),
            database,
        )
    finally:
        await storage.close()


def step(change: Change, choice: random.Random) -> bool:
    """Answers some operation, or ends some trial; tells whether the search is over."""
    search = change.search
    pending = [one for one, trial in search.state.trials.items() if trial.pending]
    ending = [
        one
        for one, trial in search.state.trials.items()
        if trial.closing and not trial.pending and not trial.closed
    ]
    if not search.state.over:
        chosen = choice.choice(pending + ending)
        if chosen in ending:
            change.record(TrialClosed(chosen))
        else:
            change.record(ValidationCompleted(chosen, choice.random(), search.state.trial(chosen).length))
    return search.state.over


async def rebuilt(database: Database) -> Search:
    search, _ = await database.read(lambda connection: repository.load_search(connection, SEARCH))
    return search


@pytest.mark.parametrize("seed", range(6))
def test_failing_writes_leave_no_trace_in_memory(tmp_path: Path, seed: int) -> None:
    async def worker(live: LiveSearches, choice: random.Random, size: int) -> None:
        while True:
            try:
                if await live.change(SEARCH, lambda change: step(change, choice), size=size):
                    return
            except ResoluteError:
                await asyncio.sleep(0)

    async def scenario() -> None:
        async with searches(tmp_path) as (live, database):
            await live.create(SEARCH, adaptive(max_trials=120))
            database.failing = random.Random(seed)
            sizes = [1, LARGE, 1, LARGE, 1]
            await asyncio.gather(
                *(worker(live, random.Random(seed * 100 + n), size) for n, size in enumerate(sizes))
            )
            database.failing = None
            assert min(database.failures["before"], database.failures["after"]) > 0
            in_memory = await live.change(SEARCH, lambda change: change.search.state.snapshot())
            assert (await rebuilt(database)).state.snapshot() == in_memory
            entries = await database.read(lambda c: [recorded.entry for recorded in log.read_log(c, SEARCH)])
            again = Search(spec_from(adaptive(max_trials=120)))
            for entry in entries:
                assert again.record(entry.event) == entry

    run(scenario)


def test_a_call_that_gives_up_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searches(tmp_path) as (live, database):
            await live.create(SEARCH, adaptive())
            await live.change(SEARCH, lambda change: change.search.state.sequence)  # it is in memory now
            choice = random.Random(0)
            for _ in range(20):
                call = asyncio.create_task(live.change(SEARCH, lambda change: step(change, choice)))
                await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            in_memory = await live.change(SEARCH, lambda change: change.search.state.snapshot())
            assert in_memory["sequence"] == 21
            assert (await rebuilt(database)).state.snapshot() == in_memory

    run(scenario)


def test_searches_that_do_not_fit_are_read_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searches(tmp_path, capacity=2) as (live, _):
            names = [f"7b3c5f6e-0a53-4f0e-8f8c-7f2f0b6f8d{number:02d}" for number in range(6)]
            choice = random.Random(0)
            for name in names:
                await live.create(name, adaptive())
            for _ in range(10):
                await asyncio.gather(
                    *(live.change(name, lambda change: step(change, choice)) for name in names)
                )
            for name in names:
                assert await live.change(name, lambda change: change.search.state.sequence) == 11

    run(scenario)


def test_few_searches_that_are_over_stay_in_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searches(tmp_path, capacity=1000) as (live, _):
            choice = random.Random(0)
            names = [f"7b3c5f6e-0a53-4f0e-8f8c-7f2f0b6f8d{number:02d}" for number in range(40)]
            for name in names:
                await live.create(name, adaptive(max_trials=1))
                while not await live.change(name, lambda change: step(change, choice)):
                    pass
            assert len(live._live) <= 32
            # What is not in memory any more is read again.
            for name in names:
                assert await live.change(name, lambda change: change.search.state.over)
            assert len(live._live) <= 32

    run(scenario)


def test_replicas_on_one_database_agree(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            searches(tmp_path, shared=True) as (one, database),
            searches(tmp_path, shared=True) as (other, _),
        ):
            await one.create(SEARCH, adaptive(max_trials=12))
            choice = random.Random(5)

            async def work(live: LiveSearches, size: int) -> None:
                while True:
                    try:
                        if await live.change(SEARCH, lambda change: step(change, choice), size=size):
                            return
                    except ConflictError:
                        await asyncio.sleep(0)

            await asyncio.gather(work(one, 1), work(other, 1), work(one, LARGE), work(other, LARGE))
            states = [
                await live.change(SEARCH, lambda change: change.search.state.snapshot())
                for live in (one, other)
            ]
            assert states[0] == states[1] == (await rebuilt(database)).state.snapshot()

    run(scenario)


def test_a_large_change_holds_up_calls_about_its_own_search_only(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def decide(change: Change) -> int:
        entered.set()
        assert leave.wait(60)
        step(change, random.Random(0))
        return change.search.state.sequence

    async def scenario() -> None:
        async with searches(tmp_path) as (live, database):
            for name in (SEARCH, ANOTHER):
                await live.create(name, adaptive())
            large = asyncio.create_task(live.change(SEARCH, decide, size=LARGE))
            await asyncio.to_thread(entered.wait)
            waiting = asyncio.create_task(live.change(SEARCH, lambda change: change.search.state.sequence))
            assert await live.change(ANOTHER, lambda change: change.search.state.sequence) == 1
            assert not waiting.done()
            # Who gives up meanwhile loses nothing either.
            large.cancel()
            leave.set()
            assert await waiting == 2
            assert (await rebuilt(database)).state.sequence == 2

    run(scenario)


@pytest.mark.parametrize("size", [1, LARGE])
def test_a_defect_in_a_decision_does_not_poison_the_search(tmp_path: Path, size: int) -> None:
    async def scenario() -> None:
        async with searches(tmp_path) as (live, database):
            await live.create(SEARCH, adaptive())

            def half_way(change: Change) -> None:
                step(change, random.Random(0))
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await live.change(SEARCH, half_way, size=size)
            in_memory = await live.change(SEARCH, lambda change: change.search.state.snapshot())
            assert in_memory == (await rebuilt(database)).state.snapshot()
            assert in_memory["sequence"] == 1

    run(scenario)


def test_nothing_begins_once_the_service_stops(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searches(tmp_path) as (live, _):
            await live.create(SEARCH, adaptive())
            await live._storage.close()
            with pytest.raises(UnavailableError, match="the searcher stops"):
                await live.change(SEARCH, lambda change: step(change, random.Random(0)))
            with pytest.raises(UnavailableError, match="the searcher stops"):
                await live.delete(SEARCH)

    run(scenario)
