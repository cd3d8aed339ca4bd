"""Configs of new experiments, derived from an existing config or from a trial with its weights."""

from __future__ import annotations

from typing import Any

from resolute.contracts.hyperparameters import constants
from resolute_config.layer import Layer
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.trials import Trial

_SOURCES = ("source_trial_id", "source_checkpoint_uuid")
_KEPT = ("metric", "smaller_is_better", "max_length")


def forked_config(experiment: Experiment) -> Layer:
    """Returns the config of an experiment, without the weights that its trials began from."""
    searcher = {name: value for name, value in experiment.config["searcher"].items() if name not in _SOURCES}
    config = {
        **experiment.config,
        **_place(experiment),
        "searcher": searcher,
        "name": f"fork of {experiment.name}",
    }
    return Layer(experiment.label, config)


def continued_config(experiment: Experiment, trial: Trial) -> Layer:
    """Returns the config of one trial: its own hyperparameters, and the weights of its newest checkpoint."""
    before = experiment.config["searcher"]
    searcher = {name: before[name] for name in _KEPT if before.get(name) is not None}
    config = {
        **experiment.config,
        **_place(experiment),
        "name": f"{experiment.name}, {trial.label} continued",
        "hyperparameters": constants(trial.hparams, experiment.config["hyperparameters"]),
        "searcher": {"name": "single", **searcher, "source_trial_id": trial.number},
    }
    return Layer(trial.label, config)


def weights_of(trial: Trial) -> Layer:
    """Returns what a whole config lacks to begin with the weights of a trial, if its author left it out."""
    return Layer(trial.label, {"searcher": {"source_trial_id": trial.number}})


def _place(experiment: Experiment) -> dict[str, Any]:
    """Where the experiment belongs now: it may have moved, and its workspace may have another name.

    A pool that its config names may be one of the cluster that it was imported from: where it ran counts.
    """
    resources = experiment.config["resources"]
    if resources.get("resource_pool"):
        resources = {**resources, "resource_pool": experiment.resource_pool}
    return {"workspace": experiment.workspace, "project": experiment.project, "resources": resources}
