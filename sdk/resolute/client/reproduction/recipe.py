"""Everything that determined a trial: code, config, hyperparameters, seed, lengths, first checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resolute.client.insight.decisions import trial_key
from resolute.client.schema.environments import EnvironmentRecord
from resolute.client.schema.records import CheckpointRecord, SourceRecord, TrialRecord
from resolute.client.services import Services
from resolute.errors import FailedPreconditionError, NotFoundError


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a trial needs to run again."""

    cluster_id: str
    trial: TrialRecord
    config: dict[str, Any]
    """The whole config of its experiment."""
    has_code: bool
    source_code: SourceRecord | None
    """The git work tree that the code came from; None when that is not known."""
    lengths: tuple[int, ...]
    """Absolute lengths that the search asked for, in order; empty where validation reports drove it."""
    source: CheckpointRecord | None
    """The checkpoint that its first run started from; None for none."""
    environment: EnvironmentRecord | None
    """Of its latest run; None if that was not recorded."""
    slots: int
    gpu: bool
    """Whether the slots of its latest run are GPUs."""


def read_recipe(services: Services, key: str) -> Recipe:
    """Reads what decided a trial.

    Args:
        services: The cluster.
        key: Number or UUID of the trial.

    Raises:
        NotFoundError: There is no such trial, or the checkpoint that it started from is gone.
        FailedPreconditionError: It ran outside of the cluster, which does not know its command.
    """
    trial = services.trials.get(key)
    experiment = services.experiments.get(trial.experiment_uuid)
    lengths, source = _operations(services, trial)
    cluster = services.cluster.get()
    config = experiment.config or {}
    last = trial.runs[-1] if trial.runs else None
    environment = services.trials.environment(trial.uuid, last.run) if last else None
    if environment is None:
        gpus = {slot.slot_id for slot in cluster.slots if slot.kind == "gpu"}
        gpu = last is not None and not gpus.isdisjoint(last.slot_ids)
    else:  # the slots of today may be others
        gpu = last is not None and bool(last.slot_ids and environment.gpus)
    return Recipe(
        cluster_id=cluster.cluster_id,
        trial=trial,
        config=config,
        has_code=bool(experiment.model_definition_size),
        source_code=experiment.source,
        lengths=lengths,
        source=services.checkpoints.get(source) if source else None,
        environment=environment,
        slots=len(last.slot_ids) if last else int((config.get("resources") or {}).get("slots_per_trial", 1)),
        gpu=gpu,
    )


def _operations(services: Services, trial: TrialRecord) -> tuple[tuple[int, ...], str]:
    """Returns the lengths that the search asked for, and the checkpoint that it let the trial start from."""
    lengths, source = [], ""
    try:
        for entry in services.searches.log(trial.experiment_uuid, trial_keys=[trial.trial_key]):
            for operation in entry.operations:
                if trial_key(operation) != trial.trial_key:
                    continue
                kind = operation.WhichOneof("kind")
                if kind == "validate_after":
                    lengths.append(operation.validate_after.length)
                elif kind == "create":
                    source = operation.create.checkpoint_id
    except NotFoundError as failure:
        raise FailedPreconditionError(
            f"trial {trial.id} ran outside of the cluster, which knows neither its command nor its length; "
            "run its script again yourself"
        ) from failure
    return tuple(lengths), source
