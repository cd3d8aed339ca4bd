"""Which role each call needs, written down a second time: the table of permissions is compared with this."""

from __future__ import annotations

from resolute_serving.context import Role

WORKSPACE_VIEWER = frozenset(
    [
        "GetBoard",
        "GetConfigPolicies",
        "GetExperiment",
        "WatchExperiments",
        "GetModelDefinition",
        "GetTrial",
        "ListTrials",
        "ListTrialNumbers",
        "ListTrialTransitions",
        "GetRunEnvironment",
        "GetMachineUsage",
        "GetWorkspace",
        "GetProject",
        "GetSearch",
        "WatchSearches",
        "GetOperation",
        "ListEvents",
        "ListMoves",
        "GetImportances",
        "ReplaySearch",
        "ListSummaries",
        "GetSeries",
        "ListSeries",
        "WatchSeries",
        "ListReports",
        "GetBestValidation",
        "ListLines",
        "FollowLines",
        "GetCheckpoint",
        "GetLatestCheckpoint",
        "ListCheckpoints",
        "ListStorageUsage",
        "ListFiles",
        "PresignDownloads",
        "ReadFile",
        "HoldCheckpoint",
        "ListMediaNames",
        "ListMedia",
        "GetMedia",
        "GetModel",
        "GetVersion",
        "ListVersions",
        "WatchSignals",
        "ListProjects",
        "ListRoles",
        "ListDroppedLines",
        "ListDroppedReports",
        "ListExperiments",
        "ListJobs",
        "ListModels",
    ]
)
"""Calls that read what they name; lists name the workspace that they are filtered by."""
WORKSPACE_EDITOR = frozenset(
    [
        "PauseExperiment",
        "ActivateExperiment",
        "CancelExperiment",
        "KillExperiment",
        "ArchiveExperiment",
        "DeleteExperiment",
        "UpdateExperiment",
        "UpdateTrial",
        "KillTrial",
        "ListRunFiles",
        "ReadRunFile",
        "EndRun",
        "ContinueExperiment",
        "CollectCheckpoints",
        "DeleteTensorBoardFiles",
        "UpdateJob",
        "UpdateWorkspace",
        "CreateProject",
        "UpdateProject",
        "DeleteProject",
        "MoveExperiment",
        "PollEvents",
        "PostOperations",
        "UpdateMetadata",
        "PinCheckpoints",
        "DeleteCheckpoints",
        "DeleteFiles",
        "CreateModel",
        "UpdateModel",
        "DeleteModel",
        "CreateVersion",
        "UpdateVersion",
        "DeleteVersion",
        "ListSecrets",
        "SetBoard",
        "DeleteBoard",
    ]
)
"""Calls that change what they name, and what is for those who write configs."""
WORKSPACE_ADMIN = frozenset(
    [
        "DeleteWorkspace",
        "AssignRole",
        "RemoveRole",
        "SetConfigPolicies",
        "DeleteConfigPolicies",
        "SetAlerts",
        "GetAlerts",
        "TestEndpoint",
        "ListDeliveries",
        "SetSecret",
        "DeleteSecret",
    ]
)
CONFIG_EDITOR = frozenset(
    ["CreateExperiment", "CreateExperimentInChunks", "BeginRun", "ForkExperiment", "ContinueTrial"]
)
"""Calls that place an experiment where a config says."""
LISTS = frozenset(["ListBoards", "ListImported", "ListWorkspaces", "GetCluster"])
"""Calls that name nothing, and show what the caller may see."""
ANYWHERE_EDITOR = frozenset(["CheckStorage"])
CLUSTER: dict[str, Role] = {
    **dict.fromkeys(
        [
            "ValidateConfig",
            "GetCurrentUser",
            "GetUserSettings",
            "UpdateUserSettings",
            "ListUsers",
            "SetPassword",
            "CreateToken",
            "ListTokens",
            "UpdateToken",
            "RevokeToken",
            "CreateSignInCode",
            "GetTemplate",
            "ListTemplates",
            "PreviewSearch",
            "SimulateSearch",
            # Each of its parts is a call to a service, which decides by itself.
            "Watch",
        ],
        Role.MEMBER,
    ),
    **dict.fromkeys(["CreateWorkspace", "SetTemplate", "DeleteTemplate"], Role.EDITOR),
    **dict.fromkeys(
        [
            "CreateUser",
            "UpdateUser",
            "CreateServiceToken",
            "ListAuditRows",
            "SetQuota",
            "DisableSlots",
            "EnableSlots",
            "GetServerConfig",
            "FollowServerLog",
            "ImportExperiment",
            "ImportTrials",
            "FinishImport",
            "ImportCheckpoints",
            "ImportModel",
            # Of trials of other clusters; those here send theirs by the tokens of their runs.
            "IngestReports",
            "IngestLines",
        ],
        Role.ADMIN,
    ),
}
"""Calls for which the role in the cluster alone counts."""
PERSONAL = frozenset(
    [
        "SetPassword",
        "CreateToken",
        "CreateSignInCode",
        "ListTokens",
        "UpdateToken",
        "RevokeToken",
        "UpdateUserSettings",
        "SetSecret",
        "ListSecrets",
        "DeleteSecret",
    ]
)
"""Calls about a user's own account, which no script of the user's trials and no read-only token makes."""
PUBLIC = frozenset(
    ["GetVerificationKeys", "GetSignInMethods", "Login", "LoginWithIdToken", "RedeemSignInCode"]
)
