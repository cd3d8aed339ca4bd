"""What the searcher promises, on every backend and over real gRPC."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.services.searcher import (
    SEARCH,
    SINGLE,
    Player,
    SearchSession,
    adaptive,
    closed,
    run,
    searcher,
    spec,
)
from unit.searcher.harness import drive_in_order

from resolute.api.searcher.v1 import action_pb2 as action_pb
from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from resolute_searcher.state_machine.search import Search
from resolute_searcher.wire.spec import spec_from


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


class TestCreation:
    def test_creating_a_search_twice_creates_it_once(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                first = await session.create(SINGLE)
                assert await session.create(SINGLE) == first
                assert [action.WhichOneof("kind") for action in first] == ["create_trial", "close_trial"]
                assert (await session.search()).status.last_event_sequence == 1
                with pytest.raises(AlreadyExistsError, match="with another spec"):
                    await session.create(spec(single=spec_pb.SingleMethod(max_length=11)))

        run(scenario)

    def test_a_field_that_only_a_newer_version_knows_is_not_stored(self, backend: dict[str, Any]) -> None:
        newer = spec_pb.SearchSpec.FromString(SINGLE.SerializeToString() + b"\xf8\x3f\x01")

        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                first = await session.create(newer)
                assert await session.create(SINGLE) == first
                stored = (await session.search()).spec
                assert stored.SerializeToString(deterministic=True) == SINGLE.SerializeToString(
                    deterministic=True
                )

        run(scenario)

    def test_a_deleted_search_is_gone_for_good(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                await session.complete(trial.trial_id, 0.5, length=10)
                request = service_pb.DeleteSearchRequest(search_id=SEARCH)
                for _ in range(2):
                    await session.client.DeleteSearch(request)
                with pytest.raises(NotFoundError, match=f"search {SEARCH} does not exist"):
                    await session.search()
                with pytest.raises(NotFoundError):
                    await session.operation(trial.trial_id)
                with pytest.raises(NotFoundError):
                    await session.report(closed(trial.trial_key))
                with pytest.raises(FailedPreconditionError, match="was deleted"):
                    await session.create(SINGLE)

        run(scenario)

    def test_deleting_what_never_was_keeps_it_from_coming(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                await session.client.DeleteSearch(service_pb.DeleteSearchRequest(search_id=SEARCH))
                with pytest.raises(FailedPreconditionError, match="was deleted"):
                    await session.create(SINGLE)

        run(scenario)

    def test_a_wrong_spec_lists_all_that_is_wrong(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                wrong = spec(random=spec_pb.RandomMethod(max_length=0, max_trials=0), metric="")
                with pytest.raises(InvalidArgumentError) as caught:
                    await session.create(wrong)
                assert {violation.field for violation in caught.value.violations} == {
                    "searcher.metric",
                    "searcher.max_length",
                    "searcher.max_trials",
                }
                with pytest.raises(InvalidArgumentError, match="search_id must be a UUID"):
                    await SearchSession(service, "7").create(SINGLE)
                with pytest.raises(NotFoundError):
                    await session.search()

        run(scenario)


class TestWholeSearches:
    def test_a_played_search_equals_the_one_in_memory(self, backend: dict[str, Any]) -> None:
        def metric(trial: int) -> float:
            return float(7 * trial % 17)

        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                await session.create(adaptive(max_concurrent_trials=4))
                played = await Player(session.client, SEARCH, metric).play()
                assert played.in_order() == drive_in_order(memory, metric).in_order()
                assert [action.sequence for action in played.actions] == list(
                    range(1, len(played.actions) + 1)
                )
                found = (await session.search()).status
                assert found.state == search_pb.SEARCH_STATE_SHUT_DOWN
                assert (found.progress, found.trials_requested, found.trials_closed) == (1.0, 16, 16)
                outcome = await session.replay()
                assert (outcome.equal, outcome.first_difference, outcome.detail) == (True, 0, "")
                state = json.loads(outcome.state_json)
                assert state["method"] == json.loads(json.dumps(memory.state.snapshot()["method"]))

        memory = Search(spec_from(adaptive(max_concurrent_trials=4)))
        run(scenario)

    def test_restarts_between_any_two_operations_change_nothing(self, backend: dict[str, Any]) -> None:
        async def played(search_id: str, *, restarts: bool) -> tuple[list[list[int]], list[action_pb.Action]]:
            player: Player | None = None
            while True:
                async with searcher(**backend) as service:
                    session = SearchSession(service, search_id)
                    if player is None:
                        await session.create(adaptive(max_trials=6, max_concurrent_trials=3))
                        player = Player(session.client, search_id, float)
                    player.client = session.client
                    result = await player.play(steps=2 if restarts else None)
                    if result.actions[-1].HasField("shutdown"):
                        assert (await session.replay()).equal
                        return result.in_order(), result.actions

        async def scenario() -> None:
            with_restarts = await played(str(uuid.uuid4()), restarts=True)
            without = await played(str(uuid.uuid4()), restarts=False)
            assert with_restarts[0] == without[0]
            assert [a.WhichOneof("kind") for a in with_restarts[1]] == [
                a.WhichOneof("kind") for a in without[1]
            ]

        run(scenario)

    def test_the_log_is_listed_in_pages(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                await session.create(adaptive(max_trials=4))
                await Player(session.client, SEARCH, float).play()
                whole = await session.log()
                pages: list[event_pb.LogEntry] = []
                token = ""
                while True:
                    request = service_pb.ListEventsRequest(search_id=SEARCH, page_size=7, page_token=token)
                    page = await session.client.ListEvents(request)
                    assert len(page.entries) <= 7
                    pages += page.entries
                    token = page.next_page_token
                    if not token:
                        break
                assert pages == whole
                assert [entry.event.sequence for entry in whole] == list(range(1, len(whole) + 1))
                assert len({entry.event.event_id for entry in whole}) == len(whole)
                assert [a.sequence for entry in whole for a in entry.actions] == list(
                    range(1, (await session.search()).status.last_action_sequence + 1)
                )

        run(scenario)

    def test_a_replay_can_stop_anywhere(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                trials = await session.trials(adaptive(max_trials=4))
                for number, trial in enumerate(trials):
                    length = (await session.operation(trial.trial_id)).length
                    await session.complete(trial.trial_id, float(number), length=length)
                for until in (1, 2, 3):
                    outcome = await session.replay(until)
                    assert outcome.equal
                    assert json.loads(outcome.state_json)["sequence"] == until

        run(scenario)


class TestFollowing:
    def test_a_follower_hears_of_actions_as_they_come(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                heard: list[action_pb.Action] = []

                async def follow() -> None:
                    request = service_pb.FollowActionsRequest(search_id=SEARCH, after_sequence=1)
                    async for response in session.client.FollowActions(request):
                        heard.extend(response.actions)

                following = asyncio.create_task(follow())
                await session.complete(trial.trial_id, 0.5, length=10)
                await session.report(closed(trial.trial_key))
                await following
                assert [action.WhichOneof("kind") for action in heard] == ["close_trial", "shutdown"]
                assert [action.event_sequence for action in heard] == [1, 3]

        run(scenario)

    def test_actions_come_again_until_one_asks_for_later_ones(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                actions = await session.create(SINGLE)
                for sequence in (1, 2, 1):
                    await session.client.AcknowledgeActions(
                        service_pb.AcknowledgeActionsRequest(search_id=SEARCH, sequence=sequence)
                    )
                assert await session.actions() == actions
                assert await session.actions(1) == actions[1:]
                with pytest.raises(InvalidArgumentError, match="has actions up to 2; 3 cannot"):
                    await session.client.AcknowledgeActions(
                        service_pb.AcknowledgeActionsRequest(search_id=SEARCH, sequence=3)
                    )

        run(scenario)

    def test_followers_leave_when_the_service_stops_or_the_search_goes(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                await SearchSession(service).create(SINGLE)
                request = service_pb.FollowActionsRequest(search_id=SEARCH)
                stream = service.platform().FollowActions(request)
                assert len((await anext(aiter(stream))).actions) == 2
                await service.running.services[0].stop()
                with pytest.raises(UnavailableError, match="the searcher stops"):
                    await anext(aiter(stream))

        async def deletion() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service, str(uuid.uuid4()))
                await session.create(SINGLE)
                request = service_pb.FollowActionsRequest(search_id=session.search_id)
                stream = session.client.FollowActions(request)
                assert len((await anext(aiter(stream))).actions) == 2
                await session.client.DeleteSearch(service_pb.DeleteSearchRequest(search_id=session.search_id))
                with pytest.raises(NotFoundError):
                    await anext(aiter(stream))
                with pytest.raises(NotFoundError):
                    await anext(aiter(session.client.FollowActions(request)))

        run(scenario)
        run(deletion)


def test_a_preview_creates_nothing(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            request = service_pb.PreviewSearchRequest(spec=adaptive())
            told = await session.client.PreviewSearch(request)
            endings = [
                [(ending.length, ending.trials) for ending in bracket.endings] for bracket in told.brackets
            ]
            assert endings == [[(4, 9), (16, 3)], [(16, 3), (64, 1)]]
            assert told.total_units == 9 * 4 + 3 * 16 + 3 * 16 + 64
            with pytest.raises(NotFoundError):
                await session.search()

    run(scenario)
