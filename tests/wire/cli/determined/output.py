"""Keys and columns of what `det` prints, as releases 0.30 and 0.38 of Determined have them."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from typing import Any

from wire.cli.conftest import CommandLine

EXPERIMENT = (
    "archived checkpointCount checkpointSize config description displayName duration endTime "
    "externalExperimentId externalTrialId forkedFrom hyperparameters id jobId labels modelDefinitionSize "
    "name notes numTrials originalConfig pachydermIntegration parentArchived progress projectId "
    "projectName projectOwnerId resourcePool searcherMetric searcherType startTime state unmanaged userId "
    "username workspaceId workspaceName"
)
TRIAL = (
    "bestCheckpoint bestValidation checkpointCount endTime experimentId hparams id latestValidation "
    "logPolicyMatched logRetentionDays metadata restarts runnerState searcherMetricValue startTime state "
    "taskId taskIds totalBatchesProcessed totalCheckpointSize wallClockTime warmStartCheckpointUuid"
)
CHECKPOINT = "allocationId metadata reportTime resources state storageId taskId training uuid"
TRAINING = "experimentConfig experimentId hparams searcherMetric trainingMetrics trialId validationMetrics"
WORKSPACE = (
    "agentUserGroup archived autoCreatedNamespace checkpointStorageConfig defaultAuxPool "
    "defaultComputePool errorMessage id immutable name numExperiments numProjects pinned pinnedAt state "
    "userId username"
)
CLIENT_PROJECT = "archived description id name notes numActiveExperiments numExperiments username workspaceId"
PROJECT = (
    f"{CLIENT_PROJECT} errorMessage immutable key lastExperimentStartedAt numRuns state userId workspaceName"
)
CLIENT_MODEL = "archived creation_time description id last_updated_time metadata name"
MODEL = (
    "archived creationTime description id labels lastUpdatedTime metadata name notes numVersions userId "
    "username workspaceId"
)
TASK = (
    "allocationId name priority proxyPorts registeredTime resourcePool resources schedulerType "
    "slotsNeeded taskId"
)
JOB = (
    "allocatedSlots entityId isPreemptible jobId name priority progress requestedSlots resourcePool "
    "submissionTime summary type userId username weight workspaceId"
)
LINE = "agentId containerId id level log message rankId source stdtype timestamp trialId"
MASTER = (
    "branding clusterId clusterMessage clusterName externalLoginUri externalLogoutUri featureSwitches "
    "hasCustomLogo masterId product rbacEnabled ssoProviders strictJobQueueControl telemetryEnabled "
    "userManagementEnabled version"
)
COMMAND = (
    "container description displayName exitStatus id jobId resourcePool startTime state userId username "
    "workspaceId workspaceName"
)
USER = "active admin agentUserGroup displayName id lastAuthAt modifiedAt remote username"
TOKEN = "createdAt description expiry id revoked tokenType userId"
ROLES = "pagination roles"
LIST_OF_EXPERIMENTS = "ID,Owner,Name,Parent ID,State,Progress,Started,Ended,Resource Pool"
COMMANDS = "id,username,description,state,exitStatus,resourcePool,workspaceName"
PROJECTS = "ID,Key,Name,Description,# Experiments,# Active Experiments"
WORKSPACES = (
    "ID,Name,# Projects,Agent Uid,Agent Gid,Agent User,Agent Group,Default Compute Pool,Default Aux Pool"
)


@dataclass(frozen=True)
class Case:
    """One command with what it must print."""

    line: str
    keys: str = ""
    """All those of the object that ``path`` leads to in the JSON."""
    path: str = ""
    """Keys and indexes; `*` is any key."""
    columns: str = ""
    """First line of the CSV, or of the table where there is no ``--csv``; of several that of ``table``."""
    table: int = 0
    """Which table of several, from 0."""


TRAINED = (
    Case("experiment list", EXPERIMENT, "0", LIST_OF_EXPERIMENTS),
    Case("experiment list --all", columns=f"{LIST_OF_EXPERIMENTS},Archived"),
    Case("experiment list --show_project", columns=f"Workspace,Project,{LIST_OF_EXPERIMENTS}"),
    Case(
        "experiment describe 1 --metrics",
        columns="Trial ID,# of Batches,State,Report Time,Checkpoint State,Checkpoint Report Time,"
        "Validation State,Validation Report Time,Validation Metric: loss",
        table=2,
    ),
    Case(
        "experiment describe 1",
        columns="Trial ID,# of Batches,State,Report Time,Checkpoint State,Checkpoint Report Time,"
        "Validation State,Validation Report Time",
        table=2,
    ),
    Case("experiment describe 1", columns="Trial ID,Experiment ID,State,Started,Ended,H-Params", table=1),
    Case("experiment describe 1", "config experiment jobSummary", "0"),
    Case(
        "experiment describe 1",
        EXPERIMENT + " trialIds bestTrialId bestTrialSearcherMetric",
        "0 experiment",
        "Experiment ID,State,Progress,Started,Ended,Name,Description,Archived,Resource Pool,Labels",
    ),
    Case("experiment list-trials 1", TRIAL, "0", "Trial ID,State,H-Params,Started,Ended,# of Batches"),
    Case(
        "experiment list-checkpoints 1",
        CHECKPOINT,
        "0",
        "Trial ID,# of Batches,State,Validation Metric,UUID,Resources,Size",
    ),
    Case("trial list 1", TRIAL, "0", "Trial ID,State,H-Params,Started,Ended,# of Batches"),
    Case(
        "trial describe 1",
        TRIAL + " summaryMetrics",
        "trial",
        "Experiment ID,State,H-Params,Summary Metrics,Started,Ended",
    ),
    Case("trial describe 1", "trial workloads"),
    Case(
        "trial describe 1",
        columns="# of Batches,Report Time,Checkpoint,Checkpoint UUID,Checkpoint Metadata,Validation Metrics",
        table=1,
    ),
    Case(
        "trial describe 1 --metrics",
        columns="# of Batches,Report Time,Checkpoint,Checkpoint UUID,Checkpoint Metadata,Validation Metrics,"
        "Workload Metrics",
        table=1,
    ),
    Case("trial describe 1", "checkpoint training validation", "workloads 1"),
    Case("trial describe 1", "state totalBatches endTime metadata resources uuid", "workloads 1 checkpoint"),
    Case("trial describe 1", "metrics numInputs totalBatches endTime", "workloads 0 validation"),
    Case("checkpoint list 1", CHECKPOINT, "0"),
    Case("checkpoint list 1", TRAINING, "0 training"),
    Case("trial logs 1", LINE),
    Case("experiment logs 1", LINE),
    Case("task logs 1", LINE),
)
SERVED = (
    Case(
        "agent list",
        "id version registered_time num_slots num_containers resource_pools enabled draining addresses",
        "0",
        "Agent ID,Version,Registered Time,Slots,Containers,Resource Pool,Enabled,Draining,Addresses",
    ),
    Case(
        "slot list",
        "agent_id resource_pools slot_id enabled draining allocation_id task_name type device",
        "0",
        "Agent ID,Resource Pool,Slot ID,Enabled,Draining,Allocation ID,Task Name,Type,Device",
    ),
    Case(
        "task list",
        columns="Task ID,Allocation ID,Name,Slots Needed,Registered Time,Agent,Priority,Resource Pool,Ports",
    ),
    Case("master info", MASTER),
    Case(
        "job list", JOB, "jobs 0", "#,ID,Type,Job Name,Priority,Submitted,Slots (acquired/needed),State,User"
    ),
    Case("command list", COMMAND, "0", COMMANDS),
    Case("command describe 2", COMMAND, "", COMMANDS),
    Case(
        "tensorboard list",
        columns="id,username,description,state,experimentIds,trialIds,exitStatus,resourcePool,workspaceName",
    ),
    Case("model list", CLIENT_MODEL, "0", "ID,Name,Workspace ID,Creation Time,Last Updated Time,Metadata"),
    Case("model describe net", CLIENT_MODEL),
    Case("model list-versions net", MODEL, "model"),
    Case("model list-versions net", "model modelVersions pagination"),
    Case("workspace list", WORKSPACE, "0", WORKSPACES),
    Case("workspace describe Uncategorized", WORKSPACE),
    Case("workspace list-projects Uncategorized", CLIENT_PROJECT, "0", PROJECTS),
    Case(
        "workspace list-members Uncategorized",
        "assignments groups usersAssignedDirectly",
        "",
        "User/Group Name,User/Group,Role Name",
    ),
    Case("project list Uncategorized", CLIENT_PROJECT, "0", PROJECTS),
    Case("project describe Uncategorized Uncategorized", PROJECT),
    Case("project list-experiments Uncategorized Uncategorized", EXPERIMENT, "0", LIST_OF_EXPERIMENTS),
    Case(
        "user list",
        USER,
        "0",
        "User Id,Username,Display Name,Admin,Active,Remote,Agent Uid,Agent Gid,Agent User,Agent Group",
    ),
    Case("token list", TOKEN, "0", "ID,User ID,Description,Created At,Expires At,Revoked,Token Type"),
    Case("rbac list-roles", ROLES),
    Case("rbac list-roles", "name permissions roleId scopeTypeMask", "roles 0"),
    Case("rbac describe-role Viewer", "groupRoleAssignments role userRoleAssignments"),
    Case("rbac my-permissions", "assignments roles"),
    Case("rbac my-permissions", "roleId scopeCluster scopeWorkspaceIds", "assignments 0"),
    Case("rbac list-users-roles admin", "groupRoleAssignments role userRoleAssignments", "roles 0"),
    Case("template list", columns="Name,Workspace"),
)
OURS = frozenset({"config-policies describe", "master config show"})
"""Commands with `--json` whose content is what somebody wrote."""


def at(document: Any, path: str) -> Any:
    """What keys and indexes lead to."""
    for step in path.split():
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def check(determined: CommandLine, case: Case) -> None:
    words = case.line.split()
    if case.keys:
        outcome = determined(*words, "--json")
        assert outcome.code == 0, outcome.err
        found = at(json.loads(outcome.out), case.path)
        assert set(case.keys.split()) == set(found), case.line
    if case.columns:
        text = determined(*words, "--csv").out
        pieces = re.split(r"(?m)^(?:Experiment|Trials|Workloads):\n", text)
        tables = [piece for piece in pieces if piece.strip()]
        assert next(csv.reader(io.StringIO(tables[case.table]))) == case.columns.split(",")
        if "describe" not in case.line:
            heading, rule = determined(*words).out.splitlines()[:2]
            assert [name.strip() for name in heading.split("|")] == case.columns.split(",")
            assert set(rule) <= {"-", "+"}
