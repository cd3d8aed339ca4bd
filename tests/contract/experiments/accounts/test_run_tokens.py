"""The token of the SDK in the scripts of a run, on both databases: what it reaches and with what it ends."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import sqlalchemy as sa
from google.protobuf.field_mask_pb2 import FieldMask
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import (
    access_service_pb2,
    allocations_service_pb2,
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
    run_pb2,
    token_pb2,
    trials_service_pb2,
    trials_service_pb2_grpc,
    user_pb2,
)
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.contracts.values import to_value
from resolute.errors import NotFoundError, PermissionDeniedError, UnauthenticatedError
from resolute_experiments.accounts import run_tokens
from resolute_experiments.store.schema import containers
from resolute_serving.context import Role, User

Play = Callable[[Scenario], None]


@dataclass(frozen=True)
class Owner:
    """A user with a run in a workspace."""

    user: user_pb2.User
    token: str
    run: trials_service_pb2.BeginRunResponse

    @property
    def allocation_id(self) -> str:
        return str(self.run.trial.runs[-1].allocation_id)


async def begin(running: Running, token: str, workspace: str) -> trials_service_pb2.BeginRunResponse:
    """Begins a run; the next run of the same trial, if it has one already."""
    request = trials_service_pb2.BeginRunRequest(
        external_run_id=str(uuid.uuid4()),
        name="laptop",
        config=to_value({"workspace": workspace, "project": workspace}),
        external_experiment_id=workspace,
        external_trial_id="first",
    )
    async with running.channel(token) as channel:
        stub: Any = trials_service_pb2_grpc.TrialsServiceStub(channel)
        response: trials_service_pb2.BeginRunResponse = await stub.BeginRun(request)
    # It gets the container of a run of the cluster, whose lease a supervisor renews.
    container = sa.insert(containers).values(
        allocation_id=response.trial.runs[-1].allocation_id,
        container_rank=0,
        slot_ids=[0],
        node=0,
        address="",
        ports=[],
        pid=0,
        exited=False,
        lost=False,
        acknowledged=False,
        early_exit_reason="",
        failure="",
    )
    service: Any = running.services[0]
    await service._core.database.write(lambda connection: connection.execute(container))
    return response


async def owner(running: Running, admin: Calls, name: str) -> Owner:
    """A user, and the user's run in a workspace of the same name."""
    user = await admin.user(name)
    workspace = await admin.workspace(name)
    await admin.project(workspace.workspace_id, name)
    token = running.signer.user(User(name, Role.EDITOR, user.user_id), ttl=3600.0)
    return Owner(user, token, await begin(running, token, name))


async def renew(running: Running, one: Owner) -> allocations_service_pb2.RenewLeaseResponse:
    """Renews the lease of a run, as its supervisor does."""
    async with running.channel(one.run.token) as channel:
        stub: Any = AllocationsServiceStub(channel)
        request = allocations_service_pb2.RenewLeaseRequest(allocation_id=one.allocation_id)
        response: allocations_service_pb2.RenewLeaseResponse = await stub.RenewLease(request)
        return response


async def reaches(running: Running, token: str, one: Owner) -> bool:
    """Whether a token can read the experiment of a run; raises if it is no token."""
    key = experiment_pb2.ExperimentKey(experiment_id=one.run.trial.experiment_id)
    async with running.channel(token) as channel:
        stub: Any = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
        try:
            await stub.GetExperiment(experiments_service_pb2.GetExperimentRequest(experiment=key))
        except NotFoundError:
            return False
        return True


async def wait_for_end(running: Running, token: str, one: Owner) -> None:
    """Waits until a token is refused: services know of its end within a second."""
    deadline = asyncio.get_running_loop().time() + 60.0
    while True:
        try:
            await reaches(running, token, one)
        except UnauthenticatedError:
            return
        assert asyncio.get_running_loop().time() < deadline, "the token still works"


async def change_user(admin: Calls, user: user_pb2.User, path: str, **values: Any) -> None:
    update = access_service_pb2.UpdateUserRequest(
        user=user_pb2.User(user_id=user.user_id, **values), update_mask=FieldMask(paths=[path])
    )
    await admin.access.UpdateUser(update)


def test_scripts_act_for_the_owner_in_one_workspace_and_mint_nothing(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada, bob = await owner(running, admin, "ada"), await owner(running, admin, "bob")
        token = (await renew(running, ada)).user_token
        assert (await reaches(running, ada.token, bob), await reaches(running, token, bob)) == (True, False)
        assert await reaches(running, token, ada)
        async with calls(running, token) as scripts:
            whoami = await scripts.access.GetCurrentUser(access_service_pb2.GetCurrentUserRequest())
            assert whoami.user.name == "ada"
            for refused in (
                scripts.access.CreateToken(access_service_pb2.CreateTokenRequest()),
                scripts.access.ListTokens(access_service_pb2.ListTokensRequest()),
                scripts.access.SetPassword(
                    access_service_pb2.SetPasswordRequest(user_id=ada.user.user_id, password="another one")
                ),
                scripts.access.CreateUser(access_service_pb2.CreateUserRequest(name="eve")),
                scripts.workspace("third"),
            ):
                with pytest.raises(PermissionDeniedError):
                    await refused
        renewed = (await renew(running, ada)).user_token
        assert await reaches(running, renewed, ada)
        kinds = [token_pb2.TOKEN_KIND_RUN]
        listed = await admin.access.ListTokens(access_service_pb2.ListTokensRequest(kinds=kinds))
        assert [(one.user_id, one.allocation_id) for one in listed.tokens] == [
            (ada.user.user_id, ada.allocation_id)
        ]

    play(scenario)


def test_the_token_ends_with_its_run_and_its_owner(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await owner(running, admin, "ada")
        first = (await renew(running, ada)).user_token
        again = replace(ada, run=await begin(running, ada.token, "ada"))
        await wait_for_end(running, first, ada)
        second = (await renew(running, again)).user_token
        assert await reaches(running, second, again)
        await change_user(admin, ada.user, "active", active=False)
        answer = await renew(running, again)
        assert (answer.bearer_token, answer.user_token) == ("", "")
        await wait_for_end(running, second, again)
        await change_user(admin, ada.user, "active", active=True)
        third = (await renew(running, again)).user_token
        assert await reaches(running, third, again)
        async with running.channel(third) as channel:
            stub: Any = trials_service_pb2_grpc.TrialsServiceStub(channel)
            trial = again.run.trial
            outcome = run_pb2.RUN_OUTCOME_COMPLETED
            await stub.EndRun(
                trials_service_pb2.EndRunRequest(trial_id=trial.trial_id, run=2, outcome=outcome)
            )
        await wait_for_end(running, third, again)

    play(scenario)


def test_scripts_may_do_no_more_than_the_owner_and_leases_are_renewed_without_a_token(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await owner(running, admin, "ada")
        await change_user(admin, ada.user, "role", role=user_pb2.USER_ROLE_VIEWER)
        token = (await renew(running, ada)).user_token
        assert await reaches(running, token, ada)
        key = experiment_pb2.ExperimentKey(experiment_id=ada.run.trial.experiment_id)
        async with running.channel(token) as channel:
            stub: Any = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
            with pytest.raises(PermissionDeniedError):
                await stub.KillExperiment(experiments_service_pb2.KillExperimentRequest(experiment=key))

        def fail(*_: Any, **__: Any) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr(run_tokens, "renew", fail)
        bob = await owner(running, admin, "bob")
        answer = await renew(running, bob)
        assert (bool(answer.bearer_token), answer.user_token) == (True, "")

    play(scenario)
