"""The Python SDK for people and tools: submit experiments, follow them, fetch what they made.

The functions talk to one cluster, found in ``RESOLUTE_MASTER``, ``DET_MASTER`` or the embedded home unless
``login`` names another. ``Determined`` is the same for scripts that talk to several.

What a name needs is imported when the name is first used: commands start without most of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resolute.client.default_client import (
        add_oauth_client,
        create_experiment,
        create_model,
        create_user,
        create_workspace,
        delete_workspace,
        get_checkpoint,
        get_experiment,
        get_model,
        get_model_by_id,
        get_model_labels,
        get_models,
        get_session_username,
        get_trial,
        get_user_by_id,
        get_user_by_name,
        get_workspace,
        iter_trials_metrics,
        list_experiments,
        list_models,
        list_oauth_clients,
        list_users,
        list_workspaces,
        login,
        logout,
        remove_oauth_client,
        stream_trials_metrics,
        stream_trials_training_metrics,
        stream_trials_validation_metrics,
        whoami,
    )
    from resolute.client.determined import Determined
    from resolute.client.downloads.sources import DownloadMode
    from resolute.client.objects.checkpoint import Checkpoint, CheckpointTraining
    from resolute.client.objects.experiment import Experiment, Trial
    from resolute.client.objects.model import Model, ModelVersion
    from resolute.client.objects.refused import Oauth2ScimClient, ResourcePool
    from resolute.client.objects.user import User
    from resolute.client.objects.workspace import Project, Workspace
    from resolute.client.schema.accounts import UserRole
    from resolute.client.schema.ordering import (
        CheckpointOrderBy,
        CheckpointSortBy,
        ExperimentOrderBy,
        ExperimentSortBy,
        ModelOrderBy,
        ModelSortBy,
        OrderBy,
        TrialOrderBy,
        TrialSortBy,
    )
    from resolute.client.schema.records import MetricSummary, TrainingMetrics, TrialMetrics, ValidationMetrics
    from resolute.client.schema.states import CheckpointState, ExperimentState, LogLevel, TrialState
    from resolute.client.submission.file_tree import ModelDefinitionError

    # Names of older releases.
    CheckpointReference = Checkpoint
    ExperimentReference = Experiment
    TrialReference = Trial

__all__ = [
    "Checkpoint",
    "CheckpointOrderBy",
    "CheckpointReference",
    "CheckpointSortBy",
    "CheckpointState",
    "CheckpointTraining",
    "Determined",
    "DownloadMode",
    "Experiment",
    "ExperimentOrderBy",
    "ExperimentReference",
    "ExperimentSortBy",
    "ExperimentState",
    "LogLevel",
    "MetricSummary",
    "Model",
    "ModelDefinitionError",
    "ModelOrderBy",
    "ModelSortBy",
    "ModelVersion",
    "Oauth2ScimClient",
    "OrderBy",
    "Project",
    "ResourcePool",
    "TrainingMetrics",
    "Trial",
    "TrialMetrics",
    "TrialOrderBy",
    "TrialReference",
    "TrialSortBy",
    "TrialState",
    "User",
    "UserRole",
    "ValidationMetrics",
    "Workspace",
    "add_oauth_client",
    "create_experiment",
    "create_model",
    "create_user",
    "create_workspace",
    "delete_workspace",
    "get_checkpoint",
    "get_experiment",
    "get_model",
    "get_model_by_id",
    "get_model_labels",
    "get_models",
    "get_session_username",
    "get_trial",
    "get_user_by_id",
    "get_user_by_name",
    "get_workspace",
    "iter_trials_metrics",
    "list_experiments",
    "list_models",
    "list_oauth_clients",
    "list_users",
    "list_workspaces",
    "login",
    "logout",
    "remove_oauth_client",
    "stream_trials_metrics",
    "stream_trials_training_metrics",
    "stream_trials_validation_metrics",
    "whoami",
]

_MODULES = {
    "Determined": "determined",
    "DownloadMode": "downloads.sources",
    "Checkpoint": "objects.checkpoint",
    "CheckpointTraining": "objects.checkpoint",
    "Experiment": "objects.experiment",
    "Trial": "objects.experiment",
    "Model": "objects.model",
    "ModelVersion": "objects.model",
    "Oauth2ScimClient": "objects.refused",
    "ResourcePool": "objects.refused",
    "User": "objects.user",
    "Project": "objects.workspace",
    "Workspace": "objects.workspace",
    "UserRole": "schema.accounts",
    "CheckpointOrderBy": "schema.ordering",
    "CheckpointSortBy": "schema.ordering",
    "ExperimentOrderBy": "schema.ordering",
    "ExperimentSortBy": "schema.ordering",
    "ModelOrderBy": "schema.ordering",
    "ModelSortBy": "schema.ordering",
    "OrderBy": "schema.ordering",
    "TrialOrderBy": "schema.ordering",
    "TrialSortBy": "schema.ordering",
    "MetricSummary": "schema.records",
    "TrainingMetrics": "schema.records",
    "TrialMetrics": "schema.records",
    "ValidationMetrics": "schema.records",
    "CheckpointState": "schema.states",
    "ExperimentState": "schema.states",
    "LogLevel": "schema.states",
    "TrialState": "schema.states",
    "ModelDefinitionError": "submission.file_tree",
}
"""The module of each name; functions without an entry are in ``default_client``."""
_OLDER_NAMES = {
    "CheckpointReference": "Checkpoint",
    "ExperimentReference": "Experiment",
    "TrialReference": "Trial",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'resolute.client' has no attribute {name!r}")
    known = _OLDER_NAMES.get(name, name)
    module = importlib.import_module(f"resolute.client.{_MODULES.get(known, 'default_client')}")
    return getattr(module, known)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
