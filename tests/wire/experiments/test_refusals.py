"""What other services refuse for good must not keep an experiment from its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.clusters.all_services import AllServices, all_services

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute_experiments.store import outbox


async def tell(service: AllServices, experiment_id: str, *, kind: outbox.Kind, **payload: str) -> None:
    """Leaves a message for other services, as a change of the database does."""
    await service.database.write(
        lambda c: outbox.put(c, event_id="strange", experiment_id=experiment_id, kind=kind, payload=payload)
    )
    service.service._core.notifier.notify(experiment_id)


@pytest.mark.timeout(60)
def test_event_that_the_search_refuses_ends_the_experiment_and_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            created = await service.create(paused=True)
            async for seen in service.watch(created.number):
                if seen.trial_count == 3:
                    break
            await tell(
                service,
                created.experiment_id,
                kind=outbox.Kind.TRIAL_ENDED,
                request_id="nobody",
                event="CLOSED",
            )
            async for seen in service.watch(created.number):
                last = seen
            assert last.state == experiment_pb2.EXPERIMENT_STATE_ERROR
            assert "refused an event of a trial" in last.failure
            assert "nobody" in last.failure
            states = {trial.state for trial in await service.trials_of(created.number)}
            assert states == {trial_pb2.TRIAL_STATE_CANCELED}
            assert not await service.read(lambda c: outbox.pending(c, created.experiment_id))

    asyncio.run(body())


@pytest.mark.timeout(60)
def test_logs_that_cannot_be_closed_are_no_reason_to_fail(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            created = await service.create(paused=True)
            async for seen in service.watch(created.number):
                if seen.trial_count == 3:
                    break
            await tell(service, created.experiment_id, kind=outbox.Kind.LOGS_CLOSED, trial_id="no UUID")
            while await service.read(lambda c: outbox.pending(c, created.experiment_id)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            async for seen in service.watch(created.number):
                assert seen.state == experiment_pb2.EXPERIMENT_STATE_PAUSED
                break

    asyncio.run(body())
