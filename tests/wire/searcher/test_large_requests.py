"""Large answers of clients, and long lists, are worked on beside the event loop."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.services.searcher import SEARCH, Searcher, run, searcher, spec

from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import operation_pb2 as operation_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.identifiers import trial_id
from resolute_searcher.runtime.live_searches import MOST_ON_LOOP
from resolute_searcher.state_machine.search import Search
from resolute_searcher.wire import contract

CUSTOM = spec(external=spec_pb.ExternalMethod(name="custom"))
TIMED = spec(time_metric="batches", random=spec_pb.RandomMethod(max_length=1, max_trials=1))
MANY = MOST_ON_LOOP + 1


@pytest.fixture
def threads_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], set[int]]:
    """Notes the threads in which a function is called from now on."""

    def note(owner: Any, name: str) -> set[int]:
        found: set[int] = set()
        function = getattr(owner, name)

        def noting(*args: Any, **kwargs: Any) -> Any:
            found.add(threading.get_ident())
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, noting)
        return found

    return note


def creations(count: int) -> list[operation_pb.Operation]:
    create = operation_pb.Operation.Create
    return [operation_pb.Operation(create=create(trial_key=str(uuid.UUID(int=n)))) for n in range(count)]


async def answer(service: Searcher, count: int) -> None:
    client = service.platform()
    await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=CUSTOM))
    request = service_pb.PostOperationsRequest(
        search_id=SEARCH, operations=creations(count), answered_sequence=1
    )
    await client.PostOperations(request)


def test_a_large_answer_is_decided_beside_the_event_loop(
    tmp_path: Path, threads_of: Callable[[Any, str], set[int]]
) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            deciding = threads_of(Search, "record")
            await answer(service, MANY)
            assert len(deciding) >= 1
            # The search itself was begun in a thread, too.
            assert threading.get_ident() not in deciding
            client = service.platform()
            page = await client.ListEvents(service_pb.ListEventsRequest(search_id=SEARCH))
            assert len(page.entries[1].operations) == MANY

    run(scenario, deadline=60)


def test_long_lists_of_actions_and_entries_are_made_beside_the_event_loop(
    tmp_path: Path, threads_of: Callable[[Any, str], set[int]]
) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            await answer(service, MANY)
            copying = threads_of(contract, "_copy")
            client = service.platform()
            follow = client.FollowActions(service_pb.FollowActionsRequest(search_id=SEARCH))
            async for response in follow:
                if response.actions:
                    assert len(response.actions) == MANY
                    break
            follow.cancel()
            assert len(copying) == 1
            copying.clear()
            page = await client.ListEvents(service_pb.ListEventsRequest(search_id=SEARCH))
            assert len(page.entries) == 2
            assert copying
            assert threading.get_ident() not in copying

    run(scenario, deadline=60)


def test_many_events_and_validations_are_decided_beside_the_event_loop(
    tmp_path: Path, threads_of: Callable[[Any, str], set[int]]
) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            await answer(service, MANY)
            client = service.platform()
            deciding = threads_of(Search, "record")
            created = [
                event_pb.Event(
                    event_id=f"created {number}",
                    trial_created=event_pb.Event.TrialCreated(trial_key=str(uuid.UUID(int=number))),
                )
                for number in range(MANY)
            ]
            await client.ReportEvents(service_pb.ReportEventsRequest(search_id=SEARCH, events=created))
            timed = str(uuid.uuid4())
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=timed, spec=TIMED))
            page = await client.ListEvents(service_pb.ListEventsRequest(search_id=timed))
            trial_key = page.entries[0].operations[0].create.trial_key
            await asyncio.sleep(0)
            deciding.clear()
            validations = [
                service_pb.ReportValidationsRequest.Validation(sequence=n, metric=0.5, time_metric=n)
                for n in range(MANY)
            ]
            request = service_pb.ReportValidationsRequest(
                trial_id=trial_id(timed, trial_key), run=1, source="spool", validations=validations
            )
            assert not (await client.ReportValidations(request)).refusals
            assert deciding
            assert threading.get_ident() not in deciding

    run(scenario, deadline=60)
