"""Calls between services of one process are what they are over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import allocations_service_pb2 as allocations
from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.api.experiments.v1 import workspaces_service_pb2 as workspaces
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.experiments.v1.workspaces_service_pb2_grpc import WorkspacesServiceStub
from resolute.errors import (
    DeadlineError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.server.channels.local_channel import LocalChannel
from resolute_serving.server.channels.peers import Peers

if TYPE_CHECKING:
    from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceAsyncStub
    from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceAsyncStub
    from resolute.api.experiments.v1.workspaces_service_pb2_grpc import WorkspacesServiceAsyncStub

both = pytest.mark.parametrize("local", [True, False], ids=["local", "wire"])


@asynccontextmanager
async def _reached(
    tmp_path: Path, *, local: bool, token: str | None = None
) -> AsyncIterator[tuple[Running, Peers]]:
    async with serving([BLUEPRINT], tmp_path) as running:
        peers = running.peers(lambda: running.user_token() if token is None else token, local=local)
        assert isinstance(peers.channel("experiments"), LocalChannel) is local
        try:
            yield running, peers
        finally:
            await peers.close()


@both
def test_a_response_comes_and_the_request_stays_as_it_was(tmp_path: Path, local: bool) -> None:
    async def scenario() -> None:
        async with _reached(tmp_path, local=local) as (_, peers):
            stub = cast("WorkspacesServiceAsyncStub", WorkspacesServiceStub(peers.channel("experiments")))
            request = workspaces.CreateWorkspaceRequest(name="vision")
            made = (await stub.CreateWorkspace(request)).workspace
            assert (made.name, made.owner_name) == ("vision", "ada")
            assert request == workspaces.CreateWorkspaceRequest(name="vision")
            listed = (await stub.ListWorkspaces(workspaces.ListWorkspacesRequest())).workspaces
            assert [one.name for one in listed] == ["Uncategorized", "vision"]

    asyncio.run(scenario())


@both
def test_an_error_has_its_type_its_violations_and_its_resource(tmp_path: Path, local: bool) -> None:
    async def scenario() -> None:
        async with _reached(tmp_path, local=local) as (_, peers):
            stub = cast("WorkspacesServiceAsyncStub", WorkspacesServiceStub(peers.channel("experiments")))
            with pytest.raises(InvalidArgumentError) as wrong:
                await stub.CreateWorkspace(workspaces.CreateWorkspaceRequest(name="a\0b"))
            assert [violation.field for violation in wrong.value.violations] == ["name"]
            with pytest.raises(NotFoundError, match="workspace 7 does not exist") as missing:
                await stub.GetWorkspace(workspaces.GetWorkspaceRequest(workspace_id=7))
            assert missing.value.resource == "workspace 7"

    asyncio.run(scenario())


@both
def test_a_token_is_checked_and_a_permission_is(tmp_path: Path, local: bool) -> None:
    async def scenario() -> None:
        async with _reached(tmp_path, local=local, token="forged") as (running, peers):
            stub = cast("ExperimentsServiceAsyncStub", ExperimentsServiceStub(peers.channel("experiments")))
            with pytest.raises(UnauthenticatedError):
                await stub.ListExperiments(experiments.ListExperimentsRequest())
            people = running.peers(running.user_token, local=local)
            renewal = cast(
                "AllocationsServiceAsyncStub", AllocationsServiceStub(people.channel("experiments"))
            )
            with pytest.raises(PermissionDeniedError, match="not for users"):
                await renewal.RenewLease(allocations.RenewLeaseRequest(allocation_id="a"))
            await people.close()

    asyncio.run(scenario())


@both
def test_a_stream_gives_news_until_its_deadline_or_its_reader_ends_it(tmp_path: Path, local: bool) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            peers = running.peers(lambda: running.service_token("preemption"), local=local)
            stub = cast("AllocationsServiceAsyncStub", AllocationsServiceStub(peers.channel("experiments")))
            request = allocations.FollowSignalChangesRequest()
            late = stub.FollowSignalChanges(request, timeout=3.0)
            responses = aiter(late)
            assert (await anext(responses)).reset
            with pytest.raises(DeadlineError):
                await anext(responses)
            ended = stub.FollowSignalChanges(request)
            assert (await anext(aiter(ended))).reset
            assert ended.cancel()
            await peers.close()

    asyncio.run(scenario())
