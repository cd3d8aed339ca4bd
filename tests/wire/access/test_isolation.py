"""What users with roles in one workspace see of another, where a call shows or names more than one object."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from support.clusters.tenants import Tenants, tenants
from support.services.logs import columns, line

from resolute.api.checkpoints.v1 import (
    checkpoints_service_pb2,
    media_service_pb2,
    model_pb2,
    models_service_pb2,
)
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.api.checkpoints.v1.media_service_pb2_grpc import MediaServiceStub
from resolute.api.checkpoints.v1.models_service_pb2_grpc import ModelsServiceStub
from resolute.api.experiments.v1 import (
    cluster_service_pb2,
    experiment_pb2,
    experiments_service_pb2,
    jobs_service_pb2,
    roles_service_pb2,
    trials_service_pb2,
    user_pb2,
    workspaces_service_pb2,
)
from resolute.api.experiments.v1.cluster_service_pb2_grpc import ClusterServiceStub
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.experiments.v1.jobs_service_pb2_grpc import JobsServiceStub
from resolute.api.experiments.v1.roles_service_pb2_grpc import RolesServiceStub
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute.api.experiments.v1.workspaces_service_pb2_grpc import WorkspacesServiceStub
from resolute.api.logs.v1 import line_pb2, logs_service_pb2
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.contracts.values import to_value
from resolute.errors import InvalidConfigError, NotFoundError, PermissionDeniedError, ResoluteError
from resolute_experiments.service import ExperimentsService
from resolute_experiments.store import runs
from resolute_serving.context import Role, User

Check = Callable[[Tenants, User], Coroutine[Any, Any, None]]
DEADLINE = 60.0


async def lists_show_one_workspace(platform: Tenants, user: User) -> None:
    alpha = platform.alpha
    async with platform.stub(ExperimentsServiceStub, user) as experiments:
        listed = await experiments.ListExperiments(experiments_service_pb2.ListExperimentsRequest())
        assert {one.workspace_name for one in listed.experiments} == {"alpha"}
        queue = experiments_service_pb2.WatchExperimentsRequest.QueueSubscription(key="queue")
        watch = experiments.WatchExperiments(
            experiments_service_pb2.WatchExperimentsRequest(queue=queue), timeout=DEADLINE
        )
        first = await anext(aiter(watch))
        numbers = {job.experiment_number for job in first.queue_change.jobs}
        assert alpha.experiment_number in numbers
        assert platform.beta.experiment_number not in numbers
    async with platform.stub(JobsServiceStub, user) as jobs:
        listed = await jobs.ListJobs(jobs_service_pb2.ListJobsRequest())
        assert {job.experiment_number for job in listed.jobs} == numbers
    async with platform.stub(WorkspacesServiceStub, user) as places:
        found = await places.ListWorkspaces(workspaces_service_pb2.ListWorkspacesRequest())
        assert [one.name for one in found.workspaces] == ["alpha"]
        found = await places.ListProjects(workspaces_service_pb2.ListProjectsRequest())
        assert [one.name for one in found.projects] == ["alpha"]
    async with platform.stub(ModelsServiceStub, user) as models:
        found = await models.ListModels(models_service_pb2.ListModelsRequest())
        assert [one.name for one in found.models] == [alpha.model_name]
    async with platform.stub(RolesServiceStub, user) as roles:
        found = await roles.ListRoles(roles_service_pb2.ListRolesRequest())
        assert {one.workspace_name for one in found.roles} == {"alpha"}


async def a_run_does_not_join_an_experiment_elsewhere(platform: Tenants, user: User) -> None:
    beta = platform.beta
    request = trials_service_pb2.BeginRunRequest(
        external_run_id=str(uuid.uuid4()),
        name="mine",
        config=to_value({"workspace": "alpha", "project": "alpha"}),
        external_experiment_id="experiment of beta",
    )
    async with platform.stub(TrialsServiceStub, user) as trials:
        await refused(trials.BeginRun(request), NotFoundError)
    admin = await platform.user("looks-at-trials", cluster=Role.ADMIN)
    async with platform.stub(TrialsServiceStub, admin) as trials:
        key = experiment_pb2.ExperimentKey(experiment_id=beta.trial_experiment_id)
        listed = await trials.ListTrials(trials_service_pb2.ListTrialsRequest(experiment=key))
        assert [one.trial_id for one in listed.trials] == [beta.trial_id]


async def nothing_elsewhere_is_a_source(platform: Tenants, user: User) -> None:
    sources = (
        ("source_trial_id", platform.beta.trial_number, "there is no such trial"),
        ("source_checkpoint_uuid", platform.beta.checkpoint_id, "there is no such checkpoint"),
        ("source_checkpoint_uuid", str(uuid.uuid4()), "there is no such checkpoint"),
        ("source_checkpoint_uuid", "no-uuid", "there is no such checkpoint"),
        ("source_checkpoint_uuid", platform.alpha.checkpoint_id, ""),
    )
    for field, source, refusal in sources:
        searcher = {"name": "single", "metric": "loss", "max_length": {"batches": 1}, field: source}
        config = platform.alpha.config(searcher=searcher)
        spec = experiments_service_pb2.ExperimentSpec(config_yaml=config, paused=True)
        request = experiments_service_pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
        async with platform.stub(ExperimentsServiceStub, user) as experiments:
            if refusal:
                error = await refused(experiments.CreateExperiment(request), InvalidConfigError)
                assert refusal in str(error)
            else:
                assert (await experiments.CreateExperiment(request)).experiment.experiment_id


async def nothing_moves_to_another_workspace(platform: Tenants, user: User) -> None:
    alpha, beta = platform.alpha, platform.beta
    async with platform.stub(WorkspacesServiceStub, user) as places:
        for experiment_id, project_id in (
            (alpha.trial_experiment_id, beta.project_id),
            (beta.trial_experiment_id, alpha.project_id),
        ):
            request = workspaces_service_pb2.MoveExperimentRequest(
                experiment=experiment_pb2.ExperimentKey(experiment_id=experiment_id), project_id=project_id
            )
            await refused(places.MoveExperiment(request), NotFoundError)
    async with platform.stub(ModelsServiceStub, user) as models:
        for workspace_id, refusal in ((beta.workspace_id, NotFoundError), (None, PermissionDeniedError)):
            update = models_service_pb2.UpdateModelRequest(
                key=models_service_pb2.ModelKey(name=alpha.model_name),
                model=model_pb2.Model(workspace_id=workspace_id),
                update_mask=FieldMask(paths=["workspace_id"]),
            )
            await refused(models.UpdateModel(update), refusal)
        version = models_service_pb2.CreateVersionRequest(
            key=models_service_pb2.ModelKey(name=alpha.model_name), checkpoint_id=beta.checkpoint_id
        )
        await refused(models.CreateVersion(version), NotFoundError)


async def one_object_of_another_workspace_is_enough(platform: Tenants, user: User) -> None:
    alpha, beta = platform.alpha, platform.beta
    async with platform.stub(CheckpointsServiceStub, user) as checkpoints:
        both = checkpoints_service_pb2.ListCheckpointsRequest(trial_ids=[alpha.trial_id, beta.trial_id])
        await refused(checkpoints.ListCheckpoints(both), NotFoundError)
        deletion = checkpoints_service_pb2.DeleteCheckpointsRequest(
            checkpoint_ids=[alpha.checkpoint_id, beta.checkpoint_id.upper()]
        )
        await refused(checkpoints.DeleteCheckpoints(deletion), NotFoundError)
        own = checkpoints_service_pb2.ListCheckpointsRequest(trial_ids=[alpha.trial_id])
        assert [one.checkpoint_id for one in (await checkpoints.ListCheckpoints(own)).checkpoints] == [
            alpha.checkpoint_id
        ]

    async with platform.stub(MediaServiceStub, user) as media:
        names = media_service_pb2.ListMediaNamesRequest(trial_ids=[alpha.trial_id, beta.trial_id])
        await refused(media.ListMediaNames(names), NotFoundError)
        await media.ListMediaNames(media_service_pb2.ListMediaNamesRequest(trial_ids=[alpha.trial_id]))


async def what_is_hidden_looks_like_what_is_not_there(platform: Tenants, user: User) -> None:
    async with platform.stub(ExperimentsServiceStub, user) as experiments:
        messages = []
        for number in (platform.beta.experiment_number, 10_000, 2**62):
            key = experiment_pb2.ExperimentKey(number=number)
            request = experiments_service_pb2.GetExperimentRequest(experiment=key)
            error = await refused(experiments.GetExperiment(request), NotFoundError)
            messages.append(str(error).replace(str(number), "N"))
        assert len(set(messages)) == 1


async def a_workspace_admin_gives_roles_there_alone(platform: Tenants, user: User) -> None:
    alpha, beta = platform.alpha, platform.beta
    lead = await platform.user("lead", roles={alpha.workspace_id: Role.ADMIN})
    async with platform.stub(RolesServiceStub, lead) as roles:
        give = roles_service_pb2.AssignRoleRequest(user_id=user.user_id, role=user_pb2.USER_ROLE_VIEWER)
        give.workspace_id = beta.workspace_id
        await refused(roles.AssignRole(give), NotFoundError)
    async with platform.stub(RolesServiceStub, user) as roles:
        give.workspace_id = alpha.workspace_id
        await refused(roles.AssignRole(give), PermissionDeniedError)


async def a_stream_ends_when_the_role_is_taken_away(platform: Tenants, _: User) -> None:
    alpha = platform.alpha
    user = await platform.user("follows", roles={alpha.workspace_id: Role.VIEWER})
    request = logs_service_pb2.FollowLinesRequest()
    request.subscriptions.add(key="k", filter=line_pb2.LineFilter(trial_id=alpha.trial_id))
    async with platform.stub(LogsServiceStub, user) as logs:
        stream = aiter(logs.FollowLines(request, timeout=DEADLINE))
        assert [one.message for one in (await anext(stream)).lines] == ["hello"]
        await platform.remove(user.user_id, alpha.workspace_id)
        async with platform.running.channel(alpha.trial_token) as channel:
            trial: Any = LogsServiceStub(channel)
            await trial.IngestLines(
                logs_service_pb2.IngestLinesRequest(
                    trial_id=alpha.trial_id,
                    run=1,
                    source="logs",
                    experiment_id=alpha.trial_experiment_id,
                    first_sequence=1,
                    lines=columns([line("secret")]),
                )
            )
        with pytest.raises(NotFoundError, match="has no role in its workspace"):
            await anext(stream)


async def slots_hide_who_holds_them(platform: Tenants, user: User) -> None:
    service = next(one for one in platform.running.services if isinstance(one, ExperimentsService))
    held = [service._fleet.pools.all()[0].slots[0].id]
    as_if_placed = {"slot_ids": held, "request_id": None}
    await service._core.database.write(lambda c: runs.update(c, platform.beta.allocation_id, **as_if_placed))
    viewer = await platform.user("looks-at-slots", cluster=Role.VIEWER)
    for caller, shown in ((viewer, platform.beta.allocation_id), (user, "")):
        async with platform.stub(ClusterServiceStub, caller) as cluster:
            found = await cluster.GetCluster(cluster_service_pb2.GetClusterRequest())
            assert [one.holder.allocation_id for one in found.slots if one.HasField("holder")] == [shown]


CHECKS: tuple[Check, ...] = (
    lists_show_one_workspace,
    a_run_does_not_join_an_experiment_elsewhere,
    nothing_elsewhere_is_a_source,
    nothing_moves_to_another_workspace,
    one_object_of_another_workspace_is_enough,
    what_is_hidden_looks_like_what_is_not_there,
    a_workspace_admin_gives_roles_there_alone,
    a_stream_ends_when_the_role_is_taken_away,
    slots_hide_who_holds_them,
)


def test_an_editor_of_one_workspace_reaches_nothing_of_another(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tenants(tmp_path, role_seconds=0.0) as platform:
            user = await platform.user("ed", roles={platform.alpha.workspace_id: Role.EDITOR})
            for check in CHECKS:
                await check(platform, user)

    asyncio.run(scenario())


async def refused(call: Awaitable[Any], error: type[ResoluteError]) -> ResoluteError:
    """Makes a call that must be refused; returns the refusal."""
    with pytest.raises(error) as caught:
        await call
    return caught.value
