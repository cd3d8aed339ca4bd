"""Experiments as `det experiment` and `det project` print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
import yaml

from resolute.cli.determined import metrics, trials
from resolute.cli.determined.spelling import (
    experiment_state,
    indented,
    moment,
    prefixed,
    seconds_between,
    services,
    share,
    shown,
    trial_state,
)
from resolute.cli.display.rendering import Heading, Rendering, Table
from resolute.cli.display.trial_table import best_value
from resolute.cli.experiment.views.describe import Description
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.schema.accounts import ProjectRecord
from resolute.client.schema.records import ExperimentRecord, TrialRecord


def document(experiment: ExperimentRecord) -> dict[str, Any]:
    """An experiment as JSON; with its config, which lists have to ask for."""
    config = config_of(experiment)
    duration = seconds_between(experiment.create_time, experiment.end_time)
    return {
        "archived": experiment.archived,
        "checkpointCount": None,
        "checkpointSize": None,
        "config": config,
        "description": experiment.description,
        "displayName": experiment.owner,
        "duration": None if duration is None else int(duration),
        "endTime": moment(experiment.end_time),
        "externalExperimentId": experiment.external_id or None,
        "externalTrialId": None,
        "forkedFrom": None,
        "hyperparameters": config.get("hyperparameters") or {},
        "id": experiment.id,
        "jobId": experiment.uuid,
        "labels": list(experiment.labels),
        "modelDefinitionSize": experiment.model_definition_size,
        "name": experiment.name,
        "notes": experiment.notes,
        "numTrials": experiment.trial_count,
        "pachydermIntegration": None,
        "originalConfig": yaml.safe_dump(config),
        "parentArchived": False,
        "progress": experiment.progress,
        "projectId": experiment.project_id,
        "projectName": experiment.project,
        "projectOwnerId": experiment.owner_id,
        "resourcePool": pool_of(experiment),
        "searcherMetric": experiment.searcher_metric,
        "searcherType": experiment.searcher_name,
        "startTime": moment(experiment.create_time),
        "state": prefixed(experiment_state(experiment)),
        "unmanaged": experiment.unmanaged,
        "userId": experiment.owner_id,
        "username": experiment.owner,
        "workspaceId": experiment.workspace_id,
        "workspaceName": experiment.workspace,
    }


def _described(item: Description) -> dict[str, Any]:
    experiment = {
        **document(item.experiment),
        "bestTrialId": item.best.id if item.best else None,
        "bestTrialSearcherMetric": best_value(item.best) if item.best else None,
        "trialIds": [trial.id for trial in item.trials],
    }
    return {"config": experiment["config"], "experiment": experiment, "jobSummary": None}


def config_of(experiment: ExperimentRecord) -> dict[str, Any]:
    """The whole config, which lists do not have."""
    complete = experiment if experiment.config is not None else services().experiments.get(experiment.uuid)
    return complete.config or {}


def pool_of(experiment: ExperimentRecord) -> str:
    """The resource pool that the config names."""
    resources = config_of(experiment).get("resources") or {}
    return str(resources.get("resource_pool") or "default")


def of_project(project: ProjectRecord) -> Iterable[ExperimentRecord]:
    """The experiments of a project that are not archived."""
    return services().experiments.list(ExperimentFilter(project_ids=(project.id,)))


def _every_trial(descriptions: Iterable[Description]) -> list[TrialRecord]:
    return [trial for item in descriptions for trial in item.trials]


def _wants_metrics() -> bool:
    return bool(click.get_current_context().params.get("metrics"))


def _steps(descriptions: Sequence[Description]) -> list[metrics.Step]:
    reports = [report for item in descriptions for report in item.metrics]
    return metrics.steps_of(_every_trial(descriptions), reports if _wants_metrics() else None)


_LIST = (
    Heading("ID", lambda e: e.id),
    Heading("Owner", lambda e: e.owner),
    Heading("Name", lambda e: e.name),
    Heading("Parent ID", lambda _: None),
    Heading("State", experiment_state),
    Heading("Progress", lambda e: share(e.progress)),
    Heading("Started", lambda e: shown(e.create_time)),
    Heading("Ended", lambda e: shown(e.end_time)),
    Heading("Resource Pool", pool_of),
    Heading("Archived", lambda e: e.archived, when="everything"),
)
_PLACE = (
    Heading("Workspace", lambda e: e.workspace, when="show_project"),
    Heading("Project", lambda e: e.project, when="show_project"),
)
_DESCRIBED = (
    Heading("Experiment ID", lambda e: e.id),
    Heading("State", experiment_state),
    Heading("Progress", lambda e: share(e.progress)),
    Heading("Started", lambda e: shown(e.create_time)),
    Heading("Ended", lambda e: shown(e.end_time)),
    Heading("Name", lambda e: e.name),
    Heading("Description", lambda e: e.description),
    Heading("Archived", lambda e: e.archived),
    Heading("Resource Pool", pool_of),
    Heading("Labels", lambda e: ", ".join(sorted(e.labels))),
)
_DESCRIBED_TRIALS = (
    Heading("Trial ID", lambda trial: trial.id),
    Heading("Experiment ID", lambda trial: trial.experiment_id),
    Heading("State", lambda trial: trial_state(trial.state)),
    Heading("Started", lambda trial: shown(trial.create_time)),
    Heading("Ended", lambda trial: shown(trial.end_time)),
    Heading("H-Params", lambda trial: indented(trial.hparams)),
)

_AS_LIST = Rendering(
    lambda found: [document(experiment) for experiment in found], (Table((*_PLACE, *_LIST)),)
)
RENDERINGS = {
    "experiment list": _AS_LIST,
    "project list-experiments": _AS_LIST,
    "experiment describe": Rendering(
        lambda found: [_described(experiment) for experiment in found],
        (
            Table(_DESCRIBED, lambda found: [experiment.experiment for experiment in found], "Experiment:"),
            Table(_DESCRIBED_TRIALS, _every_trial, "\nTrials:"),
            Table(
                lambda steps: metrics.step_headings(steps, metrics=_wants_metrics()), _steps, "\nWorkloads:"
            ),
        ),
    ),
    "experiment list-trials": trials.LIST,
}
"""By the words of the command."""
