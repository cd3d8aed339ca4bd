"""The launch spec of a container of an allocation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resolute.api.experiments.v1 import experiment_pb2, launch_spec_pb2
from resolute.contracts.times import to_duration
from resolute.contracts.values import to_value
from resolute_experiments.accounts.store.workspaces import Workspace
from resolute_experiments.guard.skipping import skipped_batches
from resolute_experiments.specs.search import works_by_operations
from resolute_experiments.specs.storage import moved, storage
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.runs import Container, Run
from resolute_experiments.store.trials import Trial


@dataclass(frozen=True, kw_only=True)
class LaunchParameters:
    """The parameters that all containers of an allocation share, whatever they train."""

    cluster_id: str
    """UUID of the cluster."""
    lease_ttl: float
    """Seconds that a lease lasts without renewal."""
    preemption_timeout: float
    """Seconds between a signal and the hard end."""
    collective_key: str
    """Secret that the containers share; a lone container makes its own."""


def launch_spec(
    *,
    run: Run,
    containers: Sequence[Container],
    container_rank: int,
    trial: Trial,
    experiment: Experiment,
    workspace: Workspace,
    earlier: Sequence[Run],
    terms: LaunchParameters,
) -> launch_spec_pb2.LaunchSpec:
    """Builds the spec for one container of an allocation; ``earlier`` are the runs of the trial before it."""
    grace = experiment.config.get("termination_grace")
    config = moved(experiment.config, run.checkpoint_directory)
    return launch_spec_pb2.LaunchSpec(
        allocation_id=run.allocation_id,
        container_rank=container_rank,
        container_count=len(containers),
        slot_ids=containers[container_rank].slot_ids,
        experiment_id=experiment.id,
        experiment_number=experiment.number,
        trial_id=trial.id,
        trial_number=trial.number,
        run=run.run,
        hparams=to_value(trial.hparams),
        trial_seed=trial.seed,
        config=to_value(config),
        latest_checkpoint_id=trial.latest_checkpoint_id,
        steps_completed=trial.steps_completed,
        storage=storage(config),
        cluster_id=terms.cluster_id,
        lease_ttl=to_duration(terms.lease_ttl),
        preemption_timeout=to_duration(terms.preemption_timeout),
        termination_grace=None if grace is None else to_duration(grace),
        model_definition_sha256=experiment.definition_sha256 if experiment.definition_size else "",
        trace_id=run.trace_id,
        time_driven=not works_by_operations(experiment.config),
        workspace_id=workspace.number,
        kind=experiment_pb2.ExperimentKind.Value(f"EXPERIMENT_KIND_{experiment.kind.value}"),
        collective_key=terms.collective_key if len(containers) > 1 else "",
        skipped_batches=skipped_batches(experiment.config.get("guard"), earlier),
    )
