"""What the searcher promises, on every backend and over real gRPC."""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from support.searching import Player, Searcher, adaptive, run, searcher, spec
from unit.searcher.harness import drive_in_order

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    RunSupersededError,
    UnavailableError,
)
from resolute_searcher.search import Search
from resolute_searcher.spec_messages import spec_from

SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"
SINGLE = spec(single=pb.SingleMethod(max_length=10))
TIMED = spec(
    async_halving=pb.AsyncHalvingMethod(
        num_rungs=2, max_length=100, max_trials=3, divisor=4.0, max_concurrent_trials=2, time_driven=True
    ),
    time_metric="batches",
)


class Session:
    """One search of a running service, with short calls."""

    def __init__(self, service: Searcher, search_id: str = SEARCH) -> None:
        self.service = service
        self.client = service.platform()
        self.search_id = search_id

    async def create(self, asked: pb.SearchSpec) -> list[pb.Action]:
        request = service_pb.CreateSearchRequest(search_id=self.search_id, spec=asked)
        await self.client.CreateSearch(request)
        return await self.actions()

    async def actions(self, after: int = 0) -> list[pb.Action]:
        return await Player(self.client, self.search_id, float).actions(after)

    async def trials(self, asked: pb.SearchSpec) -> list[pb.Action.CreateTrial]:
        return [action.create_trial for action in await self.create(asked) if action.HasField("create_trial")]

    async def complete(self, trial_id: str, metric: float, *, length: int, of_run: int = 1) -> None:
        await self.client.CompleteOperation(
            service_pb.CompleteOperationRequest(trial_id=trial_id, run=of_run, length=length, metric=metric)
        )

    async def operation(self, trial_id: str, *, of_run: int = 0) -> pb.TrialOperation:
        request = service_pb.GetOperationRequest(trial_id=trial_id, run=of_run)
        return (await self.client.GetOperation(request)).operation

    async def seal(self, trial_id: str, min_run: int) -> pb.TrialOperation:
        request = service_pb.SealRequest(trial_id=trial_id, min_run=min_run)
        return (await self.client.Seal(request)).operation

    async def report(self, *events: pb.Event) -> int:
        request = service_pb.ReportEventsRequest(search_id=self.search_id, events=events)
        return (await self.client.ReportEvents(request)).last_event_sequence

    async def validate(
        self, trial_id: str, sequence: int, *, of_run: int = 1, source: str = "spool", **values: float
    ) -> bool:
        validation = service_pb.ReportValidationsRequest.Validation(sequence=sequence, **values)
        request = service_pb.ReportValidationsRequest(
            trial_id=trial_id, run=of_run, source=source, validations=[validation]
        )
        return (await self.client.ReportValidations(request)).stop

    async def search(self) -> pb.Search:
        request = service_pb.GetSearchRequest(search_id=self.search_id)
        return (await self.client.GetSearch(request)).search

    async def log(self) -> list[service_pb.LoggedEvent]:
        request = service_pb.ListEventsRequest(search_id=self.search_id, page_size=1000)
        return list((await self.client.ListEvents(request)).entries)

    async def replay(self, until: int = 0) -> service_pb.ReplaySearchResponse:
        request = service_pb.ReplaySearchRequest(search_id=self.search_id, until_sequence=until)
        return await self.client.ReplaySearch(request)


def exited(request_id: str, reason: pb.ExitReason.ValueType, event_id: str = "exit") -> pb.Event:
    return pb.Event(
        event_id=event_id, trial_exited=pb.Event.TrialExited(request_id=request_id, reason=reason)
    )


def closed(request_id: str, event_id: str = "end") -> pb.Event:
    return pb.Event(event_id=event_id, trial_closed=pb.Event.TrialClosed(request_id=request_id))


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


class TestCreation:
    def test_creating_a_search_twice_creates_it_once(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                first = await session.create(SINGLE)
                assert await session.create(SINGLE) == first
                assert [action.WhichOneof("kind") for action in first] == ["create_trial", "close_trial"]
                assert (await session.search()).last_event_sequence == 1
                with pytest.raises(AlreadyExistsError, match="with another spec"):
                    await session.create(spec(single=pb.SingleMethod(max_length=11)))

        run(scenario)

    def test_a_deleted_search_is_gone_for_good(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
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
                    await session.report(closed(trial.request_id))
                with pytest.raises(FailedPreconditionError, match="was deleted"):
                    await session.create(SINGLE)

        run(scenario)

    def test_deleting_what_never_was_keeps_it_from_coming(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                await session.client.DeleteSearch(service_pb.DeleteSearchRequest(search_id=SEARCH))
                with pytest.raises(FailedPreconditionError, match="was deleted"):
                    await session.create(SINGLE)

        run(scenario)

    def test_a_wrong_spec_lists_all_that_is_wrong(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                wrong = spec(random=pb.RandomMethod(max_length=0, max_trials=0), metric="")
                with pytest.raises(InvalidArgumentError) as caught:
                    await session.create(wrong)
                assert {violation.field for violation in caught.value.violations} == {
                    "searcher.metric",
                    "searcher.max_length",
                    "searcher.max_trials",
                }
                with pytest.raises(InvalidArgumentError, match="search_id must be a UUID"):
                    await Session(service, "7").create(SINGLE)
                with pytest.raises(NotFoundError):
                    await session.search()

        run(scenario)


class TestWholeSearches:
    def test_a_played_search_equals_the_one_in_memory(self, backend: dict[str, Any]) -> None:
        def metric(trial: int) -> float:
            return float(7 * trial % 17)

        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                await session.create(adaptive(max_concurrent_trials=4))
                played = await Player(session.client, SEARCH, metric).play()
                assert played.in_order() == drive_in_order(memory, metric).in_order()
                assert [action.sequence for action in played.actions] == list(
                    range(1, len(played.actions) + 1)
                )
                found = await session.search()
                assert found.state == pb.SEARCH_STATE_SHUT_DOWN
                assert (found.progress, found.trials_requested, found.trials_closed) == (1.0, 16, 16)
                outcome = await session.replay()
                assert (outcome.equal, outcome.first_difference, outcome.detail) == (True, 0, "")
                state = json.loads(outcome.state_json)
                assert state["method"] == json.loads(json.dumps(memory.snapshot()["method"]))

        memory = Search(spec_from(adaptive(max_concurrent_trials=4)))
        run(scenario)

    def test_restarts_between_any_two_operations_change_nothing(self, backend: dict[str, Any]) -> None:
        async def played(search_id: str, *, restarts: bool) -> tuple[list[list[int]], list[pb.Action]]:
            player: Player | None = None
            while True:
                async with searcher(**backend) as service:
                    session = Session(service, search_id)
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
                session = Session(service)
                await session.create(adaptive(max_trials=4))
                await Player(session.client, SEARCH, float).play()
                whole = await session.log()
                pages: list[service_pb.LoggedEvent] = []
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
                    range(1, (await session.search()).last_action_sequence + 1)
                )

        run(scenario)

    def test_a_replay_can_stop_anywhere(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                trials = await session.trials(adaptive(max_trials=4))
                for number, trial in enumerate(trials):
                    length = (await session.operation(trial.trial_id)).length
                    await session.complete(trial.trial_id, float(number), length=length)
                for until in (1, 2, 3):
                    outcome = await session.replay(until)
                    assert outcome.equal
                    assert json.loads(outcome.state_json)["sequence"] == until

        run(scenario)


class TestOperations:
    def test_a_trial_is_led_through_its_operation(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                chief = service.trial(trial.trial_id)
                asked = service_pb.GetOperationRequest(trial_id=trial.trial_id, run=1)
                operation = (await chief.GetOperation(asked)).operation
                assert operation == pb.TrialOperation(length=10, closed=True)
                await chief.ReportProgress(
                    service_pb.ReportProgressRequest(trial_id=trial.trial_id, run=1, progress=4.0)
                )
                assert (await session.search()).progress == pytest.approx(0.4)
                done = service_pb.CompleteOperationRequest(
                    trial_id=trial.trial_id, run=1, length=10, metric=0.5
                )
                for _ in range(2):
                    await chief.CompleteOperation(done)
                assert (await session.search()).last_event_sequence == 2
                operation = (await chief.GetOperation(asked)).operation
                assert (operation.completed, operation.closed) == (True, True)
                assert (await session.search()).state == pb.SEARCH_STATE_ACTIVE
                assert await session.report(closed(trial.request_id)) == 3
                assert (await session.search()).state == pb.SEARCH_STATE_SHUT_DOWN
                assert (await session.actions())[-1].shutdown == pb.Action.Shutdown()

        run(scenario)

    def test_progress_survives_a_restart(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                (trial,) = await Session(service).trials(SINGLE)
                for progress in (2.0, 5.0, math.nan, 5.0):
                    await Session(service).client.ReportProgress(
                        service_pb.ReportProgressRequest(trial_id=trial.trial_id, run=1, progress=progress)
                    )
            async with searcher(**backend) as service:
                assert (await Session(service).search()).progress == pytest.approx(0.5)
                assert (await Session(service).operation(trial.trial_id)).progress == 5.0

        run(scenario)

    def test_wrong_completions_are_refused_and_change_nothing(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                with pytest.raises(FailedPreconditionError, match="is of length 10, not 11"):
                    await session.complete(trial.trial_id, 0.5, length=11)
                await session.complete(trial.trial_id, math.nan, length=10)
                await session.complete(trial.trial_id, math.nan, length=10)
                with pytest.raises(FailedPreconditionError, match=r"a second metric \(0\.5\) is not taken"):
                    await session.complete(trial.trial_id, 0.5, length=10)
                with pytest.raises(NotFoundError, match="no search knows trial"):
                    await session.complete(str(uuid.uuid4()), 0.5, length=10)
                with pytest.raises(InvalidArgumentError, match="trial_id must be a UUID"):
                    await session.complete("12", 0.5, length=10)
                with pytest.raises(InvalidArgumentError, match="run: must be the run that speaks"):
                    await session.complete(trial.trial_id, 0.5, length=10, of_run=0)
                assert (await session.search()).last_event_sequence == 2

        run(scenario)

    def test_a_trial_cannot_speak_for_another(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                one, other = (await session.trials(adaptive(max_trials=4)))[:2]
                impostor = service.trial(other.trial_id)
                with pytest.raises(PermissionDeniedError):
                    await impostor.CompleteOperation(
                        service_pb.CompleteOperationRequest(
                            trial_id=one.trial_id, run=1, length=4, metric=0.1
                        )
                    )
                with pytest.raises(PermissionDeniedError):
                    await impostor.ReportEvents(
                        service_pb.ReportEventsRequest(search_id=SEARCH, events=[closed(one.request_id)])
                    )

        run(scenario)


class TestSeals:
    def test_a_superseded_run_has_no_authority(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                await session.seal(trial.trial_id, 2)
            async with searcher(**backend) as service:
                session = Session(service)
                await session.seal(trial.trial_id, 1)
                old = service.trial(trial.trial_id, of_run=1)
                calls: list[Awaitable[Any]] = [
                    old.CompleteOperation(
                        service_pb.CompleteOperationRequest(
                            trial_id=trial.trial_id, run=1, length=10, metric=0.1
                        )
                    ),
                    old.ReportProgress(
                        service_pb.ReportProgressRequest(trial_id=trial.trial_id, run=1, progress=1.0)
                    ),
                    old.GetOperation(service_pb.GetOperationRequest(trial_id=trial.trial_id, run=1)),
                ]
                for call in calls:
                    with pytest.raises(RunSupersededError, match="only run 2 and later ones"):
                        await call
                await session.complete(trial.trial_id, 0.1, length=10, of_run=2)

        run(scenario)

    def test_an_idle_trial_is_told_to_run_again_when_it_is_promoted(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                asked = spec(
                    async_halving=pb.AsyncHalvingMethod(
                        num_rungs=2, max_length=8, max_trials=4, divisor=4.0, max_concurrent_trials=4
                    )
                )
                trials = await session.trials(asked)
                await session.complete(trials[0].trial_id, 0.1, length=2)
                assert await session.seal(trials[0].trial_id, 2) == pb.TrialOperation(
                    length=2, completed=True
                )
            async with searcher(**backend) as service:
                session = Session(service)
                before = (await session.search()).last_action_sequence
                for number, trial in enumerate(trials[1:], start=2):
                    await session.complete(trial.trial_id, number / 10, length=2)
                (again, *_) = await session.actions(before)
                assert again.run_trial == pb.Action.RunTrial(trial_id=trials[0].trial_id, length=8)
                operation = await session.operation(trials[0].trial_id, of_run=2)
                assert operation == pb.TrialOperation(length=8)

        run(scenario)

    def test_the_answer_to_a_seal_settles_what_an_exit_meant(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                assert not (await session.seal(trial.trial_id, 1)).completed
                await session.complete(trial.trial_id, 0.5, length=10)
                for _ in range(2):
                    assert (await session.seal(trial.trial_id, 2)).completed
                with pytest.raises(InvalidArgumentError, match="min_run: must be a run"):
                    await session.seal(trial.trial_id, 0)

        run(scenario)


class TestEvents:
    def test_an_exit_ends_its_trial(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                event = exited(trial.request_id, pb.EXIT_REASON_ERRORED)
                last = await session.report(event)
                assert await session.report(event) == last
                assert await session.report(closed(trial.request_id)) == last
                found = await session.search()
                assert (found.state, found.trials_closed) == (pb.SEARCH_STATE_SHUT_DOWN, 1)
                assert (await session.actions())[-1].shutdown == pb.Action.Shutdown(failure=True)
                with pytest.raises(FailedPreconditionError, match=r"left the search \(errored\)"):
                    await session.complete(trial.trial_id, 0.5, length=10)

        run(scenario)

    def test_a_refused_trial_is_replaced(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                trials = await session.trials(spec(random=pb.RandomMethod(max_length=5, max_trials=2)))
                before = (await session.search()).last_action_sequence
                await session.report(exited(trials[0].request_id, pb.EXIT_REASON_INVALID_HP))
                kinds = [action.WhichOneof("kind") for action in await session.actions(before)]
                assert kinds == ["create_trial", "close_trial"]
                assert (await session.search()).trials_requested == 3

        run(scenario)

    def test_an_identifier_is_taken_once(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                trials = await session.trials(adaptive(max_trials=4))
                await session.report(exited(trials[0].request_id, pb.EXIT_REASON_ERRORED, "one"))
                last = await session.report(exited(trials[1].request_id, pb.EXIT_REASON_ERRORED, "two"))
                again = exited(trials[2].request_id, pb.EXIT_REASON_ERRORED, "one")
                assert await session.report(again) == last
                assert (await session.replay()).equal

        run(scenario)

    def test_events_that_cannot_be_are_refused(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                with pytest.raises(NotFoundError, match="is not of this search"):
                    await session.report(closed(str(uuid.uuid4())))
                with pytest.raises(FailedPreconditionError, match="report first why it exited"):
                    await session.report(closed(trial.request_id))
                with pytest.raises(InvalidArgumentError, match="exited for reason 0"):
                    await session.report(exited(trial.request_id, pb.EXIT_REASON_UNSPECIFIED))
                with pytest.raises(InvalidArgumentError, match="must identify the event"):
                    await session.report(closed(trial.request_id, ""))
                with pytest.raises(InvalidArgumentError, match="must not begin with '#'"):
                    await session.report(closed(trial.request_id, "#1"))
                with pytest.raises(InvalidArgumentError, match="must be trial_created, trial_closed or"):
                    await session.report(pb.Event(event_id="x", started=pb.Event.Started()))
                with pytest.raises(NotFoundError, match="does not exist"):
                    await Session(service, str(uuid.uuid4())).report(closed(trial.request_id))
                assert (await session.search()).last_event_sequence == 1

        run(scenario)

    def test_what_came_before_a_refused_event_is_kept(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                created = pb.Event.TrialCreated(request_id=trial.request_id)
                with pytest.raises(FailedPreconditionError):
                    await session.report(
                        pb.Event(event_id="a", trial_created=created), closed(trial.request_id)
                    )
                assert [entry.event.event_id for entry in await session.log()] == ["#1", "a"]

        run(scenario)


class TestValidationReports:
    def test_reports_stop_trials(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                first, second = await session.trials(TIMED)
                assert not await session.validate(first.trial_id, 3, metric=0.1, time=25.0)
                assert await session.validate(second.trial_id, 1, metric=0.2, time=25.0)
                assert await session.validate(second.trial_id, 1, metric=0.2, time=25.0)
                last = (await session.search()).last_event_sequence
                assert not await session.validate(first.trial_id, 3, metric=0.1, time=25.0)
                assert not await session.validate(first.trial_id, 2, metric=0.1, time=250.0)
                assert (await session.search()).last_event_sequence == last
                kinds = [action.WhichOneof("kind") for action in await session.actions()]
                assert kinds == ["create_trial", "create_trial", "stop_trial", "create_trial"]
                assert (await session.operation(second.trial_id)).closed
            async with searcher(**backend) as service:
                session = Session(service)
                assert not await session.validate(first.trial_id, 3, metric=0.1, time=25.0)
                assert (await session.search()).last_event_sequence == last
                assert await session.validate(first.trial_id, 9, metric=0.1, time=100.0)
                assert (await session.replay()).equal

        run(scenario)

    def test_a_report_without_what_decides_is_refused(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                first, _ = await session.trials(TIMED)
                with pytest.raises(InvalidArgumentError, match="validation 4 lacks 'loss'"):
                    await session.validate(first.trial_id, 4, time=1.0)
                with pytest.raises(InvalidArgumentError, match="validation 4 lacks 'batches'"):
                    await session.validate(first.trial_id, 4, metric=1.0)
                with pytest.raises(InvalidArgumentError, match="must be a finite number"):
                    await session.validate(first.trial_id, 4, metric=1.0, time=math.inf)
                with pytest.raises(InvalidArgumentError, match="source: must name the spool"):
                    await session.validate(first.trial_id, 4, source="", metric=1.0, time=1.0)
                assert (await session.search()).last_event_sequence == 1
                assert not await session.validate(first.trial_id, 4, metric=math.nan, time=1.0)
                await session.seal(first.trial_id, 2)
                with pytest.raises(RunSupersededError):
                    await session.validate(first.trial_id, 5, metric=1.0, time=2.0)

        run(scenario)

    def test_reports_to_a_search_by_operations_are_refused(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                with pytest.raises(InvalidArgumentError, match="lacks"):
                    await session.validate(trial.trial_id, 1, metric=1.0)
                with pytest.raises(FailedPreconditionError, match="do not drive this search"):
                    await session.validate(trial.trial_id, 1, metric=1.0, time=1.0)

        run(scenario)


class TestFollowing:
    def test_a_follower_hears_of_actions_as_they_come(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
                (trial,) = await session.trials(SINGLE)
                heard: list[pb.Action] = []

                async def follow() -> None:
                    request = service_pb.FollowActionsRequest(search_id=SEARCH, after_sequence=1)
                    async for response in session.client.FollowActions(request):
                        heard.extend(response.actions)

                following = asyncio.create_task(follow())
                await session.complete(trial.trial_id, 0.5, length=10)
                await session.report(closed(trial.request_id))
                await following
                assert [action.WhichOneof("kind") for action in heard] == ["close_trial", "shutdown"]
                assert [action.event_sequence for action in heard] == [1, 3]

        run(scenario)

    def test_actions_come_again_until_one_asks_for_later_ones(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = Session(service)
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
                await Session(service).create(SINGLE)
                request = service_pb.FollowActionsRequest(search_id=SEARCH)
                stream = service.platform().FollowActions(request)
                assert len((await anext(aiter(stream))).actions) == 2
                await service.running.services[0].stop()
                with pytest.raises(UnavailableError, match="the searcher stops"):
                    await anext(aiter(stream))

        async def deletion() -> None:
            async with searcher(**backend) as service:
                session = Session(service, str(uuid.uuid4()))
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
            session = Session(service)
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
