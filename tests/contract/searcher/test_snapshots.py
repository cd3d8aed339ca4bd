"""What snapshots of searches promise on every backend: they save time, and nothing else rests on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from support.services.searcher import SEARCH, Player, Searcher, SearchSession, adaptive, run, searcher, spec

from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import NotFoundError, UnavailableError
from resolute_searcher.identifiers import trial_id
from resolute_searcher.runtime.snapshotter import Snapshotter
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.service import SearcherService
from resolute_searcher.state_machine.search import Search
from resolute_searcher.store import repository
from resolute_searcher.store.fingerprint import fingerprint
from resolute_searcher.store.log import read_log
from resolute_searcher.store.packing import pack
from resolute_searcher.store.schema import entries, searches, snapshots, trials
from resolute_searcher.store.snapshots import Snapshot, read_snapshot, write_snapshot
from resolute_searcher.wire.spec import spec_from

ASKED = adaptive(max_trials=40, max_concurrent_trials=6)
CODE = fingerprint(spec_from(ASKED)) or ""


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


def storage_of(service: Searcher) -> Storage:
    return cast("SearcherService", service.running.services[0])._storage


async def keep(service: Searcher, *, first: int = 10) -> Snapshot | None:
    """Has the search's snapshot made as the service has it made, but for how long the log must be."""
    storage = storage_of(service)
    snapshotter = Snapshotter(
        storage, cast("SearcherService", service.running.services[0])._snapshot_pool, first=first
    )
    snapshotter.notify(SEARCH, 1_000_000)
    await snapshotter.wait_until_idle()
    return await storage.read(lambda c: read_snapshot(c, SEARCH, CODE))


async def play(service: Searcher, asked: spec_pb.SearchSpec = ASKED, *, steps: int = 25) -> Player:
    await SearchSession(service).create(asked)
    player = Player(service.platform(), SEARCH, lambda trial: float(7 * trial % 17))
    await player.play(steps=steps)
    return player


async def loaded(storage: Storage) -> tuple[dict[str, Any], str]:
    search, tip = await storage.read(lambda c: repository.load_search(c, SEARCH))
    return search.state.snapshot(), tip


async def folded(storage: Storage, asked: spec_pb.SearchSpec = ASKED) -> tuple[dict[str, Any], str]:
    search, tip = Search(spec_from(asked)), ""
    for recorded in await storage.read(lambda c: list(read_log(c, SEARCH))):
        search.apply(recorded.entry)
        tip = recorded.tip
    return search.state.snapshot(), tip


RANDOM = spec(random=spec_pb.RandomMethod(max_length=5, max_trials=60, max_concurrent_trials=4))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("asked", [ASKED, RANDOM], ids=["adaptive", "random"])
def test_a_search_is_the_same_from_its_snapshot_as_from_its_whole_log(
    backend: dict[str, Any], asked: spec_pb.SearchSpec
) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            player = await play(service, asked)
            storage = storage_of(service)
            await keep(service)
            found = sa.select(snapshots.c.sequence)
            sequence = await storage.read(lambda c: c.execute(found).scalar_one())
            assert sequence == (await loaded(storage))[0]["sequence"]
            await player.play(steps=7)
            assert (await loaded(storage))[0]["sequence"] > sequence
            assert await loaded(storage) == await folded(storage, asked)
        async with searcher(**backend) as service:
            player.client = service.platform()
            await player.play()
            assert (await SearchSession(service).replay()).equal
            assert await loaded(storage_of(service)) == await folded(storage_of(service), asked)

    run(scenario, deadline=60)


def test_the_service_keeps_snapshots_while_a_search_goes_on(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            snapshotter = cast("SearcherService", service.running.services[0])._snapshotter
            snapshotter._first = 10  # as if everything were longer
            storage = storage_of(service)
            player = await play(service, steps=12)
            await snapshotter.wait_until_idle()
            first = await storage.read(lambda c: read_snapshot(c, SEARCH, CODE))
            assert first is not None
            await player.play(steps=12)
            await snapshotter.wait_until_idle()
            second = await storage.read(lambda c: read_snapshot(c, SEARCH, CODE))
            assert second is not None
            assert second.sequence >= first.sequence + 10
            assert await loaded(storage) == await folded(storage)

    run(scenario, deadline=60)


def test_only_a_snapshot_that_fits_is_taken(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            await play(service)
            storage = storage_of(service)
            kept = await keep(service)
            assert kept is not None
            right = await folded(storage)
            # A lie tells which one was taken.
            state, tip = right
            lie = replace(kept, state=pack({**state, "cancels": 1234}))
            await put(storage, lie)
            assert (await loaded(storage))[0]["cancels"] == 1234
            for wrong in (
                replace(lie, code="adaptive_asha/0 of another day"),
                replace(lie, tip="0" * 32),
                replace(lie, sequence=kept.sequence - 1),
                replace(lie, sequence=kept.sequence + 1),
                replace(lie, state=lie.state[:-1]),
                replace(lie, state=b""),
                replace(lie, state=pack({"sequence": kept.sequence})),
            ):
                await put(storage, wrong)
                assert await loaded(storage) == (state, tip)

    run(scenario, deadline=60)


async def put(storage: Storage, kept: Snapshot) -> None:
    await storage.write(lambda c: write_snapshot(c, SEARCH, kept))


def test_a_log_that_went_another_way_outdates_its_snapshot(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            await play(service, steps=10)
            storage = storage_of(service)
            saved = await dump(storage)
            for _ in range(5):
                await answer(service, metric=0.25)
            kept = await keep(service)
            assert kept is not None
        # The disk of an hour ago comes back from a backup, but for the snapshot, and the search continues.
        async with searcher(**backend) as service:
            storage = storage_of(service)
            await storage.write(lambda c: bring_back(c, saved))
            assert (await loaded(storage))[0]["sequence"] < kept.sequence
            assert await loaded(storage) == await folded(storage)
            session = SearchSession(service)
            while (await session.search()).status.last_event_sequence <= kept.sequence:
                await answer(service, metric=0.75)
            assert await loaded(storage) == await folded(storage)
            assert (await session.replay()).equal

    run(scenario, deadline=60)


def test_a_search_whose_method_is_not_installed_after_a_restart_waits_and_is_not_gone(
    backend: dict[str, Any],
) -> None:
    missing = spec(external=spec_pb.ExternalMethod(name="nobodys")).SerializeToString()

    async def scenario() -> None:
        async with searcher(**backend) as service:
            await SearchSession(service).create(RANDOM)
            await storage_of(service).write(
                lambda c: c.execute(sa.update(searches).values(spec=missing)) and None
            )
        async with searcher(**backend) as service:
            with pytest.raises(UnavailableError, match="no search method 'nobodys' is installed here"):
                await SearchSession(service).search()
            with pytest.raises(NotFoundError):
                await SearchSession(service, trial_id(SEARCH, SEARCH)).search()

    run(scenario, deadline=60)


async def answer(service: Searcher, *, metric: float) -> None:
    """Completes some trial's operation."""
    search, _ = await storage_of(service).read(lambda c: repository.load_search(c, SEARCH))
    trial_key, trial = next((one, trial) for one, trial in search.state.trials.items() if trial.pending)
    session = SearchSession(service)
    await session.complete(trial_id(SEARCH, trial_key), metric, length=trial.length, of_run=trial.min_run + 1)


async def dump(storage: Storage) -> list[tuple[sa.Table, Sequence[Any]]]:
    return [
        (table, await storage.read(lambda c, table=table: c.execute(sa.select(table)).mappings().all()))  # type: ignore[misc]
        for table in (searches, entries, trials)
    ]


def bring_back(connection: sa.Connection, saved: list[tuple[sa.Table, Sequence[Any]]]) -> None:
    for table, old in saved:
        connection.execute(sa.delete(table))
        connection.execute(sa.insert(table), [dict(row) for row in old])


@pytest.mark.sampled(1)
def test_snapshots_follow_the_log_by_shares_of_its_length(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            player = await play(service, steps=4)
            storage = storage_of(service)
            assert await keep(service, first=1000) is None
            first = await keep(service)
            assert first is not None
            # Nothing new is worth another.
            assert await keep(service) == first
            await player.play(steps=20)
            second = await keep(service)
            assert second is not None
            assert second.sequence >= first.sequence + 10
            # One that cannot be gone on from is replaced by one of the whole log.
            await put(storage, replace(first, state=b"damaged"))
            assert await keep(service) is None
            assert await keep(service) == second

    run(scenario, deadline=60)


def test_a_deleted_search_leaves_no_snapshot(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            await play(service)
            storage = storage_of(service)
            kept = await keep(service)
            assert kept is not None
            request = service_pb.DeleteSearchRequest(search_id=SEARCH)
            await SearchSession(service).client.DeleteSearch(request)
            await put(storage, kept)  # made while the search was deleted
            left = await storage.read(lambda c: c.execute(sa.select(snapshots.c.sequence)).all())
            assert left == []

    run(scenario, deadline=60)
