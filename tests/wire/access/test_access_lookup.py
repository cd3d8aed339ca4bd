"""How long a service remembers roles and workspaces, and what it does without the experiments service."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import access_service_pb2, roles_service_pb2, trials_service_pb2, user_pb2
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.api.experiments.v1.roles_service_pb2_grpc import RolesServiceStub
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute.errors import UnavailableError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.access_lookup import RemoteAccessLookup
from resolute_serving.auth.policy.resources import Kind, Resource
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role, User

SECONDS = 30.0
UNCATEGORIZED = 1


async def member(channel: Any) -> User:
    access: Any = AccessServiceStub(channel)
    request = access_service_pb2.CreateUserRequest(name="mia", role=user_pb2.USER_ROLE_MEMBER)
    return User("mia", Role.MEMBER, (await access.CreateUser(request)).user.user_id)


async def roles_are_remembered_for_a_while(
    running: Running, lookup: RemoteAccessLookup, clock: ManualClock
) -> User:
    async with running.channel(running.user_token()) as channel:
        user = await member(channel)
        roles: Any = RolesServiceStub(channel)
        key = {"user_id": user.user_id, "workspace_id": UNCATEGORIZED}
        assert await lookup.roles(user) == {}
        await roles.AssignRole(roles_service_pb2.AssignRoleRequest(**key, role=user_pb2.USER_ROLE_EDITOR))
        assert await lookup.roles(user) == {}
        clock.advance(SECONDS)
        assert await lookup.roles(user) == {UNCATEGORIZED: Role.EDITOR}
        await roles.RemoveRole(roles_service_pb2.RemoveRoleRequest(**key))
        clock.advance(SECONDS - 1)
        assert await lookup.roles(user) == {UNCATEGORIZED: Role.EDITOR}
        clock.advance(1)
        assert await lookup.roles(user) == {}
    return user


async def what_is_new_is_found_at_once(running: Running, lookup: RemoteAccessLookup) -> Resource:
    run_id = str(uuid.uuid4())
    unknown = Resource(Kind.TRIAL, str(uuid.uuid4()))
    assert await lookup.workspaces({unknown}) == {}
    async with running.channel(running.user_token()) as channel:
        trials: Any = TrialsServiceStub(channel)
        begun = await trials.BeginRun(trials_service_pb2.BeginRunRequest(external_run_id=run_id, name="run"))
    trial = begun.trial
    named = {
        Resource(Kind.TRIAL, trial.trial_id),
        Resource(Kind.EXPERIMENT, trial.experiment_id),
        Resource(Kind.ALLOCATION, trial.runs[0].allocation_id),
        Resource(Kind.WORKSPACE, str(UNCATEGORIZED)),
    }
    assert await lookup.workspaces({*named, unknown}) == dict.fromkeys(named, UNCATEGORIZED)
    return Resource(Kind.TRIAL, trial.trial_id)


def test_answers_are_remembered_for_a_while_and_no_longer(tmp_path: Path) -> None:
    clock = ManualClock()
    key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")

    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path, key=key) as running:
            channel = running.channel(running.service_token("logs"))
            lookup = RemoteAccessLookup(lambda: channel, clock=clock, seconds=SECONDS)
            user = await roles_are_remembered_for_a_while(running, lookup, clock)
            trial = await what_is_new_is_found_at_once(running, lookup)
        assert await lookup.workspaces({trial}) == {trial: UNCATEGORIZED}
        assert await lookup.roles(user) == {}
        clock.advance(SECONDS)
        for question in (lookup.workspaces({trial}), lookup.roles(user)):
            with pytest.raises(UnavailableError, match="does not return the roles of users"):
                await question
        await channel.close()

    asyncio.run(scenario())
