"""Searches that continue after their end: extended, and with trials that are tried again."""

from __future__ import annotations

import math
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.services.searcher import Player, Searcher, adaptive, run, searcher, spec

from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import FailedPreconditionError, InvalidArgumentError

SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


async def played(service: Searcher, asked: spec_pb.SearchSpec) -> Player:
    client = service.platform()
    await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=asked))
    player = Player(client, SEARCH, lambda number: 1.0 / number)
    await player.play()
    return player


async def extend(player: Player, **given: int) -> search_pb.Search:
    request = service_pb.ExtendSearchRequest(
        search_id=SEARCH, request_id="more", extension=event_pb.Event.Extended(**given)
    )
    return (await player.client.ExtendSearch(request)).search


async def replays(player: Player) -> bool:
    request = service_pb.ReplaySearchRequest(search_id=SEARCH)
    return (await player.client.ReplaySearch(request)).equal


def halving(*, stop_once: bool = False) -> spec_pb.SearchSpec:
    return spec(
        async_halving=spec_pb.AsyncHalvingMethod(
            num_rungs=2,
            max_length=16,
            max_trials=8,
            divisor=4.0,
            max_concurrent_trials=4,
            stop_once=stop_once,
        )
    )


RANDOM = spec(random=spec_pb.RandomMethod(max_length=16, max_trials=8, max_concurrent_trials=3))
METHODS = [RANDOM, halving(), halving(stop_once=True), adaptive(max_trials=8, max_length=16)]
NAMES = ["random", "asha", "stopping", "adaptive"]


@pytest.mark.parametrize("asked", METHODS, ids=NAMES)
def test_more_trials_come_and_the_others_stay(backend: dict[str, Any], asked: spec_pb.SearchSpec) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            player = await played(service, asked)
            before = len(player.played.numbers)
            for _ in range(2):
                assert (await extend(player, max_trials=12)).status.state == search_pb.SEARCH_STATE_ACTIVE
            await player.play()
            assert len(player.played.numbers) >= before + 4
            assert await replays(player)

    run(scenario)


@pytest.mark.parametrize("asked", METHODS, ids=NAMES)
def test_a_longer_length_trains_the_best_on(backend: dict[str, Any], asked: spec_pb.SearchSpec) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            player = await played(service, asked)
            before = {number: list(lengths) for number, lengths in player.played.lengths.items()}
            await extend(player, max_length=100)
        # A new server continues from the log.
        async with searcher(**backend) as service:
            player.client = service.platform()
            await player.play()
            longer = [number for number, lengths in player.played.lengths.items() if lengths[-1] == 100]
            assert longer
            for number, lengths in before.items():
                assert player.played.lengths[number][: len(lengths)] == lengths
            if asked.HasField("random"):
                assert len(longer) == 8
            assert await replays(player)

    run(scenario)


def test_a_search_under_way_cannot_be_extended(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            client = service.platform()
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=RANDOM))
            with pytest.raises(FailedPreconditionError, match="extend it when it is over"):
                await extend(Player(client, SEARCH, float), max_trials=100)

    run(scenario)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"max_trials": 8}, InvalidArgumentError, "must be above the 8"),
        ({"max_length": 3}, InvalidArgumentError, "must be above the 16"),
        ({}, InvalidArgumentError, "must name max_trials"),
    ],
)
def test_an_extension_by_nothing_is_refused(
    backend: dict[str, Any], given: dict[str, int], error: type[Exception], message: str
) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            player = await played(service, RANDOM)
            with pytest.raises(error, match=message):
                await extend(player, **given)

    run(scenario)


@pytest.mark.parametrize("asked", METHODS[:3], ids=NAMES[:3])
def test_a_crashed_trial_is_tried_again_as_itself(
    backend: dict[str, Any], asked: spec_pb.SearchSpec
) -> None:  # as release 0.30 does
    async def scenario() -> None:
        async with searcher(**backend) as service:
            client = service.platform()
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=asked))
            player = Player(client, SEARCH, float)
            first = (await player.actions(0))[0].create_trial
            left = event_pb.Event.TrialExited(trial_key=first.trial_key, reason=event_pb.EXIT_REASON_ERRORED)
            await client.ReportEvents(
                service_pb.ReportEventsRequest(
                    search_id=SEARCH, events=[event_pb.Event(event_id="crash", trial_exited=left)]
                )
            )
            request = service_pb.RetryTrialRequest(trial_id=first.trial_id, request_id="again")
            for _ in range(2):
                operation = (await client.RetryTrial(request)).operation
                assert (operation.completed, operation.length > 0) == (False, True)
            actions = await player.actions(0)
            (again,) = (action.run_trial for action in actions if action.HasField("run_trial"))
            assert (again.trial_id, again.length) == (first.trial_id, operation.length)
            with pytest.raises(FailedPreconditionError, match="has not failed"):
                await client.RetryTrial(
                    service_pb.RetryTrialRequest(trial_id=first.trial_id, request_id="third")
                )
            complete = service_pb.CompleteOperationRequest(
                trial_id=first.trial_id, run=1, length=operation.length, metric=math.pi
            )
            await client.CompleteOperation(complete)
            assert await replays(player)

    run(scenario)


def test_a_trial_that_refused_its_hyperparameters_is_not_tried_again(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            client = service.platform()
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=halving()))
            first = (await Player(client, SEARCH, float).actions(0))[0].create_trial
            left = event_pb.Event.TrialExited(
                trial_key=first.trial_key, reason=event_pb.EXIT_REASON_INVALID_HP
            )
            event = event_pb.Event(event_id=str(uuid.uuid4()), trial_exited=left)
            await client.ReportEvents(service_pb.ReportEventsRequest(search_id=SEARCH, events=[event]))
            with pytest.raises(FailedPreconditionError, match="another trial took its place"):
                await client.RetryTrial(
                    service_pb.RetryTrialRequest(trial_id=first.trial_id, request_id="again")
                )

    run(scenario)
