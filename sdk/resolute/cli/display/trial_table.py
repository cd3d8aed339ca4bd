"""Trials of an experiment beside their best validations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.cli.display.output import Column
from resolute.client.schema.records import BestRecord, ExperimentRecord, TrialRecord
from resolute.client.services import Services


@dataclass(frozen=True)
class TrialWithBest:
    """A trial with its best validation."""

    trial: TrialRecord
    best: BestRecord | None


def trials_with_best(services: Services, experiment: ExperimentRecord) -> list[TrialWithBest]:
    """Reads the trials of an experiment with their best validations, by number."""
    return [with_best(experiment, trial) for trial in services.trials.list(experiment.uuid)]


def with_best(experiment: ExperimentRecord, trial: TrialRecord) -> TrialWithBest:
    """Puts a trial of an experiment beside its best validation."""
    best = trial.best_validation
    if best is None or best.value is None:
        return TrialWithBest(trial, None)
    return TrialWithBest(trial, BestRecord(trial.uuid, experiment.searcher_metric, best.value, best.steps))


def best_of(trials: Iterable[TrialWithBest], *, smaller_is_better: bool) -> TrialWithBest | None:
    """Finds the trial with the best validation; None if none has one."""
    sign = 1.0 if smaller_is_better else -1.0
    rated = [(sign * item.best.value, item.trial.id, item) for item in trials if item.best is not None]
    return min(rated, key=lambda entry: entry[:2])[2] if rated else None


def columns(metric: str, trials: Sequence[TrialWithBest]) -> tuple[Column[TrialWithBest], ...]:
    """What lists of trials show.

    Args:
        metric: Name of the metric that decides.
        trials: The trials of the list: the hyperparameters that differ among them come first, since a
            table that has to fit cuts the end off.
    """
    differing = _differing([item.trial.hparams for item in trials])
    return (
        Column("Trial", lambda item: item.trial.id, right=True),
        Column("State", lambda item: item.trial.state),
        Column(f"Best {metric}".strip(), lambda item: item.best.value if item.best else None, right=True),
        Column("At step", lambda item: item.best.steps if item.best else None, right=True),
        Column("Restarts", lambda item: item.trial.restarts, right=True),
        Column("Lost steps", lambda item: item.trial.lost_steps if item.trial.run > 1 else None, right=True),
        Column("Created", lambda item: item.trial.create_time),
        Column("Ended", lambda item: item.trial.end_time),
        Column("Hyperparameters", lambda item: _sorted_first(item.trial.hparams, differing)),
        Column("Explanation", lambda item: item.trial.explanation, note=True),
    )


def _differing(settings: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    names = {name for one in settings for name in one}
    return frozenset(name for name in names if len({repr(one.get(name)) for one in settings}) > 1)


def _sorted_first(settings: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: settings[name] for name in sorted(settings, key=lambda name: name not in names)}
