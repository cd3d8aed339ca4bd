"""Many searches in one stream, and logs by trial, kind and order."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from support.services.searcher import SINGLE, SearchSession, closed, run, searcher, spec

from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import InvalidArgumentError

RANDOM = spec(random=spec_pb.RandomMethod(max_length=5, max_trials=4, max_concurrent_trials=2))


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


def test_one_stream_tells_the_changes_of_many_searches(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            one, other = (SearchSession(service, str(uuid.uuid4())) for _ in range(2))
            (trial,) = await one.trials(SINGLE)
            await other.create(RANDOM)
            subscription = service_pb.WatchSearchesRequest.Subscription
            stream = one.client.WatchSearches(
                service_pb.WatchSearchesRequest(
                    subscriptions=[
                        subscription(key="a", search_id=one.search_id),
                        subscription(key="b", search_id=other.search_id),
                        subscription(key="gone", search_id=str(uuid.uuid4())),
                    ]
                )
            )
            updates = stream.__aiter__()
            first = {(found := await updates.__anext__()).key: found for _ in range(3)}
            assert first["a"].status == (await one.search()).status
            assert first["b"].status.trials_requested == 2
            assert first["gone"].HasField("not_found")

            await one.client.ReportProgress(
                service_pb.ReportProgressRequest(trial_id=trial.trial_id, run=1, progress=5.0)
            )
            told = await updates.__anext__()
            assert (told.key, told.status.progress) == ("a", 0.5)
            await one.complete(trial.trial_id, 0.5, length=10)
            await one.report(closed(trial.trial_key))
            while told.status.state != search_pb.SEARCH_STATE_SHUT_DOWN:
                told = await updates.__anext__()
                assert told.key == "a"
            assert told.status == (await one.search()).status
            await other.client.DeleteSearch(service_pb.DeleteSearchRequest(search_id=other.search_id))
            told = await updates.__anext__()
            assert (told.key, told.HasField("not_found")) == ("b", True)
            stream.cancel()

    run(scenario)


@pytest.mark.parametrize(
    ("subscriptions", "complaint"),
    [
        ([], "must be from 1 to 1000"),
        ([("a", str(uuid.UUID(int=1))), ("a", str(uuid.UUID(int=2)))], r"subscriptions\[1\].key"),
        ([("", str(uuid.UUID(int=1)))], r"subscriptions\[0\].key"),
        ([("a", "none")], r"subscriptions\[0\].search_id must be a UUID"),
    ],
)
def test_wrong_subscriptions_are_refused(
    tmp_path: Path, subscriptions: list[tuple[str, str]], complaint: str
) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            request = service_pb.WatchSearchesRequest()
            for key, search_id in subscriptions:
                request.subscriptions.add(key=key, search_id=search_id)
            with pytest.raises(InvalidArgumentError, match=complaint):
                await service.platform().WatchSearches(request).__aiter__().__anext__()

    run(scenario)


def test_a_log_is_listed_by_trial_kind_position_and_order(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            first, second = await session.trials(RANDOM)
            for trial in (first, second):
                await session.complete(trial.trial_id, 0.5, length=5)
                await session.report(closed(trial.trial_key, f"end {trial.trial_key}"))

            async def listed(**filters: Any) -> list[int]:
                sequences: list[int] = []
                token = ""
                while True:
                    request = service_pb.ListEventsRequest(
                        search_id=session.search_id, page_token=token, **filters
                    )
                    response = await session.client.ListEvents(request)
                    sequences += [entry.event.sequence for entry in response.entries]
                    token = response.next_page_token
                    if not token:
                        return sequences

            assert await listed(page_size=2) == [1, 2, 3, 4, 5]
            assert await listed(page_size=2, order_by="sequence desc") == [5, 4, 3, 2, 1]
            assert await listed(after_sequence=3) == [4, 5]
            assert await listed(after_sequence=3, order_by="sequence desc", page_size=1) == [5, 4]
            # The first entry is about both: it created them.
            assert await listed(trial_keys=[first.trial_key]) == [1, 2, 3]
            assert await listed(trial_keys=[second.trial_key], kinds=["trial_closed"]) == [5]
            assert await listed(kinds=["trial_closed", "started"], page_size=1) == [1, 3, 5]
            with pytest.raises(InvalidArgumentError, match="the kinds are started"):
                await listed(kinds=["sealed"])
            with pytest.raises(InvalidArgumentError, match="order_by has 'time'"):
                await listed(order_by="time")

    run(scenario)
