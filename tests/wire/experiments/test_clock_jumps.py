"""The clock of the control plane is set by hours or a day while a trial runs: everything goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from support.clocks import OffsetClock
from support.clusters.all_services import AllServices
from support.ports import free_port
from support.services.in_process import Running, serving
from support.waiting import wait_until_async

from resolute.api.experiments.v1 import (
    access_service_pb2,
    access_service_pb2_grpc,
    experiment_pb2,
    experiments_service_pb2,
)
from resolute_embedded.blueprints import SUPPORTING_SERVICES
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.service import ExperimentsService
from resolute_experiments.settings import ExperimentsSettings
from resolute_experiments.states import RunOutcome
from resolute_experiments.store import runs
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role
from resolute_serving.server.service import Environment
from resolute_serving.server.token_renewal import TokenFile, TokenRenewal

HOUR, DAY = 3600.0, 86_400.0
SEARCHER = {"name": "single", "metric": "loss", "max_length": {"batches": 4}}


@dataclass(frozen=True)
class Cluster:
    """All services, whose clock a test sets."""

    services: AllServices
    clock: OffsetClock
    runs: Path

    def token(self) -> str:
        """The token that the only run has now; empty before it has one."""
        return "".join(path.read_text() for path in self.runs.glob("*/0/token"))

    def is_valid(self, token: str) -> bool:
        """Whether a token has not expired."""
        claims = jwt.decode(token, options={"verify_signature": False})
        return bool(self.clock.time() < claims["exp"] and claims["iat"] <= self.clock.time())


@asynccontextmanager
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    clock, port, folder = OffsetClock(), free_port(), tmp_path / "runs"

    def create(environment: Environment) -> ExperimentsService:
        settings = ExperimentsSettings(
            address=f"127.0.0.1:{port}",
            runs_directory=folder,
            slots=1,
            lease_ttl=3.0,
            log_wait=1.0,
            cluster_defaults={"checkpoint_storage": {"type": "shared_fs", "host_path": str(tmp_path)}},
        )
        return ExperimentsService(environment, settings)

    key = load_or_create_key(tmp_path / "data" / "experiments" / "signing-key.pem")
    blueprints = [*SUPPORTING_SERVICES, replace(BLUEPRINT, create=create)]
    async with serving(blueprints, tmp_path, clock=clock, token_clock=clock, key=key, port=port) as running:
        token = running.user_token(role=Role.EDITOR)
        channel = running.channel(token)
        try:
            yield Cluster(AllServices(running, channel, token), clock, folder)
        finally:
            await channel.close()


@pytest.mark.parametrize("seconds", [3 * HOUR, -DAY])
def test_a_trial_goes_on_and_can_be_ended_after_a_jump(tmp_path: Path, seconds: float) -> None:
    async def body() -> None:
        async with cluster(tmp_path) as one:
            services = one.services
            experiment = await services.create(searcher=SEARCHER)
            await wait_until_async(lambda: one.token() != "", seconds=60, what="a token of the run")
            before = one.token()
            one.clock.jump(seconds)
            await wait_until_async(
                lambda: one.token() != before and one.is_valid(one.token()),
                seconds=60,
                what="a renewed token",
            )
            (run,) = await services.read(runs.unfinalized)
            assert run.outcome is RunOutcome.UNSPECIFIED, "its lease has not expired"
            request = experiments_service_pb2.KillExperimentRequest(
                experiment=experiment_pb2.ExperimentKey(number=experiment.number)
            )
            # The person's token is of before the jump.
            channel = services.running.channel(services.running.user_token(role=Role.EDITOR))
            try:
                await AllServices(services.running, channel, "").experiments.KillExperiment(request)
            finally:
                await channel.close()
            await wait_until_async(lambda: not any(one.runs.glob("*/0")), seconds=60, what="the end")

    asyncio.run(asyncio.wait_for(body(), 240))


async def service_token(running: Running) -> str:
    """A token of the preemption service, as an admin creates it."""
    channel = running.channel(running.user_token(role=Role.ADMIN, name="admin"))
    try:
        request = access_service_pb2.CreateServiceTokenRequest(service_name="preemption")
        stub: Any = access_service_pb2_grpc.AccessServiceStub(channel)
        created = await stub.CreateServiceToken(request)
        return str(created.bearer_token)
    finally:
        await channel.close()


@pytest.mark.parametrize("seconds", [DAY, -3 * HOUR])
def test_a_service_that_runs_alone_renews_the_token_in_its_file(tmp_path: Path, seconds: float) -> None:
    async def body() -> None:
        async with cluster(tmp_path) as one:
            file = tmp_path / "token"
            file.write_text(await service_token(one.services.running))
            peers = one.services.running.peers(TokenFile(file))
            renewal = TokenRenewal(file, peers=peers, clock=one.clock)
            try:
                first = file.read_text()
                await renewal.look()
                assert file.read_text() == first
                one.clock.jump(seconds)
                await renewal.look()
                assert file.read_text() != first
                assert one.is_valid(file.read_text().strip())
                assert file.stat().st_mode & 0o077 == 0
            finally:
                await peers.close()

    asyncio.run(asyncio.wait_for(body(), 120))
