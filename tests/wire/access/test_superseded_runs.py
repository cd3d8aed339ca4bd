"""Every call that the token of a run may make, by a run that a later one has replaced."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from support.calls.contract_methods import methods, path
from support.clusters.tenants import Tenant, Tenants, tenants
from wire.access.requests import request_of
from wire.access.test_access_matrix import outcome

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2, storage_pb2
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.api.experiments.v1 import run_pb2, trials_service_pb2
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute.api.metrics.v1 import report_pb2
from resolute.api.searcher.v1 import operation_pb2, searcher_service_pb2
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.contracts.values import to_value
from resolute_searcher.identifiers import trial_id
from resolute_serving.auth.policy.permissions import PERMISSIONS
from resolute_serving.context import TrialRun

DECISIONS = frozenset(
    [
        "Rendezvous",
        "RenewLease",
        "AcknowledgeSignal",
        "RequestPreemption",
        "ReportEnvironment",
        "ReportMachineUsage",
        "GetRunSecrets",
        "GetOperation",
        "CompleteOperation",
        "ReportProgress",
        "ReportValidations",
        "BeginCheckpoint",
        "ReuseFiles",
        "PresignUploads",
        "CommitCheckpoint",
        "CommitCheckpointInChunks",
        "UpdateMetadata",
        "DeleteCheckpoints",
        "DeleteFiles",
    ]
)
"""Refused: the later run decides."""
HISTORY = frozenset(
    [
        "IngestReports",
        "IngestLines",
        "IngestMedia",
        "EndRun",
        "RenewRun",
        "SetTrialStatus",
        "AbortCheckpoint",
        "RaiseAlert",
    ]
)
"""Taken, since they concern the run's own history alone; a renewal answers that the run has ended."""
OWN_CONTAINER = frozenset(["GetLaunchSpec", "ReportExit"])
"""Taken for the containers of the run, of which runs outside of the cluster have none."""
READS = frozenset(
    [
        "GetExperiment",
        "GetModelDefinition",
        "ListSummaries",
        "GetBestValidation",
        "GetCheckpoint",
        "GetLatestCheckpoint",
        "ListCheckpoints",
        "ListFiles",
        "PresignDownloads",
        "ReadFile",
        "HoldCheckpoint",
        "WatchSignals",
    ]
)
"""Answered as for any run of the trial: they change nothing."""


async def superseded(platform: Tenants) -> tuple[Tenant, TrialRun, str, str]:
    """A trial whose first run was replaced: its names, the run, its unfinished checkpoint, and its token."""
    running, alpha = platform.running, platform.alpha
    names: dict[str, Any] = {"external_experiment_id": "experiment of alpha", "external_trial_id": "replaced"}
    config = to_value({"workspace": "alpha", "project": "alpha"})
    async with running.channel(running.user_token()) as channel:
        trials: Any = TrialsServiceStub(channel)
        first, second = [
            await trials.BeginRun(
                trials_service_pb2.BeginRunRequest(
                    external_run_id=str(uuid.uuid4()), name="replaced", config=config, **names
                )
            )
            for _ in range(2)
        ]
    trial = second.trial
    assert (first.run, second.run, first.trial.trial_id) == (1, 2, trial.trial_id)
    tenant = replace(
        alpha,
        trial_id=trial.trial_id,
        trial_number=trial.number,
        trial_experiment_id=trial.experiment_id,
        experiment_id=trial.experiment_id,
        allocation_id=trial.runs[0].allocation_id,
    )
    run = TrialRun(trial.trial_id, 1, trial.experiment_id, tenant.allocation_id, "alpha", alpha.workspace_id)
    committed, unfinished = str(uuid.uuid4()), str(uuid.uuid4())
    async with running.channel(first.token) as channel:
        checkpoints: Any = CheckpointsServiceStub(channel)
        for checkpoint_id in (committed, unfinished):
            await checkpoints.BeginCheckpoint(
                checkpoints_service_pb2.BeginCheckpointRequest(
                    trial_id=trial.trial_id,
                    run=1,
                    experiment_id=trial.experiment_id,
                    checkpoint_id=checkpoint_id,
                    storage=first.storage,
                )
            )
            folder = Path(first.storage.directory.path) / checkpoint_id
            folder.mkdir(parents=True)
            (folder / "weights").write_bytes(b"weights")
        await checkpoints.CommitCheckpoint(_commit(committed))
    # Runs outside of the cluster are not fenced by it: this is what a controller does between two runs.
    async with running.channel(running.service_token()) as channel:
        fence = checkpoints_service_pb2.FenceTrialRequest(trial_id=trial.trial_id, min_run=2)
        service: Any = CheckpointsServiceStub(channel)
        await service.FenceTrial(fence)
    return replace(tenant, checkpoint_id=committed), run, unfinished, first.token


def _commit(checkpoint_id: str) -> checkpoints_service_pb2.CommitCheckpointRequest:
    return checkpoints_service_pb2.CommitCheckpointRequest(
        checkpoint_id=checkpoint_id,
        run=1,
        files=[checkpoint_pb2.File(path="weights", size=7)],
        metadata=to_value({"steps_completed": 1}),
    )


async def superseded_in_search(platform: Tenants, run: TrialRun) -> TrialRun:
    """A run of a trial of a search, which fenced it."""
    running, search_id = platform.running, platform.alpha.experiment_id
    trial_key = str(uuid.uuid4())
    create = operation_pb2.Operation(create=operation_pb2.Operation.Create(trial_key=trial_key))
    async with running.channel(running.user_token()) as channel:
        person: Any = SearcherServiceStub(channel)
        await person.PostOperations(
            searcher_service_pb2.PostOperationsRequest(
                search_id=search_id, operations=[create], answered_sequence=1
            )
        )
    searched = trial_id(search_id, trial_key)
    async with running.channel(running.service_token()) as channel:
        service: Any = SearcherServiceStub(channel)
        await service.FenceTrial(searcher_service_pb2.FenceTrialRequest(trial_id=searched, min_run=2))
    return replace(run, trial_id=searched)


def request_by(method: MethodDescriptor, tenant: Tenant, *, unfinished: str) -> Any:
    """A request that the first run would make."""
    request = request_of(method, tenant)
    fields = _fields(unfinished).get(method.name, {})
    if "run" in request.DESCRIPTOR.fields_by_name:
        fields = {"run": 1, **fields}
    for name in fields:
        request.ClearField(name)
    request.MergeFrom(type(request)(**fields))
    return request


def _fields(unfinished: str) -> dict[str, dict[str, Any]]:
    """What requests name beside the objects of the run."""
    commit = _commit(unfinished)
    upload = {"checkpoint_id": unfinished, "files": list(commit.files)}
    block = report_pb2.ReportBlock(
        group="training", names=["loss"], sequences=[0], steps=[1], times=[1.0], values=[0.5]
    )
    return {
        "BeginCheckpoint": {
            "checkpoint_id": str(uuid.uuid4()),
            "storage": storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path="/")),
        },
        "ReuseFiles": upload,
        "PresignUploads": upload,
        "CommitCheckpoint": {**upload, "metadata": commit.metadata},
        "CommitCheckpointInChunks": {"chunk": commit},
        "AbortCheckpoint": {"checkpoint_id": unfinished},
        "DeleteFiles": {"globs": ["*"]},
        "CompleteOperation": {"metric": 0.5},
        "EndRun": {"outcome": run_pb2.RUN_OUTCOME_COMPLETED},
        "ReportValidations": {"source": "late"},
        "IngestReports": {"source": "late", "count": 1, "blocks": [block], "searcher_metric": "loss"},
        "IngestLines": {"source": "late"},
        "IngestMedia": {"source": "late", "count": 1},
    }


def test_a_superseded_run_adds_to_its_history_and_decides_nothing(tmp_path: Path) -> None:
    async def scenario() -> dict[str, str]:
        wrong: dict[str, str] = {}
        async with tenants(tmp_path) as platform:
            tenant, run, unfinished, token = await superseded(platform)
            in_search = await superseded_in_search(platform, run)
            options = [("grpc.enable_http_proxy", 0)]
            address = platform.running.address
            async with grpc.aio.insecure_channel(address, options=options) as channel:
                for method in of_runs():
                    request = request_by(method, tenant, unfinished=unfinished)
                    bearer = token
                    if method.containing_service.name == "SearcherService":
                        request.trial_id = in_search.trial_id
                        bearer = platform.running.trial_token(in_search)
                    code, detail = await outcome(channel, method, request, bearer)
                    if code not in expected(method.name):
                        wrong[method.name] = f"{code.name} {detail}"
            async with platform.running.channel(token) as own:
                trials: Any = TrialsServiceStub(own)
                renewal = trials_service_pb2.RenewRunRequest(trial_id=tenant.trial_id, run=1)
                assert (await trials.RenewRun(renewal)).ended
        return wrong

    assert asyncio.run(scenario()) == {}


def of_runs() -> list[MethodDescriptor]:
    """The calls that the token of a run may make."""
    return [method for method in methods() if PERMISSIONS[path(method)].trial is not None]


def expected(name: str) -> set[grpc.StatusCode]:
    """How a call is answered."""
    if name in DECISIONS:
        return {grpc.StatusCode.ABORTED}
    if name in OWN_CONTAINER:
        return {grpc.StatusCode.NOT_FOUND}
    return {grpc.StatusCode.OK}


def test_every_call_of_runs_is_in_one_of_the_lists() -> None:
    listed = [DECISIONS, HISTORY, OWN_CONTAINER, READS]
    assert sum(map(len, listed)) == len(frozenset().union(*listed))
    assert frozenset().union(*listed) == {method.name for method in of_runs()}
