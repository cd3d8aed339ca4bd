"""Workspaces that hold one of everything, on all services in one process; and callers of every kind."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.duration_pb2 import Duration
from support.services.in_process import Running, serving
from support.services.logs import columns, line

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2, model_pb2, models_service_pb2
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.api.checkpoints.v1.models_service_pb2_grpc import ModelsServiceStub
from resolute.api.experiments.v1 import (
    access_service_pb2,
    experiments_service_pb2,
    roles_service_pb2,
    trials_service_pb2,
    user_pb2,
    workspaces_service_pb2,
)
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.experiments.v1.roles_service_pb2_grpc import RolesServiceStub
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute.api.experiments.v1.workspaces_service_pb2_grpc import WorkspacesServiceStub
from resolute.api.logs.v1 import logs_service_pb2
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.api.metrics.v1 import metrics_service_pb2, report_pb2
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.api.searcher.v1 import searcher_service_pb2
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.contracts.values import to_value
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role, User

ROLE_NUMBERS = {
    Role.MEMBER: user_pb2.USER_ROLE_MEMBER,
    Role.VIEWER: user_pb2.USER_ROLE_VIEWER,
    Role.EDITOR: user_pb2.USER_ROLE_EDITOR,
    Role.ADMIN: user_pb2.USER_ROLE_ADMIN,
}
WAIT = 60.0


@dataclass(frozen=True)
class Tenant:
    """A workspace with one of everything in it."""

    name: str
    workspace_id: int
    project_id: int
    experiment_id: str
    """Of the cluster's own; it is paused, and its search is custom."""
    experiment_number: int
    trial_id: str
    """Of a run outside of the cluster, which has written all that a trial writes."""
    trial_number: int
    trial_experiment_id: str
    trial_token: str
    allocation_id: str
    checkpoint_id: str
    model_id: str
    model_name: str

    def config(self, **changes: Any) -> str:
        """A config that belongs here."""
        return yaml.safe_dump({**CONFIG, "workspace": self.name, "project": self.name, **changes})


CONFIG: dict[str, Any] = {
    "name": "tenant",
    "entrypoint": "sleep 600",
    "searcher": {"name": "custom", "metric": "loss"},
}


@dataclass(frozen=True)
class Tenants:
    """A platform with two workspaces."""

    running: Running
    alpha: Tenant
    beta: Tenant

    async def user(
        self, name: str, *, cluster: Role = Role.MEMBER, roles: Mapping[int, Role] | None = None
    ) -> User:
        """Creates a user with a role in the cluster, and others in workspaces by their ids."""
        async with self.running.channel(self.running.user_token()) as channel:
            access: Any = AccessServiceStub(channel)
            request = access_service_pb2.CreateUserRequest(name=name, role=ROLE_NUMBERS[cluster])
            user_id = (await access.CreateUser(request)).user.user_id
        for workspace_id, role in (roles or {}).items():
            await self.assign(user_id, workspace_id, role)
        return User(name, cluster, user_id)

    async def assign(self, user_id: int, workspace_id: int, role: Role) -> None:
        """Gives a user a role in a workspace."""
        async with self.running.channel(self.running.user_token()) as channel:
            roles: Any = RolesServiceStub(channel)
            await roles.AssignRole(
                roles_service_pb2.AssignRoleRequest(
                    user_id=user_id, workspace_id=workspace_id, role=ROLE_NUMBERS[role]
                )
            )

    async def remove(self, user_id: int, workspace_id: int) -> None:
        """Takes a user's role in a workspace away."""
        async with self.running.channel(self.running.user_token()) as channel:
            roles: Any = RolesServiceStub(channel)
            request = roles_service_pb2.RemoveRoleRequest(user_id=user_id, workspace_id=workspace_id)
            await roles.RemoveRole(request)

    @asynccontextmanager
    async def stub(self, make: Callable[[Any], Any], user: User) -> AsyncIterator[Any]:
        """A stub whose calls a user makes."""
        async with self.running.channel(self.running.signer.user(user, ttl=3600)) as channel:
            yield make(channel)


@asynccontextmanager
async def tenants(tmp_path: Path, *, role_seconds: float = 30.0) -> AsyncIterator[Tenants]:
    """Serves everything with two workspaces, alpha and beta, until the block ends."""
    key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
    async with serving(BLUEPRINTS, tmp_path, key=key, role_seconds=role_seconds) as running:
        yield Tenants(running, await _tenant(running, "alpha"), await _tenant(running, "beta"))


async def _tenant(running: Running, name: str) -> Tenant:
    async with running.channel(running.user_token()) as channel:
        places: Any = WorkspacesServiceStub(channel)
        made = await places.CreateWorkspace(workspaces_service_pb2.CreateWorkspaceRequest(name=name))
        workspace_id = made.workspace.workspace_id
        request = workspaces_service_pb2.CreateProjectRequest(workspace_id=workspace_id, name=name)
        project_id = (await places.CreateProject(request)).project.project_id
        experiment = await _experiment(channel, name)
        begun = await _run(channel, name)
        trial = begun.trial
        checkpoint_id = await _reports(running, begun)
        models: Any = ModelsServiceStub(channel)
        model = (
            await models.CreateModel(
                models_service_pb2.CreateModelRequest(
                    model=model_pb2.Model(name=f"model of {name}", workspace_id=workspace_id)
                )
            )
        ).model
        await models.CreateVersion(
            models_service_pb2.CreateVersionRequest(
                key=models_service_pb2.ModelKey(model_id=model.model_id), checkpoint_id=checkpoint_id
            )
        )
    return Tenant(
        name=name,
        workspace_id=workspace_id,
        project_id=project_id,
        experiment_id=experiment.experiment_id,
        experiment_number=experiment.number,
        trial_id=trial.trial_id,
        trial_number=trial.number,
        trial_experiment_id=trial.experiment_id,
        trial_token=begun.token,
        allocation_id=trial.runs[-1].allocation_id,
        checkpoint_id=checkpoint_id,
        model_id=model.model_id,
        model_name=model.name,
    )


async def _experiment(channel: Any, name: str) -> Any:
    """A paused experiment, with its search."""
    experiments: Any = ExperimentsServiceStub(channel)
    spec = experiments_service_pb2.ExperimentSpec(
        config_yaml=yaml.safe_dump({**CONFIG, "workspace": name, "project": name}), paused=True
    )
    request = experiments_service_pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
    experiment = (await experiments.CreateExperiment(request)).experiment
    searches: Any = SearcherServiceStub(channel)
    await searches.PollEvents(
        searcher_service_pb2.PollEventsRequest(
            search_id=experiment.experiment_id, max_wait=Duration(seconds=int(WAIT))
        ),
        timeout=WAIT,
    )
    return experiment


async def _run(channel: Any, name: str) -> Any:
    """A run outside of the cluster."""
    trials: Any = TrialsServiceStub(channel)
    return await trials.BeginRun(
        trials_service_pb2.BeginRunRequest(
            external_run_id=str(uuid.uuid4()),
            name=f"run of {name}",
            config=to_value({"workspace": name, "project": name}),
            external_experiment_id=f"experiment of {name}",
        )
    )


async def _reports(running: Running, begun: Any) -> str:
    """Writes what a trial writes: a line, a validation and a checkpoint, whose UUID is returned."""
    trial = begun.trial
    run = {"trial_id": trial.trial_id, "run": begun.run, "experiment_id": trial.experiment_id}
    checkpoint_id = str(uuid.uuid4())
    async with running.channel(begun.token) as channel:
        logs: Any = LogsServiceStub(channel)
        lines = columns([line("hello")])
        await logs.IngestLines(logs_service_pb2.IngestLinesRequest(**run, source="logs", lines=lines))
        metrics: Any = MetricsServiceStub(channel)
        block = report_pb2.ReportBlock(
            group="validation", names=["loss"], sequences=[0], steps=[1], times=[1.0], values=[0.5]
        )
        await metrics.IngestReports(
            metrics_service_pb2.IngestReportsRequest(
                **run, source="metrics", count=1, blocks=[block], searcher_metric="loss"
            )
        )
        checkpoints: Any = CheckpointsServiceStub(channel)
        await checkpoints.BeginCheckpoint(
            checkpoints_service_pb2.BeginCheckpointRequest(
                **run, checkpoint_id=checkpoint_id, storage=begun.storage
            )
        )
        folder = Path(begun.storage.directory.path) / checkpoint_id
        folder.mkdir(parents=True)
        (folder / "weights").write_bytes(b"weights")
        await checkpoints.CommitCheckpoint(
            checkpoints_service_pb2.CommitCheckpointRequest(
                checkpoint_id=checkpoint_id,
                run=begun.run,
                files=[checkpoint_pb2.File(path="weights", size=7)],
                metadata=to_value({"steps_completed": 1}),
            )
        )
    return checkpoint_id
