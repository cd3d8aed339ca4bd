"""The Python client for people and tools: submit experiments, follow them, download their results.

The functions call one cluster: the one that ``login`` names, else that of ``RESOLUTE_MASTER``, ``DET_MASTER``
or the embedded home. ``Client`` has the same methods, for scripts that call several clusters.

Modules are imported at the first use of a name, so that commands start fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from resolute.runtime.older_names import by_older_name

if TYPE_CHECKING:
    from resolute.client.charts.chart import Chart
    from resolute.client.client import Client
    from resolute.client.default_client import (
        chart,
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
        get_session_username,
        get_trial,
        get_user_by_id,
        get_user_by_name,
        get_workspace,
        iter_trials_metrics,
        list_experiments,
        list_models,
        list_users,
        list_workspaces,
        login,
        logout,
        stream_trials_training_metrics,
        stream_trials_validation_metrics,
        whoami,
    )
    from resolute.client.downloads.sources import DownloadMode
    from resolute.client.objects.checkpoint import Checkpoint, CheckpointTraining
    from resolute.client.objects.experiment import Experiment, Trial
    from resolute.client.objects.model import Model, ModelVersion
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

__all__ = [
    "Chart",
    "Checkpoint",
    "CheckpointOrderBy",
    "CheckpointSortBy",
    "CheckpointState",
    "CheckpointTraining",
    "Client",
    "DownloadMode",
    "Experiment",
    "ExperimentOrderBy",
    "ExperimentSortBy",
    "ExperimentState",
    "LogLevel",
    "MetricSummary",
    "Model",
    "ModelDefinitionError",
    "ModelOrderBy",
    "ModelSortBy",
    "ModelVersion",
    "OrderBy",
    "Project",
    "TrainingMetrics",
    "Trial",
    "TrialMetrics",
    "TrialOrderBy",
    "TrialSortBy",
    "TrialState",
    "User",
    "UserRole",
    "ValidationMetrics",
    "Workspace",
    "chart",
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
    "get_session_username",
    "get_trial",
    "get_user_by_id",
    "get_user_by_name",
    "get_workspace",
    "iter_trials_metrics",
    "list_experiments",
    "list_models",
    "list_users",
    "list_workspaces",
    "login",
    "logout",
    "stream_trials_training_metrics",
    "stream_trials_validation_metrics",
    "whoami",
]

_MODULES = {
    "Chart": "charts.chart",
    "Client": "client",
    "DownloadMode": "downloads.sources",
    "Checkpoint": "objects.checkpoint",
    "CheckpointTraining": "objects.checkpoint",
    "Experiment": "objects.experiment",
    "Trial": "objects.experiment",
    "Model": "objects.model",
    "ModelVersion": "objects.model",
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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        return by_older_name(__name__, name)
    module = importlib.import_module(f"resolute.client.{_MODULES.get(name, 'default_client')}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
