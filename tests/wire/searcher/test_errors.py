"""What is wrong has a defined answer, as a client of any language gets it on the wire."""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
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

from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResoluteError,
)

HALVING = spec(
    async_halving=spec_pb.AsyncHalvingMethod(
        num_rungs=2, max_length=9, max_trials=3, divisor=3.0, max_concurrent_trials=3
    )
)


@asynccontextmanager
async def session_of(tmp_path: Path) -> AsyncIterator[SearchSession]:
    async with searcher(tmp_path) as service:
        yield SearchSession(service)


def completion(trial_id: str, *, length: int = 10) -> service_pb.CompleteOperationRequest:
    return service_pb.CompleteOperationRequest(trial_id=trial_id, run=1, length=length)


@pytest.mark.parametrize("smaller", [True, False])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_odd_numbers_are_taken_and_ordered(tmp_path: Path, odd: float, smaller: bool) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            asked = spec_pb.SearchSpec()
            asked.CopyFrom(HALVING)
            asked.smaller_is_better = smaller
            trials = await session.trials(asked)
            for trial, metric in zip(trials, (odd, 0.1, 0.2), strict=True):
                await session.complete(trial.trial_id, metric, length=3)
            lengths = [(await session.operation(trial.trial_id)).length for trial in trials]
            # Infinity the good way is the best there is; NaN and the other one are the worst.
            best = 0 if odd == (-math.inf if smaller else math.inf) else (1 if smaller else 2)
            assert lengths == [9 if number == best else 3 for number in range(3)]
            assert (await session.replay()).equal

    run(scenario)


def test_a_completion_without_a_metric_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            (trial,) = await session.trials(SINGLE)
            with pytest.raises(InvalidArgumentError, match="metric: must be the number"):
                await session.client.CompleteOperation(completion(trial.trial_id))
            # Zero is a number.
            await session.complete(trial.trial_id, 0.0, length=10)
            assert (await session.operation(trial.trial_id)).completed

    run(scenario)


def test_a_metric_that_is_text_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            (trial,) = await session.trials(SINGLE)
            sent = completion(trial.trial_id)
            # What a client sends whose contract says text there: field 4 with a length and its letters.
            sent.MergeFromString(bytes([4 << 3 | 2, 4]) + b"good")
            with pytest.raises(InvalidArgumentError, match="metric: must be the number"):
                await session.client.CompleteOperation(sent)
            assert (await session.search()).status.last_event_sequence == 1

    run(scenario)


def test_a_validation_whose_metric_is_missing_or_text_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            first, _ = await session.trials(TIMED)
            missing = service_pb.ReportValidationsRequest.Validation(sequence=1, time_metric=1.0)
            text = service_pb.ReportValidationsRequest.Validation(sequence=2, time_metric=1.0)
            text.MergeFromString(bytes([2 << 3 | 2, 4]) + b"good")
            timeless = service_pb.ReportValidationsRequest.Validation(sequence=3, metric=0.5)
            negative = service_pb.ReportValidationsRequest.Validation(
                sequence=4, metric=0.5, time_metric=-1.0
            )
            good = service_pb.ReportValidationsRequest.Validation(sequence=5, metric=0.5, time_metric=1.0)
            request = service_pb.ReportValidationsRequest(
                trial_id=first.trial_id,
                run=1,
                source="spool",
                validations=[missing, text, timeless, negative, good],
            )
            for _ in range(2):  # sent again, all is as before
                refusals = (await session.client.ReportValidations(request)).refusals
                assert [refusal.sequence for refusal in refusals] == [1, 2, 3, 4]
                complaints = ["lacks 'loss'", "lacks 'loss'", "lacks 'batches'", "not negative"]
                for refusal, complaint in zip(refusals, complaints, strict=True):
                    assert complaint in refusal.message
                (entry,) = (await session.log())[1:]
                assert entry.event.validation_reported.source_sequence == 5

    run(scenario)


@pytest.mark.parametrize("length", [0, -1, 9, 11, 2**63 - 1])
def test_a_wrong_length_is_refused_and_the_right_one_named(tmp_path: Path, length: int) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            (trial,) = await session.trials(SINGLE)
            with pytest.raises(
                FailedPreconditionError, match=f"is of length 10, not {length}; complete that"
            ):
                await session.complete(trial.trial_id, 0.5, length=length)
            assert (await session.search()).status.last_event_sequence == 1

    run(scenario)


def test_completions_of_trials_that_are_over_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            one, other, _ = await session.trials(HALVING)
            await session.report(exited(one.trial_key, event_pb.EXIT_REASON_ERRORED))
            with pytest.raises(FailedPreconditionError, match=r"left the search \(errored\)"):
                await session.complete(one.trial_id, 0.5, length=3)
            await session.complete(other.trial_id, 0.5, length=3)
            last = (await session.search()).status.last_event_sequence
            with pytest.raises(FailedPreconditionError, match=r"already completed, with metric 0\.5"):
                await session.complete(other.trial_id, 0.6, length=3)
            with pytest.raises(FailedPreconditionError, match="has no operation to complete"):
                await session.complete(other.trial_id, 0.6, length=9)
            assert (await session.search()).status.last_event_sequence == last

    run(scenario)


def test_a_completion_of_a_closed_trial_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            (trial,) = await session.trials(SINGLE)
            await session.complete(trial.trial_id, 0.5, length=10)
            await session.report(closed(trial.trial_key))
            # The same again changes nothing; anything else is refused, though the search is over.
            await session.complete(trial.trial_id, 0.5, length=10)
            with pytest.raises(FailedPreconditionError, match="already completed"):
                await session.complete(trial.trial_id, 0.4, length=10)
            with pytest.raises(FailedPreconditionError, match="has no operation to complete"):
                await session.complete(trial.trial_id, 0.5, length=20)
            assert (await session.replay()).equal

    run(scenario)


def test_foreign_trials_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            session = SearchSession(service)
            mine, other = (await session.trials(adaptive(max_trials=4)))[:2]
            neighbour = SearchSession(service, str(uuid.uuid4()))
            # Of another seed: equal seeds give equal request ids.
            (foreign,) = await neighbour.trials(spec(single=spec_pb.SingleMethod(max_length=10), seed=8))
            with pytest.raises(PermissionDeniedError):
                await service.trial(mine.trial_id).CompleteOperation(completion(other.trial_id, length=4))
            with pytest.raises(PermissionDeniedError):
                await service.trial(mine.trial_id).CompleteOperation(completion(foreign.trial_id))
            # Even the platform cannot end a trial in a search that is not its own.
            with pytest.raises(NotFoundError, match="is not of this search"):
                await session.report(exited(foreign.trial_key, event_pb.EXIT_REASON_ERRORED))
            with pytest.raises(NotFoundError, match="no search has trial"):
                await session.complete(str(uuid.uuid4()), 0.5, length=4)

    run(scenario)


def test_a_search_that_is_unknown_is_not_found_by_any_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with session_of(tmp_path) as session:
            client, unknown = session.client, SEARCH
            trial = str(uuid.uuid4())
            calls: list[Awaitable[Any]] = [
                client.GetSearch(service_pb.GetSearchRequest(search_id=unknown)),
                client.ListEvents(service_pb.ListEventsRequest(search_id=unknown)),
                client.ReplaySearch(service_pb.ReplaySearchRequest(search_id=unknown)),
                client.AcknowledgeActions(
                    service_pb.AcknowledgeActionsRequest(search_id=unknown, sequence=1)
                ),
                client.ReportEvents(
                    service_pb.ReportEventsRequest(search_id=unknown, events=[closed(trial)])
                ),
                client.PollEvents(service_pb.PollEventsRequest(search_id=unknown)),
                client.PostOperations(
                    service_pb.PostOperationsRequest(search_id=unknown, answered_sequence=1)
                ),
                client.ExtendSearch(
                    service_pb.ExtendSearchRequest(
                        search_id=unknown, request_id="more", extension=event_pb.Event.Extended(max_trials=9)
                    )
                ),
                client.GetOperation(service_pb.GetOperationRequest(trial_id=trial)),
                client.ReportProgress(service_pb.ReportProgressRequest(trial_id=trial, run=1)),
                client.ReportValidations(
                    service_pb.ReportValidationsRequest(trial_id=trial, run=1, source="spool")
                ),
                client.FenceTrial(service_pb.FenceTrialRequest(trial_id=trial, min_run=1)),
                client.RetryTrial(service_pb.RetryTrialRequest(trial_id=trial, request_id="again")),
                anext(aiter(client.FollowActions(service_pb.FollowActionsRequest(search_id=unknown)))),
            ]
            for call in calls:
                with pytest.raises(ResoluteError) as caught:
                    await call
                assert isinstance(caught.value, NotFoundError), caught.value
                assert unknown in str(caught.value) or trial in str(caught.value)

    run(scenario)
