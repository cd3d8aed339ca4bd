"""The differences between two trials or two runs: config, hyperparameters, code, environment and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from resolute.client.insight.code import CodeDifference, code_differences, read_code
from resolute.client.schema.records import RunRecord, SourceRecord, TrialRecord
from resolute.client.services import Services
from resolute.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class RunKey:
    """Names a trial, or one of its runs."""

    trial: str
    """Number or UUID."""
    run: int | None = None
    """From 1; None for the trial as a whole."""

    def __str__(self) -> str:
        return self.trial if self.run is None else f"{self.trial}.{self.run}"


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs; None where there is none."""

    path: str
    a: Any
    b: Any


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything in which two trials or runs differ."""

    a: str
    b: str
    config: tuple[Difference, ...]
    hyperparameters: tuple[Difference, ...]
    run: tuple[Difference, ...]
    """The seed, and how the runs ended."""
    source: tuple[Difference, ...]
    """The git work trees that the code came from; empty where one of the two was not recorded."""
    code: tuple[CodeDifference, ...]
    environment: tuple[Difference, ...]
    """Packages, interpreter, driver and host; empty where one of the two was not recorded."""
    metrics: tuple[Difference, ...]
    """The last values."""

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return any(
            (
                self.config,
                self.hyperparameters,
                self.run,
                self.source,
                self.code,
                self.environment,
                self.metrics,
            )
        )


@dataclass(frozen=True, kw_only=True)
class _Subject:
    trial: TrialRecord
    run: RunRecord | None
    config: dict[str, Any]
    source: SourceRecord | None
    environment: dict[str, Any] | None
    metrics: dict[str, Any]


def compare(services: Services, a: RunKey, b: RunKey) -> Comparison:
    """Compares two trials, or two runs.

    Raises:
        NotFoundError: There is no such trial or run.
    """
    first, second = _read(services, a), _read(services, b)
    same_code = first.trial.experiment_uuid == second.trial.experiment_uuid
    code = (
        ()
        if same_code
        else code_differences(
            read_code(services.experiments, first.trial.experiment_uuid),
            read_code(services.experiments, second.trial.experiment_uuid),
        )
    )
    return Comparison(
        a=str(a),
        b=str(b),
        config=differences(first.config, second.config),
        hyperparameters=differences(first.trial.hparams, second.trial.hparams),
        run=differences(_facts(first), _facts(second)),
        source=()
        if same_code or first.source is None or second.source is None
        else differences(_source_facts(first.source), _source_facts(second.source)),
        code=tuple(code),
        environment=()
        if first.environment is None or second.environment is None
        else differences(first.environment, second.environment),
        metrics=differences(first.metrics, second.metrics, nested=False),
    )


def differences(a: Mapping[str, Any], b: Mapping[str, Any], *, nested: bool = True) -> tuple[Difference, ...]:
    """Finds the values that differ, by dotted paths.

    Args:
        a: Values by name.
        b: The others.
        nested: Whether maps within them are compared value by value.
    """
    first, second = (flat(values) if nested else dict(values) for values in (a, b))
    return tuple(
        Difference(path, first.get(path), second.get(path))
        for path in sorted({*first, *second})
        if repr(first.get(path)) != repr(second.get(path))
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Writes nested maps as one, with dotted paths."""
    flattened: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            flattened |= flat(value, f"{prefix}{name}.")
        else:
            flattened[f"{prefix}{name}"] = value
    return flattened


def _read(services: Services, key: RunKey) -> _Subject:
    trial = services.trials.get(key.trial)
    runs = {run.run: run for run in trial.runs}
    number = trial.run if key.run is None else key.run
    if key.run is not None and key.run not in runs:
        raise NotFoundError(f"trial {trial.id} has no run {key.run}; it has had {len(runs)}")
    experiment = services.experiments.get(trial.experiment_uuid)
    return _Subject(
        trial=trial,
        run=runs.get(number),
        config=experiment.config or {},
        source=experiment.source,
        environment=_environment(services, trial, number),
        metrics=_metrics(services, trial, key.run),
    )


def _source_facts(source: SourceRecord) -> dict[str, Any]:
    return {
        "git commit": source.git_commit,
        "git branch": source.git_branch,
        "uncommitted changes": source.git_diff,
        "uncommitted changes cut": source.git_diff_truncated,
    }


def _environment(services: Services, trial: TrialRecord, run: int) -> dict[str, Any] | None:
    environment = services.trials.environment(trial.uuid, run) if run else None
    return None if environment is None else asdict(environment)


def _metrics(services: Services, trial: TrialRecord, run: int | None) -> dict[str, Any]:
    """The last value of each metric, by group and name."""
    if run is None:
        summaries = services.metrics.summaries([trial.uuid])
        return {f"{summary.group}.{summary.name}": summary.last for summary in summaries}
    last: dict[str, Any] = {}
    for report in services.metrics.reports(trial):
        if report.trial_run_id == run:
            last |= {f"{report.group}.{name}": value for name, value in flat(report.metrics).items()}
    return last


def _facts(subject: _Subject) -> dict[str, Any]:
    run = subject.run
    ended = (
        {}
        if run is None
        else {
            "outcome": run.outcome.value,
            "exit code": run.exit_code,
            "slots": len(run.slot_ids),
        }
    )
    return {"seed": subject.trial.seed, **ended}
