"""The trial to promote, its cluster and the other one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.client.schema.states import ExperimentState
from resolute.client.services import Services
from resolute.errors import FailedPreconditionError
from resolute.promotion.attempt import Attempt

_NAMESPACE = uuid.UUID("2f6b1a3e-3c1c-4d54-9d6a-7f3d8f5f0b11")


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """A trial that is to be promoted from one cluster to another."""

    source: Services
    target: Services
    cluster_id: str
    """Of the source."""
    target_id: str
    trial: TrialRecord
    experiment: ExperimentRecord
    place: Path
    """Takes what is on its way, and tells later calls what was done."""

    def lineage(self, attempt: Attempt) -> dict[str, Any]:
        """Where the copies come from, for their metadata."""
        return {
            "cluster_id": self.cluster_id,
            "trial": self.trial.id,
            "trial_id": self.trial.uuid,
            "experiment": self.experiment.id,
            "checkpoint_id": attempt.checkpoint,
            "steps_completed": attempt.steps,
        }


def prepare(source: Services, target: Services, key: str, *, directory: Path) -> Promotion:
    """Finds a trial, and sees that it can be promoted.

    Args:
        source: The cluster of the trial.
        target: The other one.
        key: Number or UUID of the trial.
        directory: Where promotions lie.

    Raises:
        NotFoundError: There is no such trial.
        FailedPreconditionError: Both are one cluster, or the trial is running.
    """
    cluster_id, target_id = (side.cluster.get().cluster_id for side in (source, target))
    if target_id == cluster_id:
        raise FailedPreconditionError(
            "the trial is on that cluster already; `resolute trial continue` goes on with it there"
        )
    trial = source.trials.get(key)
    experiment = source.experiments.get(trial.experiment_uuid)
    paused = experiment.state is ExperimentState.PAUSED and not trial.state.holds_slots
    if not trial.state.is_terminal and not paused:
        raise FailedPreconditionError(
            f"trial {trial.id} is {trial.state.name}, and what it reports next would be missing there; "
            f"wait for its end, or `resolute experiment pause {experiment.id}` first"
        )
    name = uuid.uuid5(_NAMESPACE, f"{cluster_id} {trial.uuid} {target_id}")
    return Promotion(
        source=source,
        target=target,
        cluster_id=cluster_id,
        target_id=target_id,
        trial=trial,
        experiment=experiment,
        place=directory / str(name),
    )
