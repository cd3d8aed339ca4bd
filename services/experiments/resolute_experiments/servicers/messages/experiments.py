"""Converts rows to messages of the contract."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from resolute.api.experiments.v1 import experiment_pb2, job_pb2, run_pb2, trial_pb2, trial_transition_pb2
from resolute.api.preemption.v1 import signal_pb2
from resolute.contracts.messages import to_message
from resolute.contracts.times import to_timestamp
from resolute.contracts.values import to_value
from resolute_experiments.scheduling.jobs import Job
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.messages.first_leaves import first_leaves
from resolute_experiments.specs.trial_length import estimated_end, trains
from resolute_experiments.states import ALLOCATED_TRIALS, ExperimentState, TrialState
from resolute_experiments.store.experiments import Experiment, ExperimentKind
from resolute_experiments.store.runs import Container, Run, RunTimes
from resolute_experiments.store.trial_transitions import TrialTransition
from resolute_experiments.store.trials import Trial
from resolute_serving.updates import etag_of
from resolute_serving.validation import invalid

_NOT_WHOLE = "its import from another cluster is not complete; start the same import again"


def timestamp(seconds: float | None) -> Timestamp | None:
    """Unix seconds as a message; None stays None."""
    return None if seconds is None else to_timestamp(seconds)


def experiment_state(number: int) -> ExperimentState:
    """Reads a state of the contract.

    Raises:
        InvalidArgumentError: It is none.
    """
    try:
        name = experiment_pb2.ExperimentState.Name(number)  # type: ignore[arg-type]
        return ExperimentState(name.removeprefix("EXPERIMENT_STATE_"))
    except ValueError as error:
        raise invalid("states", f"states holds {number}, which is not a state of an experiment") from error


def experiment_kind(number: experiment_pb2.ExperimentKind.ValueType) -> ExperimentKind:
    """Reads a kind of the contract, of which none is a search."""
    if number == experiment_pb2.EXPERIMENT_KIND_UNSPECIFIED:
        return ExperimentKind.SEARCH
    return ExperimentKind(experiment_pb2.ExperimentKind.Name(number).removeprefix("EXPERIMENT_KIND_"))


def trial_state(number: int) -> TrialState:
    """Reads a state of the contract.

    Raises:
        InvalidArgumentError: It is none.
    """
    try:
        name = trial_pb2.TrialState.Name(number)  # type: ignore[arg-type]
        return TrialState(name.removeprefix("TRIAL_STATE_"))
    except ValueError as error:
        raise invalid("states", f"states holds {number}, which is not a state of a trial") from error


def experiment_state_number(state: ExperimentState) -> experiment_pb2.ExperimentState.ValueType:
    """A state as the contract has it."""
    return experiment_pb2.ExperimentState.Value(f"EXPERIMENT_STATE_{state.value}")


def trial_state_number(state: TrialState) -> trial_pb2.TrialState.ValueType:
    """A state as the contract has it."""
    return trial_pb2.TrialState.Value(f"TRIAL_STATE_{state.value}")


def experiment_message(
    experiment: Experiment,
    counts: dict[str, int],
    *,
    times: RunTimes | None = None,
    whole: bool = False,
    notes: str = "",
    wait_reason: str = "",
    source: bytes = b"",
    checkpoint_directories: Sequence[str] = (),
) -> experiment_pb2.Experiment:
    """Builds an experiment's message.

    Args:
        experiment: The row.
        counts: Its trials by state.
        times: How long any of its trials has held slots; None if none ever has.
        whole: Whether the config is included.
        notes: Its notes, where one experiment is asked for.
        wait_reason: Why the first of its waiting trials waits.
        source: Where its code came from: a serialized ``CodeSource``; empty when that is not known.
        checkpoint_directories: Where its runs kept their checkpoints, beside the storage of its config.
    """
    times = times or RunTimes()
    searcher = experiment.config["searcher"]
    runs_now = experiment.state is ExperimentState.ACTIVE
    return to_message(
        experiment_pb2.Experiment,
        experiment,
        experiment_id=experiment.id,
        notes=notes,
        activity=_activity(experiment, counts),
        owner_name=experiment.owner,
        workspace_name=experiment.workspace,
        project_name=experiment.project,
        config=to_value(experiment.config) if whole else None,
        create_time=timestamp(experiment.created_at),
        end_time=timestamp(experiment.ended_at),
        trial_count=sum(counts.values()),
        searcher_name=searcher["name"],
        searcher_metric=searcher.get("metric") or "",
        smaller_is_better=searcher["smaller_is_better"],
        etag=etag_of(experiment.edit_revision),
        model_definition_bytes=experiment.definition_size,
        start_time=timestamp(experiment.started_at),
        estimated_end_time=timestamp(experiment.estimated_end_at) if runs_now else None,
        steps_per_second=experiment.steps_per_second if runs_now else None,
        best_validation=_validation(experiment.best_value, experiment.best_steps),
        best_trial_number=experiment.best_trial or 0,
        run_seconds=times.ended_seconds,
        run_start_time=timestamp(times.started_at),
        wait_reason=wait_reason,
        warning=_NOT_WHOLE if experiment.importing else experiment.warning,
        source=experiment_pb2.CodeSource.FromString(source) if source else None,
        checkpoint_directories=checkpoint_directories,
        trial_state_counts=[
            experiment_pb2.TrialStateCount(state=trial_state_number(TrialState(name)), count=count)
            for name, count in sorted(counts.items())
            if count
        ],
    )


def _activity(experiment: Experiment, counts: dict[str, int]) -> experiment_pb2.ExperimentActivity.ValueType:
    if experiment.state is ExperimentState.PAUSED:
        leaving = any(counts.get(state.value) for state in ALLOCATED_TRIALS)
        return (
            experiment_pb2.EXPERIMENT_ACTIVITY_PAUSING
            if leaving
            else experiment_pb2.EXPERIMENT_ACTIVITY_UNSPECIFIED
        )
    if experiment.state is not ExperimentState.ACTIVE:
        return experiment_pb2.EXPERIMENT_ACTIVITY_UNSPECIFIED
    for state in (TrialState.RUNNING, TrialState.STARTING, TrialState.STOPPING):
        if counts.get(state.value):
            return experiment_pb2.ExperimentActivity.Value(f"EXPERIMENT_ACTIVITY_{state.value}")
    return experiment_pb2.EXPERIMENT_ACTIVITY_QUEUED


def trial_message(
    trial: Trial,
    experiment: Experiment,
    *,
    explanation: str,
    times: RunTimes | None,
    runs: list[Run] | None = None,
    containers: list[Container] | None = None,
    max_hparams: int | None = None,
    notes: str = "",
) -> trial_pb2.Trial:
    """Builds a trial's message; with its runs and processes if they are given.

    Args:
        trial: The row.
        experiment: Its experiment.
        explanation: Why it waits, or how its last run ended.
        times: How long it has held slots; None for a trial without runs, and where it is not asked for.
        runs: Its runs.
        containers: The containers of the last one.
        max_hparams: Most hyperparameters that it has, the first by name; None for all.
        notes: Its notes, where one trial is asked for.
    """
    hparams, omitted = (
        (trial.hparams, 0) if max_hparams is None else first_leaves(trial.hparams, most=max_hparams)
    )
    times = times or RunTimes()
    return to_message(
        trial_pb2.Trial,
        trial,
        trial_id=trial.id,
        experiment_number=experiment.number,
        trial_key=trial.request_id,
        hparams=to_value(hparams),
        omitted_hparams=omitted,
        explanation=explanation,
        latest_checkpoint_id=trial.latest_checkpoint_id or None,
        create_time=timestamp(trial.created_at),
        end_time=timestamp(trial.ended_at),
        runs=[run_message(run) for run in runs or []],
        pids=[container.pid for container in containers or [] if container.pid and not container.exited],
        endpoints=[
            _endpoint(container.address, port)
            for container in containers or []
            if not container.over
            for port in container.ports
        ],
        best_validation=_validation(trial.best_value, trial.best_steps),
        last_validation=_validation(trial.last_value, trial.last_steps),
        report_time=timestamp(trial.reported_at),
        estimated_end_time=timestamp(_trial_end(trial, experiment)),
        notes=notes,
        etag=etag_of(trial.edit_revision),
        run_seconds=times.ended_seconds,
        run_start_time=timestamp(times.started_at),
        killed=trial.kill_requested and trial.state is TrialState.CANCELED,
    )


def _trial_end(trial: Trial, experiment: Experiment) -> float | None:
    end = estimated_end(trial, experiment.config)
    # Where the steps of its length are not known, the only trial of an experiment ends with it.
    if end is None and trains(trial) and experiment.config["searcher"]["name"] == "single":
        return experiment.estimated_end_at
    return end


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def transition_message(transition: TrialTransition) -> trial_transition_pb2.TrialTransition:
    """Builds the message of a change of a trial's state."""
    return to_message(
        trial_transition_pb2.TrialTransition,
        transition,
        actor_name=transition.actor,
        search_event_sequence=transition.search_event,
    )


def _validation(value: float | None, steps: int | None) -> trial_pb2.Validation | None:
    return None if steps is None else trial_pb2.Validation(value=value, steps=steps)


def run_message(run: Run) -> run_pb2.Run:
    """Builds the message of a run."""
    return to_message(
        run_pb2.Run,
        run,
        start_time=timestamp(run.started_at),
        end_time=timestamp(run.ended_at),
        initialize_time=timestamp(run.initialized_at),
        hold_time=timestamp(run.held_until),
        gpu_usage=_gpu_usage(run),
    )


def _gpu_usage(run: Run) -> run_pb2.GpuUsage | None:
    if run.gpu_measured_seconds is None:
        return None
    return run_pb2.GpuUsage(
        energy_joules=run.gpu_energy_joules,
        busy_seconds=run.gpu_busy_seconds or 0.0,
        measured_seconds=run.gpu_measured_seconds,
    )


def job_message(job: Job, wait_reasons: WaitReasons) -> job_pb2.Job:
    """Builds the message of an experiment in the queue."""
    return to_message(
        job_pb2.Job,
        job,
        experiment_number=job.number,
        owner_name=job.owner,
        priority=job.share.priority,
        weight=job.share.weight,
        max_slots=job.share.max_slots,
        queued_trials=job.queued,
        allocated_trials=job.allocated,
        wait_reason=wait_reasons.first_wait_reason(job.experiment_id) if job.queued else "",
        estimated_end_time=timestamp(job.estimated_end_at) if job.state is ExperimentState.ACTIVE else None,
        steps_per_second=job.steps_per_second if job.state is ExperimentState.ACTIVE else None,
        stuck_trials=[
            job_pb2.StuckTrial(
                trial_number=stuck.trial_number, reason=stuck.reason, notice_time=timestamp(stuck.since)
            )
            for stuck in job.stuck
        ],
        etag=etag_of(job.edit_revision),
    )


def _signal_reason(name: str) -> signal_pb2.SignalReason.ValueType:
    return signal_pb2.SignalReason.Value(f"SIGNAL_REASON_{name or 'UNSPECIFIED'}")


def signal_message(run: Run) -> signal_pb2.Signal:
    """Builds the signal of a run's allocation."""
    return to_message(
        signal_pb2.Signal,
        run,
        revision=run.signal_revision,
        reason=_signal_reason(run.signal_reason),
        kill_time=timestamp(run.signal_deadline),
    )
