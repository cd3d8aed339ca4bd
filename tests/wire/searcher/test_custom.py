"""Custom searches over the wire: a method answers events, is killed between any two steps, and continues."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from support.services.searcher import Player, run, searcher, spec

from resolute.api.searcher.v1 import operation_pb2 as operation_pb
from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.client.connection.endpoint import Endpoint
from resolute.client.connection.session import Session
from resolute.client.remote.searches import PendingEvents, Searches
from resolute.client.schema.states import ExperimentState
from resolute.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from resolute.searcher import (
    Close,
    Create,
    ExitedReason,
    LocalSearchRunner,
    Operation,
    SearcherState,
    SearchMethod,
    Shutdown,
    ValidateAfter,
)

SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"
CUSTOM = spec(external=spec_pb.ExternalMethod(name="custom"))


class TwoSteps(SearchMethod):
    """Three trials; each trains to 4, the better ones to 8."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def initial_operations(self, searcher_state: SearcherState) -> list[Operation]:
        made: list[Operation] = []
        for number in range(3):
            trial_key = uuid.UUID(int=number, version=4)
            made += [Create(trial_key, {"x": number}, None), ValidateAfter(trial_key, 4)]
        return made

    def on_trial_created(self, searcher_state: SearcherState, trial_key: uuid.UUID) -> list[Operation]:
        return []

    def on_validation_completed(
        self, searcher_state: SearcherState, trial_key: uuid.UUID, metric: Any, train_length: int
    ) -> list[Operation]:
        if train_length == 4 and metric < 0.9:
            return [ValidateAfter(trial_key, 8)]
        return [Close(trial_key)]

    def on_trial_closed(self, searcher_state: SearcherState, trial_key: uuid.UUID) -> list[Operation]:
        return [Shutdown()] if len(searcher_state.trials_closed) == 3 else []

    def progress(self, searcher_state: SearcherState) -> float:
        return len(searcher_state.trials_closed) / 3

    def on_trial_exited_early(
        self, searcher_state: SearcherState, trial_key: uuid.UUID, exited_reason: ExitedReason
    ) -> list[Operation]:
        return []


class KilledError(Exception):
    """The runner's process is gone."""


class Flaky:
    """A search whose client dies at some of its steps, before or after they take effect."""

    def __init__(self, searches: Searches, kills: set[int]) -> None:
        self.searches, self.kills, self.steps = searches, kills, 0

    def poll(self, *, wait: float) -> PendingEvents:
        return self.searches.poll(SEARCH, wait=min(wait, 0.5))

    def post(self, operations: Sequence[operation_pb.Operation], *, answers: int) -> None:
        self._step()
        self.searches.post(SEARCH, operations, answers=answers)
        self._step()

    def experiment_state(self) -> ExperimentState:
        return ExperimentState.ACTIVE

    def _step(self) -> None:
        self.steps += 1
        if self.steps in self.kills:
            raise KilledError


def drive(address: str, token: str, folder: Path, kills: set[int]) -> int:
    endpoint = Endpoint(
        address=address,
        token=lambda: token,
        token_origin="test",
        remedy="none",
        credential_file=folder / "credential",
    )
    with Session(endpoint) as session:
        flaky = Flaky(Searches(session), kills)
        deaths = 0
        while True:
            runner = LocalSearchRunner(TwoSteps(), folder)
            try:
                runner.drive(flaky, experiment_id=7, prior=runner.load_state(7))
                return deaths
            except KilledError:
                deaths += 1


@pytest.mark.parametrize("kills", [set(), {1, 2, 3, 4}, {5, 8, 9, 14}], ids=["never", "early", "late"])
def test_a_method_drives_a_search_to_its_end(tmp_path: Path, kills: set[int]) -> None:  # as release 0.30 does
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            client = service.platform()
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=CUSTOM))
            driving = asyncio.create_task(
                asyncio.to_thread(
                    drive, service.running.address, service.running.user_token(), tmp_path / "state", kills
                )
            )
            player = Player(client, SEARCH, lambda number: number / 3)
            following = client.FollowActions(service_pb.FollowActionsRequest(search_id=SEARCH))
            await following.__aiter__().__anext__()  # the method has given its first answer
            following.cancel()
            played = await player.play()
            assert await driving == len(kills)
            assert played.in_order() == [[4, 8], [4, 8], [4]]
            replayed = await client.ReplaySearch(service_pb.ReplaySearchRequest(search_id=SEARCH))
            assert replayed.equal
            found = (await client.GetSearch(service_pb.GetSearchRequest(search_id=SEARCH))).search.status
            assert (found.state, found.progress) == (search_pb.SEARCH_STATE_SHUT_DOWN, 1.0)

    run(scenario, deadline=60)


def test_a_client_that_comes_before_its_search_waits_for_it(tmp_path: Path) -> None:  # as release 0.30 does
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            client = service.platform()
            early = asyncio.ensure_future(
                client.PollEvents(
                    service_pb.PollEventsRequest(search_id=SEARCH, max_wait=Duration(seconds=30))
                )
            )
            with pytest.raises(NotFoundError):
                await client.PollEvents(service_pb.PollEventsRequest(search_id=SEARCH))
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=CUSTOM))
            assert [event.sequence for event in (await early).events] == [1]

    run(scenario)


def created(trial_key: str) -> operation_pb.Operation:
    return operation_pb.Operation(create=operation_pb.Operation.Create(trial_key=trial_key))


@pytest.mark.parametrize(
    ("operations", "answers", "error", "message"),
    [
        ([], 5, FailedPreconditionError, "no event 5 to answer yet"),
        ([], 0, InvalidArgumentError, "must name the event"),
        ([created("7")], 1, InvalidArgumentError, "must be a UUID"),
        ([created(SEARCH), created(SEARCH)], 1, FailedPreconditionError, "is there already"),
        (
            [operation_pb.Operation(close=operation_pb.Operation.Close(trial_key=SEARCH))],
            1,
            FailedPreconditionError,
            "is not of this search",
        ),
        (
            [operation_pb.Operation(stop=operation_pb.Operation.Stop(trial_key=SEARCH))],
            1,
            InvalidArgumentError,
            "cannot be posted",
        ),
        (
            [operation_pb.Operation(progress=operation_pb.Operation.Progress(progress=2))],
            1,
            InvalidArgumentError,
            "outside of 0 to 1",
        ),
    ],
)
def test_answers_that_make_no_sense_are_refused_whole(  # as release 0.30 does
    tmp_path: Path,
    operations: list[operation_pb.Operation],
    answers: int,
    error: type[Exception],
    message: str,
) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            client = service.platform()
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=CUSTOM))
            request = service_pb.PostOperationsRequest(
                search_id=SEARCH, operations=operations, answered_sequence=answers
            )
            with pytest.raises(error, match=message):
                await client.PostOperations(request)
            told = await client.PollEvents(service_pb.PollEventsRequest(search_id=SEARCH))
            assert [event.sequence for event in told.events] == [1]

    run(scenario)


def test_a_search_that_decides_by_itself_has_no_client(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            client = service.platform()
            asked = spec(single=spec_pb.SingleMethod(max_length=1))
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=asked))
            with pytest.raises(FailedPreconditionError, match="only custom searches"):
                await client.PollEvents(service_pb.PollEventsRequest(search_id=SEARCH))

    run(scenario)
