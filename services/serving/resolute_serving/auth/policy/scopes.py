"""The scope of a call: whether a user needs a role in the cluster, or in workspaces of the named objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from resolute_serving.auth.policy.resources import (
    WITHOUT_WORKSPACE,
    Kind,
    Resource,
    experiment_key,
    model_key,
    named,
    trial_key,
)


def _names_nothing(_request: Any) -> Sequence[Resource]:
    return ()


def _workspaces_of_filter(request: Any) -> Sequence[Resource]:
    """A list whose filter names a workspace that the caller may not see is refused."""
    return named(Kind.WORKSPACE, getattr(request, "workspace_ids", ()))


@dataclass(frozen=True)
class Scope:
    """The places where a call requires a role."""

    text: str
    """Says so in documents, after "a role in"."""
    resources: Callable[[Any], Sequence[Resource]] = _names_nothing
    """What a request names: the role is needed in the workspace of each.

    Handlers refuse requests that name nothing where they should.
    """


CLUSTER = Scope("the cluster")
ANYWHERE = Scope("some workspace")
LISTED = Scope("the workspaces of what is listed; the rest is left out", _workspaces_of_filter)
CONFIG = Scope("the workspace that the config names")
"""Which workspace that is, the handler knows alone; it checks the role."""

EXPERIMENT = Scope("the experiment's workspace", lambda request: experiment_key(request.experiment))
EXPERIMENT_BY_KEY = Scope(EXPERIMENT.text, lambda request: experiment_key(request.key))
EXPERIMENT_ID = Scope(EXPERIMENT.text, lambda request: named(Kind.EXPERIMENT, [request.experiment_id]))
EXPERIMENTS = Scope(
    "the workspaces of the experiments; of the queue the rest is left out",
    lambda request: [
        each for experiment in request.experiments for each in experiment_key(experiment.experiment)
    ],
)
TRIAL_BY_KEY = Scope("the trial's workspace", lambda request: trial_key(request.key))
TRIAL = Scope("the trial's workspace", lambda request: trial_key(request.trial))
TRIAL_ID = Scope(TRIAL.text, lambda request: named(Kind.TRIAL, [request.trial_id]))
TRIALS = Scope(
    "the workspaces of the trials",
    lambda request: named(Kind.TRIAL, [subscription.trial_id for subscription in request.subscriptions]),
)
TRIALS_BY_ID = Scope(TRIALS.text, lambda request: named(Kind.TRIAL, request.trial_ids))
TRIALS_OF_SERIES = Scope(
    TRIALS.text, lambda request: named(Kind.TRIAL, [series.trial_id for series in request.series])
)
LOGS = Scope(
    "the workspaces of the trials and experiments",
    lambda request: [each for subscription in request.subscriptions for each in _log(subscription.filter)],
)
LOG = Scope("the workspace of the trial or the experiment", lambda request: _log(request.filter))
EXPERIMENT_AND_TRIALS = Scope(
    "the workspaces of the experiment and the trials",
    lambda request: [
        *named(Kind.EXPERIMENT, [request.experiment_id]),
        *named(Kind.TRIAL, request.trial_ids),
    ],
)
EXPERIMENTS_AND_TRIALS = Scope(
    "the workspaces of the experiments and the trials",
    lambda request: [
        *named(Kind.EXPERIMENT, request.experiment_ids),
        *named(Kind.TRIAL, request.trial_ids),
    ],
)
# A search has the UUID of its experiment.
SEARCH = Scope(EXPERIMENT.text, lambda request: named(Kind.EXPERIMENT, [request.search_id]))
SEARCHES = Scope(
    "the workspaces of the experiments",
    lambda request: named(
        Kind.EXPERIMENT, [subscription.search_id for subscription in request.subscriptions]
    ),
)
ALLOCATIONS = Scope(
    TRIALS.text,
    lambda request: named(
        Kind.ALLOCATION, [subscription.allocation_id for subscription in request.subscriptions]
    ),
)

WORKSPACE = Scope("the workspace", lambda request: named(Kind.WORKSPACE, [request.workspace_id]))
WORKSPACE_OR_CLUSTER = Scope(
    "the workspace; in the cluster, for what counts in all",
    lambda request: named(Kind.WORKSPACE, [request.workspace_id]) or [WITHOUT_WORKSPACE],
)
WORKSPACE_OR_OWN = Scope("the workspace; nowhere, for the caller's own", WORKSPACE.resources)
WORKSPACE_UPDATED = Scope(
    WORKSPACE.text, lambda request: named(Kind.WORKSPACE, [request.workspace.workspace_id])
)
PROJECT = Scope("the project's workspace", lambda request: named(Kind.PROJECT, [request.project_id]))
PROJECT_UPDATED = Scope(PROJECT.text, lambda request: named(Kind.PROJECT, [request.project.project_id]))

# A checkpoint belongs where its experiment does.
CHECKPOINT = Scope(
    "the workspace of the checkpoint's experiment",
    lambda request: named(Kind.CHECKPOINT, [request.checkpoint_id]),
)
CHECKPOINTS = Scope(
    "the workspaces of the checkpoints' experiments",
    lambda request: named(Kind.CHECKPOINT, request.checkpoint_ids),
)
MODEL = Scope(
    "the model's workspace; in the cluster, for a model of none", lambda request: model_key(request.key)
)
MODEL_CREATED = Scope(MODEL.text, lambda request: _workspace_of_model(request.model))
MODEL_MOVED = Scope(
    "the workspace that the model is moved to",
    lambda request: _workspace_of_model(request.model) if "workspace_id" in request.update_mask.paths else (),
)


def _log(wanted: Any) -> Sequence[Resource]:
    return [*named(Kind.TRIAL, [wanted.trial_id]), *named(Kind.EXPERIMENT, [wanted.experiment_id])]


def _workspace_of_model(model: Any) -> Sequence[Resource]:
    return named(Kind.WORKSPACE, [model.workspace_id]) or [WITHOUT_WORKSPACE]
