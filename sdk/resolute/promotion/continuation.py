"""The experiment on the other cluster that continues from the copied checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from resolute.client.downloads.model_definition import save_model_definition
from resolute.client.remote.experiments import Created, Submission
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentState
from resolute.client.submission.config import config_text, with_overrides
from resolute.client.submission.git_state import GitState
from resolute.client.submission.packing import Archive
from resolute.contracts.hyperparameters import constants
from resolute.errors import NotFoundError
from resolute.promotion.attempt import Attempt, Request
from resolute.promotion.preparation import Promotion

_OF_A_CLUSTER = ("checkpoint_storage", "workspace", "project", "bind_mounts")
"""Fields of a config that mean something on one cluster only."""
_OF_THE_SEARCHER = ("metric", "smaller_is_better", "max_length")
"""Fields of any search that one of a single trial has too."""
_GONE = frozenset({ExperimentState.DELETING, ExperimentState.DELETED, ExperimentState.DELETE_FAILED})


def check_config(promotion: Promotion, attempt: Attempt, overrides: Sequence[str]) -> None:
    """Asks the other cluster whether it takes the config, before anything is sent.

    Raises:
        InvalidConfigError: It does not; every fault is listed.
    """
    if config := _config(promotion, attempt.copy_id, overrides):
        promotion.target.experiments.validate(config)


def continue_from(
    promotion: Promotion, attempt: Attempt, overrides: Sequence[str], *, paused: bool
) -> Created | None:
    """Submits the code again, with a search of one trial that starts from the copy.

    Args:
        promotion: The trial.
        attempt: Its copy.
        overrides: Changes of the config; a repeated call with the same finds the experiment that it made.
        paused: Whether to create it paused.

    Returns:
        The experiment; None if the command of the trial is not known.
    """
    request = attempt.request(overrides)
    if request is not None and request.experiment:
        experiment = _find(promotion, request.experiment)
        if experiment is not None:
            return Created(experiment, tuple(request.warnings))
        request = None
    if request is None:
        config = _config(promotion, attempt.copy_id, overrides)
        if config is None:
            return None
        request = Request(config=config, paused=paused)
        attempt = attempt.with_request(overrides, request).save(promotion.place)
    created = _create(promotion, request)
    request = replace(request, experiment=created.experiment.uuid, warnings=list(created.warnings))
    attempt = attempt.with_request(overrides, request).save(promotion.place)
    if created.experiment.state in _GONE:
        # Created by a call that was cut short, and deleted since.
        return continue_from(promotion, attempt, overrides, paused=paused)
    return created


def _find(promotion: Promotion, experiment_id: str) -> ExperimentRecord | None:
    try:
        experiment = promotion.target.experiments.get(experiment_id)
    except NotFoundError:
        return None
    return None if experiment.state in _GONE else experiment


def _create(promotion: Promotion, request: Request) -> Created:
    source = promotion.experiment.source
    submission = Submission(
        config=request.config,
        request_id=request.request_id,
        paused=request.paused,
        source=None
        if source is None
        else GitState(
            commit=source.git_commit,
            branch=source.git_branch,
            diff=source.git_diff,
            truncated=source.git_diff_truncated,
        ),
    )
    path = promotion.place / "code.tgz"
    if promotion.experiment.model_definition_size:
        save_model_definition(promotion.source.experiments, promotion.experiment.uuid, path)
    else:
        path.write_bytes(b"")
    try:
        with Archive(path.open("rb"), entries=(), content_size=path.stat().st_size) as archive:
            return promotion.target.experiments.create(submission, archive)
    finally:
        path.unlink()


def _config(promotion: Promotion, checkpoint_id: str, overrides: Sequence[str]) -> str | None:
    """The config as JSON; None if the command of the trial is not known."""
    config = dict(promotion.experiment.config or {})
    searcher = config.get("searcher") or {}
    for name in _OF_A_CLUSTER:
        config.pop(name, None)
    resources = config.get("resources")
    if isinstance(resources, Mapping):
        config["resources"] = {name: value for name, value in resources.items() if name != "resource_pool"}
    config["hyperparameters"] = constants(promotion.trial.hparams, config.get("hyperparameters") or {})
    config["searcher"] = {
        "name": "single",
        **{name: searcher[name] for name in _OF_THE_SEARCHER if searcher.get(name) is not None},
        "source_checkpoint_uuid": checkpoint_id,
    }
    changed = with_overrides(_without_nulls(json.loads(json.dumps(config))), overrides)
    return config_text(changed) if changed.get("entrypoint") else None


def _without_nulls(config: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what has no value: defaults are those of the other cluster."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) and name != "hyperparameters" else value
        for name, value in config.items()
        if value is not None
    }
