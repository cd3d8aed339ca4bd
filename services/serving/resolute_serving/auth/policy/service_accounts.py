"""The calls that each service may make to others: its account has exactly these permissions."""

from __future__ import annotations

from collections.abc import Mapping

EMBEDDED = "embedded"
"""Account of a process that runs all services: it may call what any of them may."""

ACCOUNTS = ("experiments", "searcher", "metrics", "logs", "checkpoints", "preemption")
"""Accounts of services that run separately, one for each."""

_ROLES = {"experiments.v1.RolesService": ("ListRoles", "FindWorkspaces")}
"""What services ask that answer users."""
_BY_ACCOUNT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "experiments": {
        "searcher.v1.SearcherService": (
            "CreateSearch",
            "PreviewSearch",
            "GetSearch",
            "FollowActions",
            "AcknowledgeActions",
            "ReportEvents",
            "FenceTrial",
            "ListEvents",
            "ExtendSearch",
            "RetryTrial",
            "DeleteSearch",
        ),
        "metrics.v1.MetricsService": (
            "GetSeries",
            "ListSummaries",
            "ListTrialValidations",
            "ListLastSteps",
            "ListReports",
            "DeleteExperimentMetrics",
        ),
        "logs.v1.LogsService": ("ListLines", "CloseTrialLogs", "DeleteExperimentLogs"),
        "checkpoints.v1.CheckpointsService": (
            "GetCheckpoint",
            "GetLatestCheckpoint",
            "ListCheckpoints",
            "FenceTrial",
            "AdmitStorage",
            "MakeWorkspaceDirectory",
            "GetStorageUsage",
            "ListUnrankedCheckpoints",
            "HoldCheckpoint",
            "PreviewRetention",
            "ApplyRetention",
            "DeleteExperimentCheckpoints",
            "DeleteExperimentTensorBoardFiles",
            "AssignIds",
        ),
    },
    "searcher": _ROLES,
    "metrics": _ROLES,
    "logs": _ROLES,
    "checkpoints": _ROLES,
    "preemption": {**_ROLES, "experiments.v1.AllocationsService": ("FollowSignalChanges",)},
}

_OF_ALL: Mapping[str, tuple[str, ...]] = {
    "experiments.v1.AccessService": ("RenewServiceToken", "RecordRefusals"),
}

CALLS: Mapping[str, frozenset[str]] = {
    account: frozenset(
        f"/resolute.api.{service}/{method}"
        for table in (_BY_ACCOUNT.get(account, {}), _OF_ALL)
        for service, methods in table.items()
        for method in methods
    )
    for account in ACCOUNTS
}
"""The full names of the RPCs that each account may call."""

_ALL_CALLS = frozenset().union(*CALLS.values())


def may_call(account: str, method: str) -> bool:
    """Whether a service account may make a call.

    Args:
        account: Name of the account.
        method: Full name, ``/package.Service/Method``.
    """
    return method in (_ALL_CALLS if account == EMBEDDED else CALLS.get(account, frozenset()))
