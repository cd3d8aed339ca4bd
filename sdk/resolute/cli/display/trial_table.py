"""Trials as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from resolute.cli.display.output import Column, current_time
from resolute.cli.display.tables.fitted_table import relative_time, span
from resolute.client.schema.records import TrialRecord


def best_of(trials: Iterable[TrialRecord], *, smaller_is_better: bool) -> TrialRecord | None:
    """Finds the trial with the best validation; None if none has one."""
    sign = 1.0 if smaller_is_better else -1.0
    rated = [(sign * value, trial.id, trial) for trial in trials if (value := best_value(trial)) is not None]
    return min(rated, key=lambda entry: entry[:2])[2] if rated else None


def best_value(trial: TrialRecord) -> float | None:
    """The value of a trial's best validation; None if it has none."""
    return trial.best_validation.value if trial.best_validation else None


def best_steps(trial: TrialRecord) -> int | None:
    """The steps of a trial's best validation; None if it has none."""
    return trial.best_validation.steps if trial.best_validation and best_value(trial) is not None else None


def shown_rate(steps_per_second: float | None) -> str:
    """Writes a rate with three digits; empty for None."""
    return "" if steps_per_second is None else f"{steps_per_second:.3g}"


def shown_estimate(end: datetime | None) -> str:
    """Writes in how long something is expected to be done; empty for None."""
    if end is None:
        return ""
    left = (end - current_time()).total_seconds()
    return f"in about {span(left)}" if left >= 1 else "any moment"


def shown_steps(trial: TrialRecord) -> str:
    """Writes how far a trial has come, how fast, and when it reported that; empty before its first report."""
    if trial.reported_steps is None or trial.report_time is None:
        return ""
    rate = shown_rate(trial.steps_per_second)
    age = relative_time(trial.report_time, current_time())
    return f"{trial.reported_steps}{f' at {rate} steps/s' if rate else ''}, reported {age}"


def shown_times(trial: TrialRecord) -> str:
    """Writes for how long a trial has held slots, and for how long it waited for some."""
    if trial.create_time is None:
        return ""
    now = current_time()
    ran = trial.run_seconds
    if trial.run_start_time is not None:
        ran += (now - trial.run_start_time).total_seconds()
    whole = ((trial.end_time or now) - trial.create_time).total_seconds()
    return f"ran {span(ran)}, waited {span(whole - ran)}"


def columns(metric: str, trials: Sequence[TrialRecord]) -> tuple[Column[TrialRecord], ...]:
    """What lists of trials show.

    Args:
        metric: Name of the metric that decides.
        trials: The trials of the list: the hyperparameters that differ among them come first, since a
            table that has to fit cuts the end off.
    """
    differing = _differing([trial.hparams for trial in trials])
    return (
        Column("Trial", lambda trial: trial.id, right=True),
        Column("State", lambda trial: trial.state),
        Column(f"Best {metric}".strip(), best_value, right=True),
        Column("At step", best_steps, right=True),
        Column("Steps", lambda trial: trial.reported_steps, right=True),
        Column("Hyperparameters", lambda trial: _sorted_first(trial.hparams, differing)),
        Column("Done", lambda trial: trial.estimated_end_time),
        Column("Steps/s", lambda trial: shown_rate(trial.steps_per_second), right=True),
        Column("Restarts", lambda trial: trial.restarts, right=True),
        Column("Lost steps", lambda trial: trial.lost_steps if trial.run > 1 else None, right=True),
        Column("Created", lambda trial: trial.create_time),
        Column("Ended", lambda trial: trial.end_time),
        Column("Explanation", lambda trial: trial.explanation, note=True),
    )


def _differing(settings: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    names = {name for setting in settings for name in setting}
    return frozenset(name for name in names if len({repr(setting.get(name)) for setting in settings}) > 1)


def _sorted_first(settings: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: settings[name] for name in sorted(settings, key=lambda name: name not in names)}
