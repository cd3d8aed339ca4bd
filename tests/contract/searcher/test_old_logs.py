"""Searches of before 0.1.0 go on to the same decisions, and say that no reason was kept for the old ones."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from google.protobuf.json_format import ParseDict
from support.databases.postgres import PostgresServer
from support.history.old_home import recorded_decisions, restore_database, restore_home
from support.services.searcher import Searcher, SearchSession, run, searcher

from resolute.api.searcher.v1 import event_pb2, reason_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.client.connection.home import Home
from resolute.storage.searcher.v1 import log_pb2
from resolute_embedded.home.database_move import move
from resolute_embedded.home.state_directory import StateDirectory
from resolute_searcher.store.log import OWN_EVENT_PREFIX
from resolute_searcher.wire.contract import contract_entry, contract_event, contract_operation
from resolute_serving.database import migrations
from resolute_serving.database.engine import create_engine

DECISIONS = recorded_decisions()
LATE_RUN = 100_000
"""A run that no fence of the record keeps off."""


def restore(url: str, folder: Path) -> None:
    """Puts the old rows into a database of the old schema, which the service then upgrades."""
    restore_database("searcher", folder / "old.sqlite")
    old = sqlite3.connect(folder / "old.sqlite")
    old.row_factory = sqlite3.Row
    engine = create_engine(url, name="searcher", writes=True)
    migrations.upgrade(engine, package="resolute_searcher", schema="searcher", revision="0003")
    with engine.begin() as connection:
        for table in ("searches", "entries", "trials"):
            shape = sa.Table(table, sa.MetaData(), autoload_with=connection)
            rows = [dict(row) for row in old.execute(f"SELECT * FROM {table}")]
            for row in rows:
                row.update({name: bool(row[name]) for name in ("over", "has_actions") if name in row})
            connection.execute(sa.insert(shape), rows)
    engine.dispose()
    old.close()


class Replayed:
    """Repeats recorded events as calls."""

    def __init__(self, service: Searcher, search_id: str) -> None:
        self.session = SearchSession(service, search_id)
        self.client = self.session.client
        self._ids: dict[str, str] = {}

    async def send(self, event: log_pb2.Event) -> None:
        message = contract_event(event)
        kind = event.WhichOneof("kind")
        assert kind is not None
        detail = getattr(event, kind)
        match kind:
            case "trial_created" | "trial_closed" | "trial_exited":
                if not message.event_id or message.event_id.startswith(OWN_EVENT_PREFIX):
                    message.event_id = f"repeated-{event.sequence}"
                await self.session.report(message)
            case "validation_completed":
                trial_id = await self.trial_id(detail.request_id)
                await self.session.complete(trial_id, detail.metric, length=detail.length, of_run=LATE_RUN)
            case "validation_reported":
                await self.session.validate(
                    await self.trial_id(detail.request_id),
                    detail.source_sequence,
                    of_run=detail.run,
                    source=detail.source,
                    metric=detail.metric,
                    time_metric=detail.time,
                )
            case "sealed":
                await self.session.seal(await self.trial_id(detail.request_id), detail.min_run)
            case "operations_posted":
                operations = map(contract_operation, detail.operations)
                await self.client.PostOperations(
                    service_pb.PostOperationsRequest(
                        search_id=self.session.search_id,
                        operations=operations,
                        answered_sequence=detail.triggered_by_sequence,
                    )
                )
            case "extended":
                await self.client.ExtendSearch(
                    service_pb.ExtendSearchRequest(
                        search_id=self.session.search_id,
                        request_id=event.event_id,
                        extension=message.extended,
                    )
                )
            case "retried":
                trial_id = await self.trial_id(detail.request_id)
                await self.client.RetryTrial(
                    service_pb.RetryTrialRequest(trial_id=trial_id, request_id=event.event_id)
                )

    async def trial_id(self, key: str) -> str:
        if key not in self._ids:
            for action in await self.session.actions():
                self._ids[action.create_trial.trial_key] = action.create_trial.trial_id
        return self._ids[key]

    async def log(self, after: int) -> list[event_pb2.LogEntry]:
        found: list[event_pb2.LogEntry] = []
        request = service_pb.ListEventsRequest(search_id=self.session.search_id, page_size=1000)
        request.after_sequence = after
        response = await self.client.ListEvents(request)
        found += response.entries
        assert not response.next_page_token
        return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", sorted(DECISIONS))
def test_an_old_search_goes_on_to_the_same_decisions(database_url: str, tmp_path: Path, name: str) -> None:
    url = database_url or f"sqlite:///{tmp_path / 'searcher.sqlite'}"
    restore(url, tmp_path)
    require_same_decisions(name, url, tmp_path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(DECISIONS))
def test_a_search_of_a_home_that_was_moved_goes_on_to_the_same_decisions(
    postgres_server: PostgresServer, tmp_path: Path, name: str
) -> None:
    home = StateDirectory(Home(tmp_path / "home"))
    restore_home(home.home.path)
    home.cluster_id.get()
    url = postgres_server.clean_database()
    move(home, url)
    require_same_decisions(name, url, tmp_path)


def require_same_decisions(name: str, url: str, tmp_path: Path) -> None:
    """Lets a search go on as it is recorded that it did."""
    recorded = DECISIONS[name]
    entries = [
        ParseDict(
            {field: value for field, value in entry.items() if field != "implied"}, log_pb2.LoggedEvent()
        )
        for entry in recorded["entries"]
    ]

    async def scenario() -> None:
        async with searcher(tmp_path, database_url=url) as service:
            replayed = Replayed(service, recorded["search_id"])
            for old in await replayed.log(0):
                for reason in reasons(old):
                    assert reason.kind == reason_pb2.REASON_KIND_NOT_RECORDED
            assert (await replayed.session.replay()).equal
            exits: set[str] = set()
            for entry, raw in zip(entries, recorded["entries"], strict=True):
                event = entry.event
                if raw["implied"] or (event.HasField("trial_closed") and event.event_id in exits):
                    continue  # the service records it by itself
                if event.HasField("trial_exited"):
                    exits.add(f"{event.event_id}/closed")
                await replayed.send(event)
            went_on = await replayed.log(recorded["last_sequence"])
            for is_, should in zip(went_on, entries, strict=True):
                assert decisions(is_) == decisions_of_old(should)
                for reason in reasons(is_):
                    assert reason.kind > reason_pb2.REASON_KIND_NOT_RECORDED
            assert (await replayed.session.replay()).equal

    run(scenario, deadline=120)


def reasons(entry: event_pb2.LogEntry) -> list[reason_pb2.Reason]:
    decided = [one.reason for one in entry.operations] + [one.reason for one in entry.actions]
    return [entry.event.reason, *decided]


def decisions_of_old(entry: log_pb2.LoggedEvent) -> event_pb2.LogEntry:
    return decisions(contract_entry(entry))


def decisions(entry: event_pb2.LogEntry) -> event_pb2.LogEntry:
    """Returns an entry without what says when, by which name and why."""
    bare = event_pb2.LogEntry()
    bare.CopyFrom(entry)
    for field in ("event_id", "append_time", "reason"):
        bare.event.ClearField(field)
    for operation in bare.operations:
        operation.ClearField("reason")
    for action in bare.actions:
        action.ClearField("reason")
    return bare
