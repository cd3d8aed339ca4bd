"""Policies for configs over the wire, on both databases: what they set, what they limit, who may set them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.field_mask_pb2 import FieldMask
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import (
    config_policies_pb2,
    config_policies_service_pb2,
    experiment_pb2,
    experiments_service_pb2,
    job_pb2,
    jobs_service_pb2,
    workspaces_service_pb2,
)
from resolute.api.experiments.v1.config_policies_service_pb2_grpc import ConfigPoliciesServiceStub
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.experiments.v1.jobs_service_pb2_grpc import JobsServiceStub
from resolute.api.experiments.v1.workspaces_service_pb2_grpc import WorkspacesServiceStub
from resolute.contracts.values import to_mapping
from resolute.errors import InvalidArgumentError, InvalidConfigError, NotFoundError, PermissionDeniedError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role

_pb = config_policies_service_pb2
LAB = {"workspace": "lab", "project": "here"}
CONFIG = {
    "name": "mine",
    "entrypoint": "python train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
}


@dataclass(frozen=True)
class Calls:
    """What one user calls."""

    policies: Any
    experiments: Any
    jobs: Any
    places: Any

    async def workspace(self, name: str) -> int:
        """Creates a workspace with a project; returns its id."""
        request = workspaces_service_pb2.CreateWorkspaceRequest(name=name)
        number: int = (await self.places.CreateWorkspace(request)).workspace.workspace_id
        project = workspaces_service_pb2.CreateProjectRequest(workspace_id=number, name="here")
        await self.places.CreateProject(project)
        return number

    async def set(self, document: dict[str, Any], workspace_id: int = 0) -> list[str]:
        """Sets policies; returns the warnings."""
        request = _pb.SetConfigPoliciesRequest(
            workspace_id=workspace_id, policies_yaml=yaml.safe_dump(document)
        )
        return list((await self.policies.SetConfigPolicies(request)).warnings)

    async def get(self, workspace_id: int = 0) -> config_policies_pb2.ConfigPolicies:
        """Returns policies."""
        response = await self.policies.GetConfigPolicies(
            _pb.GetConfigPoliciesRequest(workspace_id=workspace_id)
        )
        found: config_policies_pb2.ConfigPolicies = response.policies
        return found

    async def whole(self, **fields: Any) -> dict[str, Any]:
        """Returns what becomes of a config."""
        request = experiments_service_pb2.ValidateConfigRequest(config_yaml=yaml.safe_dump(CONFIG | fields))
        return to_mapping((await self.experiments.ValidateConfig(request)).config)

    async def create(self, **fields: Any) -> experiment_pb2.ExperimentKey:
        """Creates an experiment that begins paused."""
        spec = experiments_service_pb2.ExperimentSpec(
            config_yaml=yaml.safe_dump(CONFIG | fields), paused=True
        )
        request = experiments_service_pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
        created = (await self.experiments.CreateExperiment(request)).experiment
        return experiment_pb2.ExperimentKey(experiment_id=created.experiment_id)

    async def change(self, key: experiment_pb2.ExperimentKey, **fields: Any) -> job_pb2.Job:
        """Changes the job of an experiment."""
        request = jobs_service_pb2.UpdateJobRequest(
            experiment=key, job=job_pb2.Job(**fields), update_mask=FieldMask(paths=list(fields))
        )
        changed: job_pb2.Job = (await self.jobs.UpdateJob(request)).job
        return changed


Scenario = Callable[[Running, Calls], Coroutine[Any, Any, None]]


@asynccontextmanager
async def calls(running: Running, token: str) -> AsyncIterator[Calls]:
    async with running.channel(token) as channel:
        yield Calls(
            ConfigPoliciesServiceStub(channel),
            ExperimentsServiceStub(channel),
            JobsServiceStub(channel),
            WorkspacesServiceStub(channel),
        )


@pytest.fixture
def play(tmp_path: Path, database_url: str) -> Callable[[Scenario], None]:
    async def run(scenario: Scenario) -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving([BLUEPRINT], tmp_path, database_url=database_url, key=key) as running,
            calls(running, running.user_token(name="admin", role=Role.ADMIN)) as admin,
        ):
            await scenario(running, admin)

    return lambda scenario: asyncio.run(run(scenario))


def test_what_the_cluster_sets_wins_over_the_workspace_and_both_over_the_config(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        lab = await admin.workspace("lab")
        await admin.set({"invariant_config": {"max_restarts": 1, "labels": ["a"], "debug": True}}, lab)
        shown = to_mapping((await admin.get(lab)).invariant_config)
        assert shown == {"max_restarts": 1, "labels": ["a"], "debug": True}
        warnings = await admin.set({"invariant_config": {"max_restarts": 0}})
        assert warnings == []
        own = {"max_restarts": 9, "description": "mine"}
        there = await admin.whole(**LAB, **own)
        names = ("max_restarts", "labels", "debug", "description")
        assert [there[name] for name in names] == [0, ["a"], True, "mine"]
        elsewhere = await admin.whole(**own)
        assert [elsewhere[name] for name in names] == [0, [], False, "mine"]
        # A set replaces the whole document, and says what the cluster has decided already.
        (warning,) = await admin.set({"invariant_config": {"max_restarts": 2, "debug": False}}, lab)
        assert warning.startswith("invariant_config.max_restarts has no effect")
        there = await admin.whole(**LAB, **own)
        assert [there[name] for name in names] == [0, [], False, "mine"]
        for workspace_id in (0, lab, lab):
            await admin.policies.DeleteConfigPolicies(
                _pb.DeleteConfigPoliciesRequest(workspace_id=workspace_id)
            )
        assert (await admin.whole(**LAB, **own))["max_restarts"] == 9
        assert not (await admin.get(lab)).HasField("update_time")

    play(scenario)


def test_configs_and_jobs_keep_within_the_limits(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        lab = await admin.workspace("lab")
        before = await admin.create(**LAB, resources={"slots_per_trial": 1, "priority": 5})
        limits = {"resources": {"max_slots": 1}, "priority_limit": 50}
        await admin.set({"constraints": limits}, lab)
        for resources, path in (
            ({"slots_per_trial": 2}, "resources.slots_per_trial"),
            ({"max_slots": 2}, "resources.max_slots"),
            ({"priority": 49}, "resources.priority"),
        ):
            with pytest.raises(InvalidConfigError, match="resource constraint of an admin") as caught:
                await admin.create(**LAB, resources=resources)
            assert [violation.field for violation in caught.value.violations] == [path]
        # What says nothing of what is limited is kept within the limits.
        resources = (await admin.whole(**LAB))["resources"]
        assert (resources["max_slots"], resources["priority"]) == (1, 50)
        # Without a workspace of its own, or in another, the limits of this one do not count.
        assert (await admin.whole(resources={"priority": 3}))["resources"]["max_slots"] is None
        after = await admin.create(**LAB, resources={"priority": 60})
        for changes, message in (
            ({"priority": 49}, "requested priority 49"),
            ({"max_slots": 2}, "exceeds limit set by admin"),
            ({"max_slots": None}, "no limit exceeds limit set by admin"),
        ):
            for key in (before, after):
                with pytest.raises(InvalidArgumentError, match=message):
                    await admin.change(key, **changes)
        assert (await admin.change(after, priority=55, weight=2.0)).priority == 55
        # A limit of the cluster hides that of the workspace.
        await admin.set({"constraints": {"priority_limit": 10}})
        assert (await admin.change(before, priority=12)).priority == 12
        await admin.set({"invariant_config": {"resources": {"priority": 70}}})
        with pytest.raises(InvalidArgumentError, match="set by invariant config to 70"):
            await admin.change(after, priority=80)

    play(scenario)


def test_documents_that_are_wrong_or_contradict_themselves_are_refused(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        lab = await admin.workspace("lab")
        await admin.set({"constraints": {"resources": {"max_slots": 4}}})
        for document, field in (
            ({"invariants": {}}, "invariants"),
            ({"invariant_config": ["a"]}, "invariant_config"),
            ({"invariant_config": {"workspace": "lab"}}, "invariant_config.workspace"),
            ({"invariant_config": {"max_restarts": -1}}, "invariant_config.max_restarts"),
            ({"constraints": {"priority_limit": 100}}, "constraints.priority_limit"),
            (
                {
                    "invariant_config": {"resources": {"slots_per_trial": 2}},
                    "constraints": {"resources": {"max_slots": 1}},
                },
                "invariant_config.resources.slots_per_trial",
            ),
            # Against what the cluster limits.
            ({"invariant_config": {"resources": {"max_slots": 5}}}, "invariant_config.resources.max_slots"),
        ):
            with pytest.raises(InvalidArgumentError, match="invalid experiment config policy") as caught:
                await admin.set(document, lab)
            assert [violation.field for violation in caught.value.violations] == [field]
        assert not (await admin.get(lab)).HasField("update_time")
        with pytest.raises(InvalidArgumentError, match="65536 are allowed"):
            await admin.set({"invariant_config": {"description": "x" * 70_000}})
        with pytest.raises(NotFoundError, match="workspace"):
            await admin.set({}, 999)

    play(scenario)


def test_admins_alone_set_policies_and_everybody_reads_those_of_the_cluster(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        lab = await admin.workspace("lab")
        await admin.set({"invariant_config": {"max_restarts": 1}})
        async with calls(running, running.user_token(name="ada", role=Role.EDITOR)) as ada:
            assert to_mapping((await ada.get()).invariant_config) == {"max_restarts": 1}
            for workspace_id in (0, lab):
                with pytest.raises(PermissionDeniedError):
                    await ada.set({}, workspace_id)
            assert (await ada.whole(max_restarts=3))["max_restarts"] == 1

    play(scenario)
