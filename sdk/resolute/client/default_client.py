"""The module functions of the client: one cluster for a whole script, logged in when first needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from resolute.client.client import Client
from resolute.client.objects.checkpoint import Checkpoint
from resolute.client.objects.experiment import Experiment, Trial
from resolute.client.objects.model import Model
from resolute.client.objects.user import User
from resolute.client.objects.workspace import Workspace
from resolute.client.schema.ordering import ExperimentSortBy, ModelSortBy, OrderBy
from resolute.client.schema.records import TrainingMetrics, TrialMetrics, ValidationMetrics
from resolute.client.schema.states import ExperimentState

_log = logging.getLogger("resolute.client")


class _DefaultClient:
    """The cluster that the module functions talk to."""

    cluster: Client | None = None


def login(
    master: str | None = None,
    user: str | None = None,
    password: str | None = None,
    cert_path: str | None = None,
    cert_name: str | None = None,
    noverify: bool = False,
) -> None:
    """Chooses the cluster and the user for the functions of this module; the arguments are ``Client``'s.

    Raises:
        ValueError: The script is logged in already, perhaps because another function came first.

    Examples:
        >>> from resolute import client
        >>> client.login()
        >>> client.get_session_username()
        'admin'
        >>> client.logout()
    """
    if _DefaultClient.cluster is not None:
        raise ValueError(
            "You can only call login() once, and before every other function; call logout() to log in anew"
        )
    _DefaultClient.cluster = Client(master, user, password, cert_path, cert_name, noverify)


def logout() -> None:
    """Closes the connection and forgets the cluster. Without a login it does nothing but log a warning.

    Examples:
        >>> from resolute import client
        >>> client.login()
        >>> client.logout()
    """
    if _DefaultClient.cluster is None:
        _log.warning("logout() has no effect: this script is not logged in")
        return
    _DefaultClient.cluster.logout()
    _DefaultClient.cluster = None


def get_session_username() -> str:
    """Returns the name of the user whose token is used.

    Examples:
        >>> from resolute import client
        >>> client.get_session_username()
        'admin'
    """
    return _cluster().get_session_username()


def whoami() -> User:
    """Returns the user whose token is used.

    Examples:
        >>> from resolute import client
        >>> client.whoami().username
        'admin'
    """
    return _cluster().whoami()


def create_experiment(
    config: str | os.PathLike[str] | Mapping[str, Any],
    model_dir: str | os.PathLike[str] | None = None,
    includes: Sequence[str | os.PathLike[str]] | None = None,
    project_id: int | None = None,
    template: str | None = None,
) -> Experiment:
    """Submits an experiment; see ``Client.create_experiment``.

    Examples:
        >>> from resolute import client
        >>> config = {"entrypoint": "python3 train.py", "searcher": {"name": "custom", "metric": "loss"}}
        >>> experiment = client.create_experiment(config)
        >>> experiment.kill()
        >>> experiment.wait()
        <ExperimentState.CANCELED: 'CANCELED'>
    """
    return _cluster().create_experiment(config, model_dir, includes, project_id, template)


def get_experiment(experiment_id: int | str) -> Experiment:
    """Returns an experiment by its number or UUID.

    Examples:
        >>> from resolute import client
        >>> client.get_experiment(2).id
        2
    """
    return _cluster().get_experiment(experiment_id)


def list_experiments(
    sort_by: ExperimentSortBy | None = None,
    order_by: OrderBy | None = None,
    experiment_ids: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    users: Sequence[str] | None = None,
    states: Sequence[ExperimentState] | None = None,
    name: str | None = None,
    project_id: int | None = None,
) -> list[Experiment]:
    """Lists experiments; see ``Client.list_experiments``.

    Examples:
        >>> from resolute import client
        >>> [experiment.id for experiment in client.list_experiments(experiment_ids=[2])]
        [2]
    """
    return _cluster().list_experiments(
        sort_by, order_by, experiment_ids, labels, users, states, name, project_id
    )


def create_user(
    username: str, admin: bool = False, password: str | None = None, remote: bool = False
) -> User:
    """Creates a user; see ``Client.create_user``.

    Examples:
        >>> from resolute import client
        >>> client.create_user("grace", password="Correct-Horse-1").username
        'grace'
    """
    return _cluster().create_user(username, admin, password, remote)


def get_user_by_id(user_id: int) -> User:
    """Returns a user by number.

    Examples:
        >>> from resolute import client
        >>> me = client.whoami()
        >>> client.get_user_by_id(me.user_id).username
        'admin'
    """
    return _cluster().get_user_by_id(user_id)


def get_user_by_name(user_name: str) -> User:
    """Returns a user.

    Examples:
        >>> from resolute import client
        >>> client.get_user_by_name("admin").admin
        True
    """
    return _cluster().get_user_by_name(user_name)


def list_users(active: bool | None = None) -> list[User]:
    """Lists users by name; see ``Client.list_users``.

    Examples:
        >>> from resolute import client
        >>> "admin" in [user.username for user in client.list_users(active=True)]
        True
    """
    return _cluster().list_users(active)


def create_workspace(name: str) -> Workspace:
    """Creates a workspace.

    Examples:
        >>> from resolute import client
        >>> client.create_workspace("audio").name
        'audio'
    """
    return _cluster().create_workspace(name)


def get_workspace(name: str) -> Workspace:
    """Returns a workspace.

    Examples:
        >>> from resolute import client
        >>> client.get_workspace("Uncategorized").name
        'Uncategorized'
    """
    return _cluster().get_workspace(name)


def list_workspaces() -> list[Workspace]:
    """Lists workspaces by name.

    Examples:
        >>> from resolute import client
        >>> "Uncategorized" in [workspace.name for workspace in client.list_workspaces()]
        True
    """
    return _cluster().list_workspaces()


def delete_workspace(name: str) -> None:
    """Removes a workspace that holds no experiments.

    Examples:
        >>> from resolute import client
        >>> workspace = client.create_workspace("draft")
        >>> client.delete_workspace("draft")
    """
    _cluster().delete_workspace(name)


def get_trial(trial_id: int | str) -> Trial:
    """Returns a trial by its number or UUID.

    Examples:
        >>> from resolute import client
        >>> client.get_trial(1).experiment_id
        2
    """
    return _cluster().get_trial(trial_id)


def get_checkpoint(uuid: str) -> Checkpoint:
    """Returns a committed checkpoint.

    Examples:
        >>> from resolute import client
        >>> best = client.get_trial(1).top_checkpoint()
        >>> client.get_checkpoint(best.uuid).metadata
        {'steps_completed': 1}
    """
    return _cluster().get_checkpoint(uuid)


def create_model(
    name: str,
    description: str | None = "",
    metadata: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    workspace_name: str | None = None,
) -> Model:
    """Creates a model; see ``Client.create_model``.

    Examples:
        >>> from resolute import client
        >>> client.create_model("digits", labels=["good"]).labels
        ['good']
    """
    return _cluster().create_model(name, description, metadata, labels, workspace_name)


def get_model(identifier: int | str) -> Model:
    """Returns a model by its name or its number.

    Examples:
        >>> from resolute import client
        >>> model = client.create_model("fish")
        >>> client.get_model("fish").model_id == model.model_id
        True
    """
    return _cluster().get_model(identifier)


def get_model_by_id(model_id: int) -> Model:
    """Returns a model by its number.

    Examples:
        >>> from resolute import client
        >>> model = client.create_model("mice")
        >>> client.get_model_by_id(model.model_id).name
        'mice'
    """
    return _cluster().get_model_by_id(model_id)


def list_models(
    sort_by: ModelSortBy = ModelSortBy.NAME,
    order_by: OrderBy = OrderBy.ASCENDING,
    name: str | None = None,
    description: str | None = None,
    model_id: int | None = None,
    workspace_names: Sequence[str] | None = None,
    workspace_ids: Sequence[int] | None = None,
) -> list[Model]:
    """Lists models; see ``Client.list_models``.

    Examples:
        >>> from resolute import client
        >>> model = client.create_model("ants", workspace_name="Uncategorized")
        >>> [one.name for one in client.list_models(name="ants")]
        ['ants']
    """
    return _cluster().list_models(
        sort_by, order_by, name, description, model_id, workspace_names, workspace_ids
    )


def get_model_labels() -> list[str]:
    """Lists the labels of all models, the most used first.

    Examples:
        >>> from resolute import client
        >>> model = client.create_model("owls", labels=["tested"])
        >>> "tested" in client.get_model_labels()
        True
    """
    return _cluster().get_model_labels()


def iter_trials_metrics(trial_ids: Sequence[int], group: str | None = None) -> Iterator[TrialMetrics]:
    """Yields what trials reported, trial by trial, in ``group`` or in all groups.

    Examples:
        >>> from resolute import client
        >>> [report.metrics for report in client.iter_trials_metrics([1], "validation")]
        [{'loss': 0.5}]
    """
    return _cluster().iter_trials_metrics(trial_ids, group)


def stream_trials_training_metrics(trial_ids: Sequence[int]) -> Iterator[TrainingMetrics]:
    """Yields what trials reported in the group ``training``.

    Examples:
        >>> from resolute import client
        >>> for report in client.stream_trials_training_metrics([1]):
        ...     print(report.steps_completed, report.metrics)
    """
    return _cluster().stream_trials_training_metrics(trial_ids)


def stream_trials_validation_metrics(trial_ids: Sequence[int]) -> Iterator[ValidationMetrics]:
    """Yields what trials reported in the group ``validation``.

    Examples:
        >>> from resolute import client
        >>> for report in client.stream_trials_validation_metrics([1]):
        ...     print(report.steps_completed, report.metrics)
        1 {'loss': 0.5}
    """
    return _cluster().stream_trials_validation_metrics(trial_ids)


def _cluster() -> Client:
    if _DefaultClient.cluster is None:
        login()
    assert _DefaultClient.cluster is not None
    return _DefaultClient.cluster
