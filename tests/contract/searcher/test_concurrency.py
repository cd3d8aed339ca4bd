"""Many trials at once, calls that come twice, and several servers on one database."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.services.searcher import Player, adaptive, run, searcher

from resolute.api.searcher.v1 import action_pb2 as action_pb
from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import ConflictError

SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"
T = TypeVar("T")


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


async def twice(call: Callable[[], Awaitable[T]], choice: random.Random) -> T:
    """Makes a call, sometimes twice at once, as clients do that lost an answer; repeats what was aborted."""

    async def once() -> T:
        while True:
            try:
                return await call()
            except ConflictError:
                await asyncio.sleep(0.001)

    answers = await asyncio.gather(*(once() for _ in range(choice.choice([1, 2]))))
    return answers[-1]


async def live(client: Any, trial_id: str, choice: random.Random) -> None:
    """The life of a trial that never rests: it asks for work until it is closed."""
    while True:
        request = service_pb.GetOperationRequest(trial_id=trial_id, run=1)
        operation = (await client.GetOperation(request)).operation
        if operation.completed:
            if operation.closed:
                return
            await asyncio.sleep(0.002)
            continue
        done = service_pb.CompleteOperationRequest(
            trial_id=trial_id, run=1, length=operation.length, metric=choice.random()
        )
        await twice(lambda done=done: client.CompleteOperation(done), choice)  # type: ignore[misc]


async def platform(clients: list[Any], choice: random.Random) -> None:
    """Follows the actions of a search and runs all its trials at once, through any of some servers."""
    lives: list[asyncio.Task[None]] = []

    async def report(event: event_pb.Event) -> None:
        request = service_pb.ReportEventsRequest(search_id=SEARCH, events=[event])
        client = choice.choice(clients)
        await twice(lambda: client.ReportEvents(request), choice)

    async def trial(created: action_pb.Action.CreateTrial) -> None:
        noted = event_pb.Event.TrialCreated(trial_key=created.trial_key)
        await report(event_pb.Event(event_id=f"{created.trial_id}/created", trial_created=noted))
        await live(choice.choice(clients), created.trial_id, choice)
        ended = event_pb.Event.TrialClosed(trial_key=created.trial_key)
        await report(event_pb.Event(event_id=f"{created.trial_id}/ended", trial_closed=ended))

    async for response in clients[0].FollowActions(service_pb.FollowActionsRequest(search_id=SEARCH)):
        lives += [
            asyncio.create_task(trial(action.create_trial), name=action.create_trial.trial_id)
            for action in response.actions
            if action.HasField("create_trial")
        ]
    await asyncio.gather(*lives)


async def check(client: Any) -> None:
    replayed = await client.ReplaySearch(service_pb.ReplaySearchRequest(search_id=SEARCH))
    assert (replayed.equal, replayed.detail) == (True, "")
    found = (await client.GetSearch(service_pb.GetSearchRequest(search_id=SEARCH))).search.status
    assert found.state == search_pb.SEARCH_STATE_SHUT_DOWN
    assert found.trials_closed == found.trials_requested == 32
    state = json.loads(replayed.state_json)
    assert state["sequence"] == found.last_event_sequence
    actions = await Player(client, SEARCH, float).actions(0)
    assert [action.sequence for action in actions] == list(range(1, found.last_action_sequence + 1))


@pytest.mark.integration
@pytest.mark.parametrize("seed", [1, 2])
def test_trials_at_once_and_calls_that_come_twice_give_one_history(
    backend: dict[str, Any], seed: int
) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            client = service.platform()
            asked = adaptive(max_trials=32)
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=asked))
            await platform([client], random.Random(seed))
            await check(client)

    run(scenario)


@pytest.mark.integration
def test_servers_on_one_database_serve_one_search(postgres_server: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        backend = {
            "database_url": postgres_server.new_database(),
            "tmp_path": tmp_path,
            "key": Ed25519PrivateKey.generate(),
        }
        async with searcher(**backend) as one, searcher(**backend) as other:
            clients = [one.platform(), other.platform()]
            asked = adaptive(max_trials=32)
            await clients[1].CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=asked))
            await platform(clients, random.Random(3))
            for client in clients:
                await check(client)

    run(scenario)
