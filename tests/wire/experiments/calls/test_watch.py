"""One stream watches many experiments, their trials and the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters.all_services import AllServices, all_services

from resolute import errors
from resolute.api.experiments.v1 import experiment_pb2
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute_experiments.servicers.watching import watch as watch_module
from resolute_experiments.store import trials

Response = pb2.WatchExperimentsResponse
Subscription = pb2.WatchExperimentsRequest.ExperimentSubscription
Queue = pb2.WatchExperimentsRequest.QueueSubscription


def key(number: int) -> experiment_pb2.ExperimentKey:
    return experiment_pb2.ExperimentKey(number=number)


def watching(
    service: AllServices, *subscriptions: Subscription, queue: Queue | None = None
) -> AsyncIterator[Any]:
    request = pb2.WatchExperimentsRequest(experiments=subscriptions, queue=queue)
    found: AsyncIterator[Any] = aiter_of(service.experiments.WatchExperiments(request))
    return found


async def aiter_of(call: Any) -> AsyncIterator[Any]:
    async for response in call:
        yield response


async def next_of(stream: AsyncIterator[Any], name: str) -> Any:
    async for response in stream:
        if response.key == name:
            return response
    raise AssertionError("the stream ended")


@pytest.mark.timeout(90)
def test_each_subscription_gets_its_state_and_then_its_changes_until_all_have_ended(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            for _ in range(2):
                await service.create(paused=True)
            stream = watching(
                service,
                Subscription(key="one", experiment=key(1)),
                Subscription(key="two", experiment=key(2)),
            )
            assert (await next_of(stream, "one")).experiment_change.experiment.number == 1
            assert (await next_of(stream, "two")).experiment_change.experiment.number == 2
            await service.experiments.KillExperiment(pb2.KillExperimentRequest(experiment=key(2)))
            while True:
                two = (await next_of(stream, "two")).experiment_change.experiment
                if two.state == experiment_pb2.EXPERIMENT_STATE_CANCELED:
                    break
            await service.experiments.KillExperiment(pb2.KillExperimentRequest(experiment=key(1)))
            last = None
            async for response in stream:
                assert response.key in {"one", ""}, "an experiment that has ended is watched no more"
                last = response.experiment_change.experiment if response.key else last
            assert last is not None
            assert last.state == experiment_pb2.EXPERIMENT_STATE_CANCELED

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_a_watch_goes_on_after_the_revision_that_was_seen(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await service.create(paused=True)
            async for seen in service.watch(1):
                if seen.trial_count == 3:
                    break
            whole = watching(service, Subscription(key="e", experiment=key(1), include_trials=True))
            first = (await next_of(whole, "e")).experiment_change
            assert len(first.trials) == 3
            rest = Subscription(
                key="e", experiment=key(1), after_revision=first.experiment.revision, include_trials=True
            )
            later = watching(service, rest)
            number = first.trials[1].number

            def change(connection: Any) -> None:
                trials.update(connection, trials.get(connection, number=number), status="validates")

            await service.database.write(change)
            changed = (await next_of(later, "e")).experiment_change
            assert [(one.number, one.status) for one in changed.trials] == [(number, "validates")]

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_trials_that_do_not_fit_one_response_come_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "_MAX_BYTES", 10)

    async def body() -> None:
        async with all_services(tmp_path) as service:
            await service.create(paused=True)
            async for seen in service.watch(1):
                if seen.trial_count == 3:
                    break
            stream = watching(service, Subscription(key="e", experiment=key(1), include_trials=True))
            changes = [(await next_of(stream, "e")).experiment_change for _ in range(3)]
            assert [len(change.trials) for change in changes] == [1, 1, 1]
            assert [change.HasField("experiment") for change in changes] == [False, False, True]

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_the_queue_is_sent_as_it_is_and_then_as_it_changes(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await service.create(paused=True)
            stream = watching(service, queue=Queue(key="queue", max_jobs=1))
            first = (await next_of(stream, "queue")).queue_change
            assert ([job.experiment_number for job in first.jobs], first.total_jobs) == ([1], 1)
            await service.create(paused=True, resources={"priority": 1})
            then = (await next_of(stream, "queue")).queue_change
            assert ([job.experiment_number for job in then.jobs], then.total_jobs) == ([2], 2)

    asyncio.run(body())


@pytest.mark.timeout(60)
def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await service.create(paused=True)
            one = Subscription(key="one", experiment=key(1))
            for wrong in (
                [],
                [one, one],
                [Subscription(key="", experiment=key(1))],
                [Subscription(key="x" * 101, experiment=key(1))],
                [Subscription(key=str(number), experiment=key(1)) for number in range(1001)],
                [Subscription(key="one")],
            ):
                with pytest.raises(errors.InvalidArgumentError):
                    await next_of(watching(service, *wrong), "one")
            with pytest.raises(errors.NotFoundError):
                await next_of(watching(service, Subscription(key="one", experiment=key(99))), "one")

    asyncio.run(body())
