"""The Python SDK for people and tools: submit experiments, follow them, fetch what they made.

The functions talk to one cluster, found in ``RESOLUTE_MASTER``, ``DET_MASTER`` or the embedded home unless
``login`` names another. ``Determined`` is the same for scripts that talk to several.
"""

from resolute.client.default_client import (
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
    get_user_by_name,
    get_workspace,
    iter_trials_metrics,
    list_experiments,
    list_models,
    list_users,
    list_workspaces,
    login,
    logout,
    whoami,
)
from resolute.client.determined import Determined
from resolute.client.downloads.sources import DownloadMode
from resolute.client.objects.checkpoint import Checkpoint, CheckpointTraining
from resolute.client.objects.experiment import Experiment, Trial
from resolute.client.objects.model import Model, ModelVersion
from resolute.client.objects.user import User
from resolute.client.objects.workspace import Project, Workspace
from resolute.client.schema.accounts import UserRole
from resolute.client.schema.ordering import (
    CheckpointSortBy,
    ExperimentSortBy,
    ModelSortBy,
    OrderBy,
    TrialSortBy,
)
from resolute.client.schema.records import MetricSummary, TrialMetrics
from resolute.client.schema.states import CheckpointState, ExperimentState, LogLevel, TrialState
from resolute.client.submission.file_tree import ModelDefinitionError

# Names of older releases.
CheckpointReference = Checkpoint
ExperimentReference = Experiment
TrialReference = Trial

__all__ = [
    "Checkpoint",
    "CheckpointReference",
    "CheckpointSortBy",
    "CheckpointState",
    "CheckpointTraining",
    "Determined",
    "DownloadMode",
    "Experiment",
    "ExperimentReference",
    "ExperimentSortBy",
    "ExperimentState",
    "LogLevel",
    "MetricSummary",
    "Model",
    "ModelDefinitionError",
    "ModelSortBy",
    "ModelVersion",
    "OrderBy",
    "Project",
    "Trial",
    "TrialMetrics",
    "TrialReference",
    "TrialSortBy",
    "TrialState",
    "User",
    "UserRole",
    "Workspace",
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
    "get_user_by_name",
    "get_workspace",
    "iter_trials_metrics",
    "list_experiments",
    "list_models",
    "list_users",
    "list_workspaces",
    "login",
    "logout",
    "whoami",
]
