"""Who may call what: one entry for every RPC of every service, and nothing without one.

What a service may call of the others is in ``service_accounts``.

A trial's token reaches only what belongs to it. Its scope is checked against fields of the request, and a
request that names a run may name none later than the token's: a superseded run can add to its history, and
never speak for its successor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from resolute.errors import PermissionDeniedError
from resolute_serving.auth import service_accounts
from resolute_serving.context import Principal, Role, ServiceAccount, TrialRun, User

TrialScope = Callable[[TrialRun, Any], bool]
"""Whether a request stays within a run."""


def own_trial(run: TrialRun, request: Any) -> bool:
    """The request names the run's trial, and no later run."""
    return bool(request.trial_id == run.trial_id and getattr(request, "run", 0) <= run.run)


def only_own_trial(run: TrialRun, request: Any) -> bool:
    """The request asks for the run's trial and for no other."""
    return set(request.trial_ids) == {run.trial_id}


def own_allocation(run: TrialRun, request: Any) -> bool:
    """The request names the run's allocation."""
    return bool(request.allocation_id == run.allocation_id)


def only_own_allocation(run: TrialRun, request: Any) -> bool:
    """The request watches the run's allocation and no other."""
    return {each.allocation_id for each in request.subscriptions} == {run.allocation_id}


def own_experiment(run: TrialRun, request: Any) -> bool:
    """The request names the run's experiment by UUID."""
    named = request.experiment_id if hasattr(request, "experiment_id") else request.experiment.experiment_id
    return bool(named == run.experiment_id)


def own_begin(run: TrialRun, request: Any) -> bool:
    """The request begins a checkpoint of the run's own trial and experiment."""
    return own_trial(run, request) and own_experiment(run, request)


def own_filter(run: TrialRun, request: Any) -> bool:
    """The request's filter names the run's trial."""
    return bool(request.filter.trial_id == run.trial_id)


def checked_by_handler(_run: TrialRun, _request: Any) -> bool:
    """The handler compares the stored object's experiment or trial with the token."""
    return True


@dataclass(frozen=True)
class Rule:
    """Who may make one call."""

    role: Role | None = None
    """Least role of a user; None when no user may."""
    trial: TrialScope | None = None
    """Scope of a trial's token; None when no trial may."""
    public: bool = False
    """Whether callers without a token may."""


_VIEW = Rule(role=Role.VIEWER)
_EDIT = Rule(role=Role.EDITOR)
_ADMIN = Rule(role=Role.ADMIN)
_SERVICE = Rule()


def _trial(scope: TrialScope, *, role: Role | None = None) -> Rule:
    return Rule(role=role, trial=scope)


_BY_SERVICE: Mapping[str, Mapping[str, Rule]] = {
    "resolute.api.experiments.v1.ExperimentsService": {
        "CreateExperiment": _EDIT,
        "CreateExperimentInChunks": _EDIT,
        "ValidateConfig": _VIEW,
        "GetExperiment": _trial(own_experiment, role=Role.VIEWER),
        "ListExperiments": _VIEW,
        "PauseExperiment": _EDIT,
        "ActivateExperiment": _EDIT,
        "CancelExperiment": _EDIT,
        "KillExperiment": _EDIT,
        "ArchiveExperiment": _EDIT,
        "DeleteExperiment": _EDIT,
        "UpdateExperiment": _EDIT,
        "WatchExperiments": _VIEW,
        "GetModelDefinition": _trial(own_experiment, role=Role.VIEWER),
    },
    "resolute.api.experiments.v1.TrialsService": {
        "GetTrial": _VIEW,
        "ListTrials": _VIEW,
        "KillTrial": _EDIT,
        "SetTrialStatus": _trial(own_trial),
        "BeginRun": _EDIT,
        "RenewRun": _trial(own_trial),
        "EndRun": _trial(own_trial, role=Role.EDITOR),
    },
    "resolute.api.experiments.v1.ContinuationService": {
        "ContinueExperiment": _EDIT,
        "ContinueTrial": _EDIT,
        "ForkExperiment": _EDIT,
    },
    "resolute.api.experiments.v1.RetentionService": {
        "CollectCheckpoints": _EDIT,
    },
    "resolute.api.experiments.v1.AllocationsService": {
        "GetLaunchSpec": _trial(own_allocation),
        "Rendezvous": _trial(own_allocation),
        "RenewLease": _trial(own_allocation),
        "AcknowledgeSignal": _trial(own_allocation),
        "RequestPreemption": _trial(own_allocation),
        "ReportExit": _trial(own_allocation),
        "FollowSignalChanges": _SERVICE,
    },
    "resolute.api.experiments.v1.JobsService": {"ListJobs": _VIEW, "UpdateJob": _EDIT},
    "resolute.api.experiments.v1.AccessService": {
        "GetVerificationKeys": Rule(public=True),
        "Login": Rule(public=True),
        "GetCurrentUser": _VIEW,
        "CreateUser": _ADMIN,
        "ListUsers": _VIEW,
        "UpdateUser": _ADMIN,
        # For what is the caller's own; the handlers keep others' for admins.
        "SetPassword": _VIEW,
        "CreateToken": _VIEW,
        "ListTokens": _VIEW,
        "RevokeToken": _VIEW,
        "ListAuditRows": _ADMIN,
    },
    "resolute.api.experiments.v1.WorkspacesService": {
        "CreateWorkspace": _EDIT,
        "GetWorkspace": _VIEW,
        "ListWorkspaces": _VIEW,
        "UpdateWorkspace": _EDIT,
        "SetQuota": _ADMIN,
        "DeleteWorkspace": _ADMIN,
        "CreateProject": _EDIT,
        "GetProject": _VIEW,
        "ListProjects": _VIEW,
        "UpdateProject": _EDIT,
        "DeleteProject": _EDIT,
        "MoveExperiment": _EDIT,
    },
    "resolute.api.experiments.v1.ClusterService": {
        "GetCluster": _VIEW,
        "SetTemplate": _EDIT,
        "GetTemplate": _VIEW,
        "ListTemplates": _VIEW,
        "DeleteTemplate": _EDIT,
    },
    "resolute.api.searcher.v1.SearcherService": {
        "CreateSearch": _SERVICE,
        "GetSearch": _VIEW,
        "WatchSearches": _VIEW,
        "FollowActions": _SERVICE,
        "AcknowledgeActions": _SERVICE,
        "ReportEvents": _SERVICE,
        "GetOperation": _trial(own_trial, role=Role.VIEWER),
        "CompleteOperation": _trial(own_trial),
        "ReportProgress": _trial(own_trial),
        "ReportValidations": _trial(own_trial),
        "FenceTrial": _SERVICE,
        "ListEvents": _VIEW,
        "ReplaySearch": _VIEW,
        "PreviewSearch": _VIEW,
        "SimulateSearch": _VIEW,
        "PollEvents": _EDIT,
        "PostOperations": _EDIT,
        "ExtendSearch": _SERVICE,
        "RetryTrial": _SERVICE,
        "DeleteSearch": _SERVICE,
    },
    "resolute.api.metrics.v1.MetricsService": {
        "IngestReports": _trial(own_begin),
        "ListSummaries": _trial(only_own_trial, role=Role.VIEWER),
        "GetSeries": _VIEW,
        "WatchSeries": _VIEW,
        "ListReports": _VIEW,
        "GetBestValidation": _trial(own_experiment, role=Role.VIEWER),
        "ListTrialValidations": _SERVICE,
        "DeleteExperimentMetrics": _SERVICE,
    },
    "resolute.api.logs.v1.LogsService": {
        "IngestLines": _trial(own_begin),
        "ListLines": _VIEW,
        "FollowLines": _VIEW,
        "CloseTrialLogs": _SERVICE,
        "DeleteExperimentLogs": _SERVICE,
    },
    "resolute.api.checkpoints.v1.CheckpointsService": {
        "BeginCheckpoint": _trial(own_begin),
        "ReuseFiles": _trial(checked_by_handler),
        "PresignUploads": _trial(checked_by_handler),
        "CommitCheckpoint": _trial(checked_by_handler),
        "CommitCheckpointInChunks": _trial(checked_by_handler),
        "AbortCheckpoint": _trial(checked_by_handler),
        "GetCheckpoint": _trial(checked_by_handler, role=Role.VIEWER),
        "GetLatestCheckpoint": _trial(own_trial, role=Role.VIEWER),
        "ListCheckpoints": _trial(only_own_trial, role=Role.VIEWER),
        "ListFiles": _trial(checked_by_handler, role=Role.VIEWER),
        "PresignDownloads": _trial(checked_by_handler, role=Role.VIEWER),
        "ReadFile": _trial(checked_by_handler, role=Role.VIEWER),
        "UpdateMetadata": _trial(checked_by_handler, role=Role.EDITOR),
        "PinCheckpoints": _EDIT,
        "DeleteCheckpoints": _trial(checked_by_handler, role=Role.EDITOR),
        "DeleteFiles": _trial(checked_by_handler, role=Role.EDITOR),
        "FenceTrial": _SERVICE,
        "CheckStorage": _EDIT,
        "GetStorageUsage": _SERVICE,
        "PreviewRetention": _SERVICE,
        "ApplyRetention": _SERVICE,
        "DeleteExperimentCheckpoints": _SERVICE,
        "AssignIds": _SERVICE,
    },
    "resolute.api.checkpoints.v1.ModelsService": {
        "CreateModel": _EDIT,
        "GetModel": _VIEW,
        "ListModels": _VIEW,
        "UpdateModel": _EDIT,
        "DeleteModel": _EDIT,
        "CreateVersion": _EDIT,
        "GetVersion": _VIEW,
        "ListVersions": _VIEW,
        "UpdateVersion": _EDIT,
        "DeleteVersion": _EDIT,
    },
    "resolute.api.preemption.v1.PreemptionService": {
        "WatchSignals": _trial(only_own_allocation, role=Role.VIEWER),
    },
    # Probes and tools of operators come without tokens, and learn nothing of experiments.
    "grpc.health.v1.Health": {
        "Check": Rule(public=True),
        "Watch": Rule(public=True),
        "List": Rule(public=True),
    },
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": Rule(public=True)},
}

PERMISSIONS: Mapping[str, Rule] = {
    f"/{service}/{method}": rule for service, rules in _BY_SERVICE.items() for method, rule in rules.items()
}
"""The rule of every RPC by its full name."""


def authorize(method: str, principal: Principal, request: Any) -> None:
    """Lets a call pass or refuses it.

    Args:
        method: Full name, ``/package.Service/Method``.
        principal: Who calls.
        request: The request; for calls that stream requests, None.

    Raises:
        PermissionDeniedError: The rule of the method does not allow it, or there is no rule.
    """
    rule = PERMISSIONS.get(method)
    if rule is None:
        raise PermissionDeniedError(f"{method} has no entry in the permission table, so nobody may call it")
    if rule.public or _allows(rule, principal, request, method=method):
        return
    raise PermissionDeniedError(_refusal(rule, principal, method.rsplit("/", 1)[1]))


def _allows(rule: Rule, principal: Principal, request: Any, *, method: str) -> bool:
    if isinstance(principal, User):
        return rule.role is not None and principal.role.includes(rule.role)
    if isinstance(principal, TrialRun):
        # Of streamed requests nothing is known yet: only a handler can check them.
        known = request is not None or rule.trial is checked_by_handler
        return rule.trial is not None and known and rule.trial(principal, request)
    return isinstance(principal, ServiceAccount) and service_accounts.may_call(principal.name, method)


def _refusal(rule: Rule, principal: Principal, method: str) -> str:
    if isinstance(principal, User):
        if rule.role is None:
            return f"{method} is not for users; the platform calls it itself"
        have, want = principal.role.value, rule.role.value
        return f"user {principal.name} is a {have}, and {method} wants a {want}; ask an admin"
    if isinstance(principal, TrialRun):
        owner = f"trial {principal.trial_id} run {principal.run}"
        return f"the token of {owner} does not reach what {method} asks for"
    if isinstance(principal, ServiceAccount):
        return f"{method} is not among the calls that the {principal.name} service makes"
    return f"{method} may not be called by {principal}"
