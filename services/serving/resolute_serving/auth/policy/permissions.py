"""The table of permissions: one entry for every RPC of every service. A call without an entry is refused.

``service_accounts`` has the calls that a service may make to others, ``trial_scopes`` the scope of a trial's
token, and ``scopes`` the workspaces in which a user needs a role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from resolute_serving.auth.policy.scopes import (
    ALLOCATIONS,
    ANYWHERE,
    CHECKPOINT,
    CHECKPOINTS,
    CLUSTER,
    CONFIG,
    EXPERIMENT,
    EXPERIMENT_AND_TRIALS,
    EXPERIMENT_BY_KEY,
    EXPERIMENT_ID,
    EXPERIMENTS,
    EXPERIMENTS_AND_TRIALS,
    LISTED,
    LOG,
    LOGS,
    MODEL,
    MODEL_CREATED,
    MODEL_MOVED,
    PROJECT,
    PROJECT_UPDATED,
    SEARCH,
    SEARCHES,
    TRIAL,
    TRIAL_BY_KEY,
    TRIAL_ID,
    TRIALS,
    TRIALS_BY_ID,
    TRIALS_OF_SERIES,
    WORKSPACE,
    WORKSPACE_OR_CLUSTER,
    WORKSPACE_OR_OWN,
    WORKSPACE_UPDATED,
    Scope,
)
from resolute_serving.auth.policy.trial_scopes import (
    TrialScope,
    checked_by_handler,
    only_own_allocation,
    only_own_trial,
    own_allocation,
    own_begin,
    own_experiment,
    own_trial,
)
from resolute_serving.context import Role


@dataclass(frozen=True)
class Need:
    """A role that a user needs for a call."""

    role: Role
    """The least role."""
    scope: Scope
    """Where the user needs it. A role in the cluster counts in every workspace."""


@dataclass(frozen=True)
class Rule:
    """The callers that may make one call."""

    user: tuple[Need, ...] = ()
    """What a user needs, all of it; nothing when no user may."""
    trial: TrialScope | None = None
    """Scope of a trial's token; None when no trial may."""
    public: bool = False
    """Whether callers without a token may."""
    personal: bool = False
    """Whether it is about the caller's own account, so that no token of the SDK in a trial may call it."""
    expired: bool = False
    """Whether a token that has expired is taken too: the call renews it, and its handler checks the rest."""


def viewer(scope: Scope) -> Need:
    """A call that reads."""
    return Need(Role.VIEWER, scope)


def editor(scope: Scope) -> Need:
    """A call that changes something."""
    return Need(Role.EDITOR, scope)


def admin(scope: Scope) -> Need:
    """A call that administrates a workspace or the cluster."""
    return Need(Role.ADMIN, scope)


def _user(*needs: Need) -> Rule:
    return Rule(user=needs)


def _trial(scope: TrialScope, *needs: Need) -> Rule:
    return Rule(user=needs, trial=scope)


_MEMBER = _user(Need(Role.MEMBER, CLUSTER))
_PERSONAL = Rule(user=(Need(Role.MEMBER, CLUSTER),), personal=True)
_EDITOR = _user(editor(CLUSTER))
_ADMIN = _user(admin(CLUSTER))
_SERVICE = Rule()


_BY_SERVICE: Mapping[str, Mapping[str, Rule]] = {
    "resolute.api.experiments.v1.ExperimentsService": {
        "CreateExperiment": _user(editor(CONFIG)),
        "CreateExperimentInChunks": _user(editor(CONFIG)),
        "ValidateConfig": _MEMBER,
        "GetExperiment": _trial(own_experiment, viewer(EXPERIMENT)),
        "ListExperiments": _user(viewer(LISTED)),
        "PauseExperiment": _user(editor(EXPERIMENT)),
        "ActivateExperiment": _user(editor(EXPERIMENT)),
        "CancelExperiment": _user(editor(EXPERIMENT)),
        "KillExperiment": _user(editor(EXPERIMENT)),
        "ArchiveExperiment": _user(editor(EXPERIMENT)),
        "DeleteExperiment": _user(editor(EXPERIMENT)),
        "UpdateExperiment": _user(editor(EXPERIMENT_BY_KEY)),
        "WatchExperiments": _user(viewer(EXPERIMENTS)),
        "GetModelDefinition": _trial(own_experiment, viewer(EXPERIMENT)),
    },
    "resolute.api.experiments.v1.TrialsService": {
        "GetTrial": _user(viewer(TRIAL)),
        "ListTrials": _user(viewer(EXPERIMENT)),
        "ListTrialNumbers": _user(viewer(EXPERIMENT)),
        "ListTrialTransitions": _user(viewer(TRIAL)),
        "GetRunEnvironment": _user(viewer(TRIAL)),
        "GetMachineUsage": _user(viewer(TRIAL)),
        "ListRunFiles": _user(editor(TRIAL)),
        "ReadRunFile": _user(editor(TRIAL)),
        "UpdateTrial": _user(editor(TRIAL_BY_KEY)),
        "KillTrial": _user(editor(TRIAL)),
        "SetTrialStatus": _trial(own_trial),
        "BeginRun": _user(editor(CONFIG)),
        "RenewRun": Rule(trial=own_trial, expired=True),
        "EndRun": _trial(own_trial, editor(TRIAL_ID)),
    },
    "resolute.api.experiments.v1.ContinuationService": {
        "ContinueExperiment": _user(editor(EXPERIMENT)),
        "ContinueTrial": _user(viewer(TRIAL), editor(CONFIG)),
        "ForkExperiment": _user(viewer(EXPERIMENT), editor(CONFIG)),
    },
    "resolute.api.experiments.v1.RetentionService": {
        "CollectCheckpoints": _user(editor(EXPERIMENT)),
        "DeleteTensorBoardFiles": _user(editor(EXPERIMENT)),
    },
    "resolute.api.experiments.v1.AllocationsService": {
        "GetLaunchSpec": _trial(own_allocation),
        "Rendezvous": _trial(own_allocation),
        "RenewLease": Rule(trial=own_allocation, expired=True),
        "AcknowledgeSignal": _trial(own_allocation),
        "RequestPreemption": _trial(own_allocation),
        "ReportEnvironment": _trial(own_allocation),
        "ReportMachineUsage": _trial(own_allocation),
        "ReportExit": _trial(own_allocation),
        "FollowSignalChanges": _SERVICE,
    },
    "resolute.api.experiments.v1.JobsService": {
        "ListJobs": _user(viewer(LISTED)),
        "UpdateJob": _user(editor(EXPERIMENT)),
    },
    "resolute.api.experiments.v1.AccessService": {
        "GetVerificationKeys": Rule(public=True),
        "Login": Rule(public=True),
        "GetSignInMethods": Rule(public=True),
        "LoginWithIdToken": Rule(public=True),
        "CreateSignInCode": _PERSONAL,
        "RedeemSignInCode": Rule(public=True),
        "GetCurrentUser": _MEMBER,
        "GetUserSettings": _MEMBER,
        "UpdateUserSettings": _PERSONAL,
        "CreateUser": _ADMIN,
        "ListUsers": _MEMBER,
        "UpdateUser": _ADMIN,
        # For what is the caller's own; the handlers keep others' for admins.
        "SetPassword": _PERSONAL,
        "CreateToken": _PERSONAL,
        "CreateServiceToken": _ADMIN,
        "RenewServiceToken": Rule(expired=True),
        "ListTokens": _PERSONAL,
        "UpdateToken": _PERSONAL,
        "RevokeToken": _PERSONAL,
        "RecordRefusals": _SERVICE,
        "ListAuditRows": _ADMIN,
    },
    "resolute.api.experiments.v1.RolesService": {
        "AssignRole": _user(admin(WORKSPACE)),
        "RemoveRole": _user(admin(WORKSPACE)),
        "ListRoles": _user(viewer(LISTED)),
        "FindWorkspaces": _SERVICE,
    },
    "resolute.api.experiments.v1.WorkspacesService": {
        "CreateWorkspace": _EDITOR,
        "GetWorkspace": _user(viewer(WORKSPACE)),
        "ListWorkspaces": _user(viewer(LISTED)),
        "UpdateWorkspace": _user(editor(WORKSPACE_UPDATED)),
        "SetQuota": _ADMIN,
        "DeleteWorkspace": _user(admin(WORKSPACE)),
        "CreateProject": _user(editor(WORKSPACE)),
        "GetProject": _user(viewer(PROJECT)),
        "ListProjects": _user(viewer(LISTED)),
        "UpdateProject": _user(editor(PROJECT_UPDATED)),
        "DeleteProject": _user(editor(PROJECT)),
        "MoveExperiment": _user(editor(EXPERIMENT), editor(PROJECT)),
    },
    "resolute.api.experiments.v1.ClusterService": {
        # The holders of slots are left out where the caller may not see them.
        "GetCluster": _user(viewer(LISTED)),
        "DisableSlots": _ADMIN,
        "EnableSlots": _ADMIN,
        "GetServerConfig": _ADMIN,
        "FollowServerLog": _ADMIN,
        "SetTemplate": _EDITOR,
        "GetTemplate": _MEMBER,
        "ListTemplates": _MEMBER,
        "DeleteTemplate": _EDITOR,
    },
    "resolute.api.experiments.v1.AlertsService": {
        "SetAlerts": _user(admin(WORKSPACE_OR_CLUSTER)),
        "GetAlerts": _user(admin(WORKSPACE_OR_CLUSTER)),
        "TestEndpoint": _user(admin(WORKSPACE_OR_CLUSTER)),
        "ListDeliveries": _user(admin(WORKSPACE_OR_CLUSTER)),
        "RaiseAlert": _trial(own_trial),
    },
    "resolute.api.experiments.v1.SecretsService": {
        "SetSecret": Rule(user=(admin(WORKSPACE_OR_OWN),), personal=True),
        "ListSecrets": Rule(user=(editor(WORKSPACE_OR_OWN),), personal=True),
        "DeleteSecret": Rule(user=(admin(WORKSPACE_OR_OWN),), personal=True),
        "GetRunSecrets": _trial(own_allocation),
    },
    "resolute.api.experiments.v1.BoardsService": {
        "SetBoard": _user(editor(PROJECT)),
        "GetBoard": _user(viewer(PROJECT)),
        "ListBoards": _user(viewer(LISTED)),
        "DeleteBoard": _user(editor(PROJECT)),
    },
    "resolute.api.experiments.v1.ConfigPoliciesService": {
        "SetConfigPolicies": _user(admin(WORKSPACE_OR_CLUSTER)),
        # Those of the cluster count for everybody, so that everybody may read them.
        "GetConfigPolicies": _user(viewer(WORKSPACE)),
        "DeleteConfigPolicies": _user(admin(WORKSPACE_OR_CLUSTER)),
    },
    "resolute.api.experiments.v1.ImportsService": {
        "ImportExperiment": _ADMIN,
        "ImportTrials": _ADMIN,
        "FinishImport": _ADMIN,
        "ListImported": _user(viewer(LISTED)),
    },
    "resolute.api.searcher.v1.SearcherService": {
        "CreateSearch": _SERVICE,
        "GetSearch": _user(viewer(SEARCH)),
        "WatchSearches": _user(viewer(SEARCHES)),
        "FollowActions": _SERVICE,
        "AcknowledgeActions": _SERVICE,
        "ReportEvents": _SERVICE,
        "GetOperation": _trial(own_trial, viewer(TRIAL_ID)),
        "CompleteOperation": _trial(own_trial),
        "ReportProgress": _trial(own_trial),
        "ReportValidations": _trial(own_trial),
        "FenceTrial": _SERVICE,
        "ListEvents": _user(viewer(SEARCH)),
        "ListMoves": _user(viewer(SEARCH)),
        "GetImportances": _user(viewer(SEARCH)),
        "ReplaySearch": _user(viewer(SEARCH)),
        "PreviewSearch": _MEMBER,
        "SimulateSearch": _MEMBER,
        "PollEvents": _user(editor(SEARCH)),
        "PostOperations": _user(editor(SEARCH)),
        "ExtendSearch": _SERVICE,
        "RetryTrial": _SERVICE,
        "DeleteSearch": _SERVICE,
    },
    "resolute.api.metrics.v1.MetricsService": {
        # Admins send what trials of other clusters reported.
        "IngestReports": _trial(own_begin, admin(CLUSTER)),
        "ListSummaries": _trial(only_own_trial, viewer(EXPERIMENT_AND_TRIALS)),
        "GetSeries": _user(viewer(TRIAL_ID)),
        "ListSeries": _user(viewer(TRIALS_OF_SERIES)),
        "WatchSeries": _user(viewer(TRIALS)),
        "ListReports": _user(viewer(TRIAL_ID)),
        "GetBestValidation": _trial(own_experiment, viewer(EXPERIMENT_AND_TRIALS)),
        "ListTrialValidations": _SERVICE,
        "ListLastSteps": _SERVICE,
        "ListDroppedReports": _user(viewer(EXPERIMENT_ID)),
        "DeleteExperimentMetrics": _SERVICE,
    },
    "resolute.api.logs.v1.LogsService": {
        # As for reports.
        "IngestLines": _trial(own_begin, admin(CLUSTER)),
        "ListLines": _user(viewer(LOG)),
        "FollowLines": _user(viewer(LOGS)),
        "ListDroppedLines": _user(viewer(EXPERIMENT_ID)),
        "CloseTrialLogs": _SERVICE,
        "DeleteExperimentLogs": _SERVICE,
    },
    "resolute.api.checkpoints.v1.CheckpointsService": {
        "BeginCheckpoint": _trial(own_begin),
        "ReuseFiles": _trial(checked_by_handler),
        "PresignUploads": _trial(checked_by_handler),
        "CommitCheckpoint": _trial(checked_by_handler),
        "CommitCheckpointInChunks": _trial(checked_by_handler),
        "ImportCheckpoints": _ADMIN,
        "AbortCheckpoint": _trial(checked_by_handler),
        "GetCheckpoint": _trial(checked_by_handler, viewer(CHECKPOINT)),
        "GetLatestCheckpoint": _trial(own_trial, viewer(TRIAL_ID)),
        "ListCheckpoints": _trial(only_own_trial, viewer(EXPERIMENTS_AND_TRIALS)),
        "ListFiles": _trial(checked_by_handler, viewer(CHECKPOINT)),
        "PresignDownloads": _trial(checked_by_handler, viewer(CHECKPOINT)),
        "ReadFile": _trial(checked_by_handler, viewer(CHECKPOINT)),
        "UpdateMetadata": _trial(checked_by_handler, editor(CHECKPOINT)),
        "PinCheckpoints": _user(editor(CHECKPOINTS)),
        "DeleteCheckpoints": _trial(checked_by_handler, editor(CHECKPOINTS)),
        "DeleteFiles": _trial(checked_by_handler, editor(CHECKPOINTS)),
        "FenceTrial": _SERVICE,
        "CheckStorage": _user(editor(ANYWHERE)),
        "AdmitStorage": _SERVICE,
        "MakeWorkspaceDirectory": _SERVICE,
        "GetStorageUsage": _SERVICE,
        "ListStorageUsage": _user(viewer(WORKSPACE)),
        "ListUnrankedCheckpoints": _SERVICE,
        "HoldCheckpoint": _trial(checked_by_handler, viewer(CHECKPOINT)),
        "PreviewRetention": _SERVICE,
        "ApplyRetention": _SERVICE,
        "DeleteExperimentCheckpoints": _SERVICE,
        "DeleteExperimentTensorBoardFiles": _SERVICE,
        "AssignIds": _SERVICE,
    },
    "resolute.api.checkpoints.v1.ModelsService": {
        "CreateModel": _user(editor(MODEL_CREATED)),
        "ImportModel": _ADMIN,
        "GetModel": _user(viewer(MODEL)),
        "ListModels": _user(viewer(LISTED)),
        "UpdateModel": _user(editor(MODEL), editor(MODEL_MOVED)),
        "DeleteModel": _user(editor(MODEL)),
        "CreateVersion": _user(editor(MODEL), viewer(CHECKPOINT)),
        "GetVersion": _user(viewer(MODEL)),
        "ListVersions": _user(viewer(MODEL)),
        "UpdateVersion": _user(editor(MODEL)),
        "DeleteVersion": _user(editor(MODEL)),
    },
    "resolute.api.checkpoints.v1.MediaService": {
        "IngestMedia": _trial(own_begin),
        "ListMediaNames": _user(viewer(TRIALS_BY_ID)),
        "ListMedia": _user(viewer(TRIAL_ID)),
        "GetMedia": _user(viewer(TRIAL_ID)),
    },
    "resolute.api.gateway.v1.GatewayService": {
        # It calls the services with the caller's own token, and each checks what it shows.
        "Watch": _MEMBER,
    },
    "resolute.api.preemption.v1.PreemptionService": {
        "WatchSignals": _trial(only_own_allocation, viewer(ALLOCATIONS)),
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
