"""The experiment on the other cluster that goes on from the copy of the checkpoint."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resolute.client.downloads.model_definition import save_model_definition
from resolute.client.remote.experiments import Created, Submission
from resolute.client.schema.states import ExperimentState
from resolute.client.submission.config import config_text, with_overrides
from resolute.client.submission.git_state import GitState
from resolute.client.submission.packing import Archive
from resolute.promotion.attempt import Attempt
from resolute.promotion.preparation import Promotion

_OF_A_CLUSTER = ("checkpoint_storage", "workspace", "project", "bind_mounts")
"""Fields of a config that mean something on one cluster only."""
_GONE = frozenset({ExperimentState.DELETING, ExperimentState.DELETED, ExperimentState.DELETE_FAILED})


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
    config = with_overrides(_config(promotion, attempt.copy_id), overrides)
    if not config.get("entrypoint"):
        return None
    path = promotion.place / "code.tgz"
    if promotion.experiment.model_definition_size:
        save_model_definition(promotion.source.experiments, promotion.experiment.uuid, path)
    else:
        path.write_bytes(b"")
    try:
        request_id = attempt.request(overrides) or _new_request(promotion, attempt, overrides)
        created = _create(promotion, config, code=path, request_id=request_id, paused=paused)
        if created.experiment.state in _GONE:
            request_id = _new_request(promotion, attempt, overrides)
            created = _create(promotion, config, code=path, request_id=request_id, paused=paused)
        return created
    finally:
        path.unlink()


def _new_request(promotion: Promotion, attempt: Attempt, overrides: Sequence[str]) -> str:
    request_id = str(uuid.uuid4())
    attempt.with_request(overrides, request_id).save(promotion.place)
    return request_id


def _create(
    promotion: Promotion, config: dict[str, Any], *, code: Path, request_id: str, paused: bool
) -> Created:
    source = promotion.experiment.source
    submission = Submission(
        config=config_text(config),
        request_id=request_id,
        paused=paused,
        source=None
        if source is None
        else GitState(
            commit=source.git_commit,
            branch=source.git_branch,
            diff=source.git_diff,
            truncated=source.git_diff_truncated,
        ),
    )
    with Archive(code.open("rb"), entries=(), content_size=code.stat().st_size) as archive:
        return promotion.target.experiments.create(submission, archive)


def _config(promotion: Promotion, checkpoint_id: str) -> dict[str, Any]:
    config = dict(promotion.experiment.config or {})
    searcher = config.get("searcher") or {}
    kept = ("metric", "smaller_is_better", "max_length", "max_time", "time_metric")
    for name in _OF_A_CLUSTER:
        config.pop(name, None)
    resources = config.get("resources")
    if isinstance(resources, Mapping):
        config["resources"] = {name: value for name, value in resources.items() if name != "resource_pool"}
    config["hyperparameters"] = promotion.trial.hparams
    config["searcher"] = {
        "name": "single",
        **{name: searcher[name] for name in kept if searcher.get(name) is not None},
        "source_checkpoint_uuid": checkpoint_id,
    }
    return _without_nulls(json.loads(json.dumps(config)))


def _without_nulls(config: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what has no value: defaults are those of the other cluster."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) and name != "hyperparameters" else value
        for name, value in config.items()
        if value is not None
    }
