"""What the searcher promises about single trials, on every backend and over real gRPC."""

from __future__ import annotations

import math
import uuid
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from support.services.searcher import (
    SEARCH,
    SINGLE,
    TIMED,
    SearchSession,
    adaptive,
    closed,
    exited,
    run,
    searcher,
    spec,
)

from resolute.api.searcher.v1 import action_pb2 as action_pb
from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import operation_pb2 as operation_pb
from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    RunSupersededError,
)


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


class TestOperations:
    def test_a_trial_is_led_through_its_operation(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                chief = service.trial(trial.trial_id)
                asked = service_pb.GetOperationRequest(trial_id=trial.trial_id, run=1)
                operation = (await chief.GetOperation(asked)).operation
                assert operation == operation_pb.TrialOperation(length=10, closed=True)
                await chief.ReportProgress(
                    service_pb.ReportProgressRequest(trial_id=trial.trial_id, run=1, progress=4.0)
                )
                assert (await session.search()).status.progress == pytest.approx(0.4)
                done = service_pb.CompleteOperationRequest(
                    trial_id=trial.trial_id, run=1, length=10, metric=0.5
                )
                for _ in range(2):
                    await chief.CompleteOperation(done)
                assert (await session.search()).status.last_event_sequence == 2
                operation = (await chief.GetOperation(asked)).operation
                assert (operation.completed, operation.closed) == (True, True)
                assert (await session.search()).status.state == search_pb.SEARCH_STATE_ACTIVE
                assert await session.report(closed(trial.trial_key)) == 3
                assert (await session.search()).status.state == search_pb.SEARCH_STATE_SHUT_DOWN
                assert (await session.actions())[-1].shutdown == action_pb.Action.Shutdown()

        run(scenario)

    def test_progress_survives_a_restart(self, backend: dict[str, Any]) -> None:  # as release 0.30 does
        async def scenario() -> None:
            async with searcher(**backend) as service:
                (trial,) = await SearchSession(service).trials(SINGLE)
                for progress in (2.0, 5.0, math.nan, 5.0):
                    await SearchSession(service).client.ReportProgress(
                        service_pb.ReportProgressRequest(trial_id=trial.trial_id, run=1, progress=progress)
                    )
            async with searcher(**backend) as service:
                assert (await SearchSession(service).search()).status.progress == pytest.approx(0.5)
                assert (await SearchSession(service).operation(trial.trial_id)).progress == 5.0

        run(scenario)

    def test_wrong_completions_are_refused_and_change_nothing(
        self, backend: dict[str, Any]
    ) -> None:  # as release 0.30 does
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                with pytest.raises(FailedPreconditionError, match="is of length 10, not 11"):
                    await session.complete(trial.trial_id, 0.5, length=11)
                await session.complete(trial.trial_id, math.nan, length=10)
                await session.complete(trial.trial_id, math.nan, length=10)
                with pytest.raises(FailedPreconditionError, match=r"a second metric \(0\.5\) is not taken"):
                    await session.complete(trial.trial_id, 0.5, length=10)
                with pytest.raises(NotFoundError, match="no search has trial"):
                    await session.complete(str(uuid.uuid4()), 0.5, length=10)
                with pytest.raises(InvalidArgumentError, match="trial_id must be a UUID"):
                    await session.complete("12", 0.5, length=10)
                with pytest.raises(InvalidArgumentError, match="run: must be the run that calls"):
                    await session.complete(trial.trial_id, 0.5, length=10, of_run=0)
                assert (await session.search()).status.last_event_sequence == 2

        run(scenario)

    def test_a_trial_cannot_speak_for_another(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
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
                        service_pb.ReportEventsRequest(search_id=SEARCH, events=[closed(one.trial_key)])
                    )

        run(scenario)


class TestSeals:
    def test_a_superseded_run_has_no_authority(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                await session.seal(trial.trial_id, 2)
            async with searcher(**backend) as service:
                session = SearchSession(service)
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
                    with pytest.raises(RunSupersededError, match="calls of runs below 2 are refused"):
                        await call
                await session.complete(trial.trial_id, 0.1, length=10, of_run=2)

        run(scenario)

    def test_an_idle_trial_is_told_to_run_again_when_it_is_promoted(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                asked = spec(
                    async_halving=spec_pb.AsyncHalvingMethod(
                        num_rungs=2, max_length=8, max_trials=4, divisor=4.0, max_concurrent_trials=4
                    )
                )
                trials = await session.trials(asked)
                await session.complete(trials[0].trial_id, 0.1, length=2)
                assert await session.seal(trials[0].trial_id, 2) == operation_pb.TrialOperation(
                    length=2, completed=True
                )
            async with searcher(**backend) as service:
                session = SearchSession(service)
                before = (await session.search()).status.last_action_sequence
                for number, trial in enumerate(trials[1:], start=2):
                    await session.complete(trial.trial_id, number / 10, length=2)
                (again, *_) = await session.actions(before)
                assert again.run_trial == action_pb.Action.RunTrial(trial_id=trials[0].trial_id, length=8)
                operation = await session.operation(trials[0].trial_id, of_run=2)
                assert operation == operation_pb.TrialOperation(length=8)

        run(scenario)

    def test_the_answer_to_a_seal_settles_what_an_exit_meant(
        self, backend: dict[str, Any]
    ) -> None:  # as release 0.30 does
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                assert not (await session.seal(trial.trial_id, 1)).completed
                await session.complete(trial.trial_id, 0.5, length=10)
                for _ in range(2):
                    assert (await session.seal(trial.trial_id, 2)).completed
                with pytest.raises(InvalidArgumentError, match="min_run: must be a run"):
                    await session.seal(trial.trial_id, 0)

        run(scenario)


class TestEvents:
    def test_an_exit_ends_its_trial(self, backend: dict[str, Any]) -> None:  # as release 0.30 does
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                event = exited(trial.trial_key, event_pb.EXIT_REASON_ERRORED)
                last = await session.report(event)
                assert await session.report(event) == last
                assert await session.report(closed(trial.trial_key)) == last
                found = (await session.search()).status
                assert (found.state, found.trials_closed) == (search_pb.SEARCH_STATE_SHUT_DOWN, 1)
                assert (await session.actions())[-1].shutdown == action_pb.Action.Shutdown(failure=True)
                with pytest.raises(FailedPreconditionError, match=r"left the search \(errored\)"):
                    await session.complete(trial.trial_id, 0.5, length=10)

        run(scenario)

    def test_a_refused_trial_is_replaced(self, backend: dict[str, Any]) -> None:  # as release 0.30 does
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                trials = await session.trials(spec(random=spec_pb.RandomMethod(max_length=5, max_trials=2)))
                before = (await session.search()).status.last_action_sequence
                await session.report(exited(trials[0].trial_key, event_pb.EXIT_REASON_INVALID_HP))
                kinds = [action.WhichOneof("kind") for action in await session.actions(before)]
                assert kinds == ["create_trial", "close_trial"]
                assert (await session.search()).status.trials_requested == 3

        run(scenario)

    def test_an_identifier_is_taken_once(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                trials = await session.trials(adaptive(max_trials=4))
                await session.report(exited(trials[0].trial_key, event_pb.EXIT_REASON_ERRORED, "one"))
                last = await session.report(exited(trials[1].trial_key, event_pb.EXIT_REASON_ERRORED, "two"))
                again = exited(trials[2].trial_key, event_pb.EXIT_REASON_ERRORED, "one")
                assert await session.report(again) == last
                assert (await session.replay()).equal

        run(scenario)

    def test_events_that_cannot_be_are_refused(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                with pytest.raises(NotFoundError, match="is not of this search"):
                    await session.report(closed(str(uuid.uuid4())))
                with pytest.raises(FailedPreconditionError, match="report first why it exited"):
                    await session.report(closed(trial.trial_key))
                with pytest.raises(InvalidArgumentError, match="exited for reason 0"):
                    await session.report(exited(trial.trial_key, event_pb.EXIT_REASON_UNSPECIFIED))
                with pytest.raises(InvalidArgumentError, match="must identify the event"):
                    await session.report(closed(trial.trial_key, ""))
                with pytest.raises(InvalidArgumentError, match="must not begin with '#'"):
                    await session.report(closed(trial.trial_key, "#1"))
                with pytest.raises(InvalidArgumentError, match="must be trial_created, trial_closed or"):
                    await session.report(event_pb.Event(event_id="x", started=event_pb.Event.Started()))
                with pytest.raises(NotFoundError, match="does not exist"):
                    await SearchSession(service, str(uuid.uuid4())).report(closed(trial.trial_key))
                assert (await session.search()).status.last_event_sequence == 1

        run(scenario)

    def test_what_came_before_a_refused_event_is_kept(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                created = event_pb.Event.TrialCreated(trial_key=trial.trial_key)
                with pytest.raises(FailedPreconditionError):
                    await session.report(
                        event_pb.Event(event_id="a", trial_created=created), closed(trial.trial_key)
                    )
                assert [entry.event.event_id for entry in await session.log()] == ["#1", "#2"]

        run(scenario)


class TestValidationReports:
    def test_reports_stop_trials(self, backend: dict[str, Any]) -> None:  # as release 0.30 does
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                first, second = await session.trials(TIMED)
                assert not await session.validate(first.trial_id, 3, metric=0.1, time_metric=25.0)
                assert await session.validate(second.trial_id, 1, metric=0.2, time_metric=25.0)
                assert await session.validate(second.trial_id, 1, metric=0.2, time_metric=25.0)
                last = (await session.search()).status.last_event_sequence
                assert not await session.validate(first.trial_id, 3, metric=0.1, time_metric=25.0)
                assert not await session.validate(first.trial_id, 2, metric=0.1, time_metric=250.0)
                assert (await session.search()).status.last_event_sequence == last
                kinds = [action.WhichOneof("kind") for action in await session.actions()]
                assert kinds == ["create_trial", "create_trial", "stop_trial", "create_trial"]
                assert (await session.operation(second.trial_id)).closed
            async with searcher(**backend) as service:
                session = SearchSession(service)
                assert not await session.validate(first.trial_id, 3, metric=0.1, time_metric=25.0)
                assert (await session.search()).status.last_event_sequence == last
                assert await session.validate(first.trial_id, 9, metric=0.1, time_metric=100.0)
                assert (await session.replay()).equal

        run(scenario)

    def test_a_report_without_what_decides_is_refused(
        self, backend: dict[str, Any]
    ) -> None:  # as release 0.30 does
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                first, _ = await session.trials(TIMED)
                wrong: list[tuple[str, dict[str, Any]]] = [
                    ("validation 4 lacks 'loss'", {"time_metric": 1.0}),
                    ("validation 4 lacks 'batches'", {"metric": 1.0}),
                    ("must be a finite number", {"metric": 1.0, "time_metric": math.inf}),
                ]
                for complaint, values in wrong:
                    (refusal,) = (await session.report_validation(first.trial_id, 4, **values)).refusals
                    assert refusal.sequence == 4
                    assert complaint in refusal.message
                with pytest.raises(InvalidArgumentError, match="source: must name the spool"):
                    await session.validate(first.trial_id, 4, source="", metric=1.0, time_metric=1.0)
                assert (await session.search()).status.last_event_sequence == 1
                assert not await session.validate(first.trial_id, 4, metric=math.nan, time_metric=1.0)
                await session.seal(first.trial_id, 2)
                with pytest.raises(RunSupersededError):
                    await session.validate(first.trial_id, 5, metric=1.0, time_metric=2.0)

        run(scenario)

    def test_reports_to_a_search_by_operations_are_refused(self, backend: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with searcher(**backend) as service:
                session = SearchSession(service)
                (trial,) = await session.trials(SINGLE)
                with pytest.raises(FailedPreconditionError, match="do not drive this search"):
                    await session.validate(trial.trial_id, 1, metric=1.0)
                with pytest.raises(FailedPreconditionError, match="do not drive this search"):
                    await session.validate(trial.trial_id, 1, metric=1.0, time_metric=1.0)

        run(scenario)
