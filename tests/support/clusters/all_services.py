"""All services on one server, for tests of what the experiments service does with the others."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import grpc
import yaml
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import (
    cluster_service_pb2_grpc,
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
    trial_pb2,
    trials_service_pb2,
    trials_service_pb2_grpc,
)
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_experiments.service import ExperimentsService
from resolute_serving.context import Role
from resolute_serving.database.engine import Database, Work
from resolute_serving.server.service import Blueprint

T = TypeVar("T")
CONFIG: dict[str, Any] = {
    "name": "test",
    "entrypoint": "sleep 600",
    "hyperparameters": {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}},
    "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 4}, "max_trials": 3},
}


@dataclass(frozen=True)
class AllServices:
    """Running services, and calls of a person."""

    running: Running
    channel: grpc.aio.Channel
    token: str

    @property
    def experiments(self) -> Any:
        """Stub of ExperimentsService."""
        return experiments_service_pb2_grpc.ExperimentsServiceStub(self.channel)

    @property
    def trials(self) -> Any:
        """Stub of TrialsService."""
        return trials_service_pb2_grpc.TrialsServiceStub(self.channel)

    @property
    def cluster(self) -> Any:
        """Stub of ClusterService."""
        return cluster_service_pb2_grpc.ClusterServiceStub(self.channel)

    @property
    def service(self) -> ExperimentsService:
        """The experiments service itself, for tests that look into it."""
        return next(one for one in self.running.services if isinstance(one, ExperimentsService))

    @property
    def database(self) -> Database:
        """Its database."""
        return self.service._core.database

    async def read(self, work: Work[T]) -> T:
        """Reads its database."""
        return await self.database.read(work)

    async def create(
        self,
        *,
        paused: bool = False,
        kind: experiment_pb2.ExperimentKind.ValueType = experiment_pb2.EXPERIMENT_KIND_SEARCH,
        **config: Any,
    ) -> experiment_pb2.Experiment:
        """Submits an experiment without code: ``CONFIG`` with changes."""
        spec = experiments_service_pb2.ExperimentSpec(
            config_yaml=yaml.safe_dump({**CONFIG, **config}), paused=paused, kind=kind
        )
        request = experiments_service_pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
        created = await self.experiments.CreateExperiment(request)
        return cast("experiment_pb2.Experiment", created.experiment)

    async def get(self, number: int) -> experiment_pb2.Experiment:
        """An experiment with its config."""
        key = experiment_pb2.ExperimentKey(number=number)
        request = experiments_service_pb2.GetExperimentRequest(experiment=key)
        return cast("experiment_pb2.Experiment", (await self.experiments.GetExperiment(request)).experiment)

    async def watch(self, number: int) -> AsyncIterator[experiment_pb2.Experiment]:
        """Follows an experiment, to its end."""
        key = experiment_pb2.ExperimentKey(number=number)
        subscription = experiments_service_pb2.WatchExperimentsRequest.ExperimentSubscription(
            key="experiment", experiment=key
        )
        request = experiments_service_pb2.WatchExperimentsRequest(experiments=[subscription])
        async for response in self.experiments.WatchExperiments(request):
            if response.experiment_change.HasField("experiment"):
                yield response.experiment_change.experiment

    async def trials_of(self, number: int) -> list[trial_pb2.Trial]:
        """The trials of an experiment."""
        key = experiment_pb2.ExperimentKey(number=number)
        response = await self.trials.ListTrials(trials_service_pb2.ListTrialsRequest(experiment=key))
        return list(response.trials)


@asynccontextmanager
async def all_services(
    tmp_path: Path,
    *,
    role: Role = Role.EDITOR,
    clock: Clock = SYSTEM_CLOCK,
    checkpoints_root: Path = Path("/"),
    without: Collection[Blueprint] = (),
) -> AsyncIterator[AllServices]:
    """Serves every service, but those to be left out, until the block ends."""
    blueprints = [one for one in BLUEPRINTS if one not in without]
    async with serving(blueprints, tmp_path, clock=clock, checkpoints_root=checkpoints_root) as running:
        token = running.user_token(role=role)
        channel = running.channel(token)
        try:
            yield AllServices(running, channel, token)
        finally:
            await channel.close()
