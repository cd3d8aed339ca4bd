"""A run goes on without its owner until its token expires; nothing renews the token then."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from support.services.access import Calls, Scenario
from support.services.in_process import Running

from resolute.api.experiments.v1 import (
    access_service_pb2,
    allocations_service_pb2,
    allocations_service_pb2_grpc,
    run_pb2,
    trials_service_pb2,
    trials_service_pb2_grpc,
    user_pb2,
)
from resolute.errors import RunSupersededError
from resolute_experiments.service import ExperimentsService
from resolute_experiments.store import runs
from resolute_experiments.store.schema import containers
from resolute_experiments.transitions.signals import allocation_id
from resolute_serving.context import TrialRun

Play = Callable[[Scenario], None]


async def set_active(admin: Calls, user_id: int, *, active: bool) -> None:
    request = access_service_pb2.UpdateUserRequest(user=user_pb2.User(user_id=user_id, active=active))
    request.update_mask.paths.append("active")
    await admin.access.UpdateUser(request)


async def begin_run(running: Running, token: str) -> trials_service_pb2.BeginRunResponse:
    async with running.channel(token) as channel:
        stub: Any = trials_service_pb2_grpc.TrialsServiceStub(channel)
        request = trials_service_pb2.BeginRunRequest(external_run_id=str(uuid.uuid4()), name="laptop")
        begun: trials_service_pb2.BeginRunResponse = await stub.BeginRun(request)
        return begun


def test_the_token_of_a_run_is_not_renewed_while_its_owner_is_deactivated(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        own = await admin.access.CreateToken(access_service_pb2.CreateTokenRequest(user_id=ada.user_id))
        begun = await begin_run(running, own.bearer_token)
        allocation = allocation_id(begun.trial.trial_id, begun.run)
        await as_if_placed(running, allocation)
        identity = TrialRun(
            begun.trial.trial_id, begun.run, begun.trial.experiment_id, allocation, "Uncategorized"
        )
        short = running.signer.trial(identity, ttl=600)
        async with running.channel(short) as channel:
            own_trials: Any = trials_service_pb2_grpc.TrialsServiceStub(channel)
            leases: Any = allocations_service_pb2_grpc.AllocationsServiceStub(channel)
            renewal = trials_service_pb2.RenewRunRequest(trial_id=begun.trial.trial_id, run=begun.run)
            lease = allocations_service_pb2.RenewLeaseRequest(allocation_id=allocation)
            assert (await leases.RenewLease(lease)).bearer_token
            await set_active(admin, ada.user_id, active=False)
            answer = await leases.RenewLease(lease)
            assert (answer.bearer_token, bool(answer.ttl.seconds)) == ("", True)
            await set_running_elsewhere(running, allocation)
            assert (await own_trials.RenewRun(renewal)).token == short
            await set_active(admin, ada.user_id, active=True)
            assert (await own_trials.RenewRun(renewal)).token not in {"", short}

    play(scenario)


def test_an_expired_token_is_renewed_until_its_run_has_ended(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        own = await admin.access.CreateToken(access_service_pb2.CreateTokenRequest(user_id=ada.user_id))
        begun = await begin_run(running, own.bearer_token)
        trial_id, run = begun.trial.trial_id, begun.run
        renewal = trials_service_pb2.RenewRunRequest(trial_id=trial_id, run=run)
        identity = TrialRun(
            trial_id, run, begun.trial.experiment_id, allocation_id(trial_id, run), "Uncategorized"
        )
        expired = running.signer.trial(identity, ttl=-60)
        async with running.channel(expired) as late, running.channel(begun.token) as timely:
            of_late: Any = trials_service_pb2_grpc.TrialsServiceStub(late)
            in_time: Any = trials_service_pb2_grpc.TrialsServiceStub(timely)
            assert (await of_late.RenewRun(renewal)).token not in {"", expired}
            ended = trials_service_pb2.EndRunRequest(
                trial_id=trial_id, run=run, outcome=run_pb2.RUN_OUTCOME_COMPLETED
            )
            await in_time.EndRun(ended)
            answer = await in_time.RenewRun(renewal)
            assert (answer.ended, answer.token) == (True, begun.token), "it hears so, and gets no more time"
            with pytest.raises(RunSupersededError, match="has ended, and its token has expired"):
                await of_late.RenewRun(renewal)

    play(scenario)


async def as_if_placed(running: Running, allocation: str) -> None:
    """Makes a run look like one of the cluster's own, with one container."""
    container = {
        "allocation_id": allocation,
        "container_rank": 0,
        "slot_ids": [0],
        "node": 0,
        "address": "",
        "ports": [],
        "pid": 0,
        "exited": False,
        "lost": False,
        "acknowledged": False,
        "early_exit_reason": "",
        "failure": "",
    }
    insert = sa.insert(containers).values(**container)
    database = service_of(running)._core.database
    await database.write(lambda c: c.execute(insert) and None)
    await database.write(lambda c: runs.update(c, allocation, request_id=None))


async def set_running_elsewhere(running: Running, allocation: str) -> None:
    """Makes it a run outside of the cluster again."""
    database = service_of(running)._core.database
    await database.write(lambda c: runs.update(c, allocation, request_id=str(uuid.uuid4())))


def service_of(running: Running) -> ExperimentsService:
    return next(one for one in running.services if isinstance(one, ExperimentsService))
