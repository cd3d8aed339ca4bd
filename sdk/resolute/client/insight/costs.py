"""The costs of trials: slot-hours, GPU-hours and energy of their runs, and the gain of their metric."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from resolute.client.schema.records import ExperimentRecord, RunRecord, TrialRecord

_SECONDS_PER_HOUR = 3600.0
_JOULES_PER_KWH = 3.6e6
NO_LABEL = "(no label)"
"""Names experiments without labels, among labels."""


class Grouping(Enum):
    """The kind of object for which costs are summed."""

    TRIAL = "trial"
    EXPERIMENT = "experiment"
    USER = "user"
    LABEL = "label"


@dataclass(frozen=True, kw_only=True)
class Period:
    """The period for which costs are counted."""

    since: datetime | None
    """None for all before."""
    until: datetime
    """Runs that have not ended count up to it."""

    def hours(self, run: RunRecord) -> float:
        """The hours of a run that lie in the period."""
        if run.start_time is None:
            return 0.0
        began = run.start_time if self.since is None else max(self.since, run.start_time)
        ended = self.until if run.end_time is None else min(self.until, run.end_time)
        return max(0.0, (ended - began).total_seconds()) / _SECONDS_PER_HOUR


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of one group."""

    group: str
    """Number of the trial or the experiment, name of the user, or label."""
    experiments: int
    trials: int
    runs: int
    slot_hours: float
    gpu_hours: float
    """Of these, on slots that are GPUs."""
    gpu_busy_hours: float | None
    """Of the GPU-hours, those in which the driver saw the GPUs work; None where nothing was measured."""
    gpu_idle_hours: float | None
    """Of the GPU-hours, those in which it saw them idle."""
    energy_kwh: float | None
    """Energy of the GPUs; None where it was not measured."""
    gained: float | None
    """How far the best validation is from the worst; None where none is known, or none was asked for."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A trial with its runs, whose cost is counted."""

    experiment: ExperimentRecord
    trial: TrialRecord
    """With its runs."""
    validations: tuple[float, float] | None = None
    """The smallest and the largest value of the metric that its search decides by."""


@dataclass(frozen=True)
class _Share:
    group: str
    work: Work
    run: RunRecord
    slot_hours: float
    gpu_hours: float
    part: float
    """The part of the run that lies in the period."""


def costs(
    items: Iterable[Work],
    *,
    by: Grouping,
    period: Period,
    gpus: Collection[int],
) -> list[Cost]:
    """Adds up what trials took.

    Args:
        items: The trials.
        by: What costs are added up for; an experiment with several labels counts for each.
        period: Time that counts.
        gpus: The slots that are GPUs.

    Returns:
        The groups in the order in which they were found. Groups without a run in the period are left out.
    """
    groups: dict[str, list[_Share]] = {}
    for work in items:
        for share in _shares(work, by=by, period=period, gpus=gpus):
            groups.setdefault(share.group, []).append(share)
    return [_cost(group, shares) for group, shares in groups.items()]


def _shares(work: Work, *, by: Grouping, period: Period, gpus: Collection[int]) -> Iterator[_Share]:
    experiment, trial = work.experiment, work.trial
    groups: dict[Grouping, tuple[str, ...]] = {
        Grouping.TRIAL: (str(trial.id),),
        Grouping.EXPERIMENT: (str(experiment.id),),
        Grouping.USER: (experiment.owner,),
        Grouping.LABEL: experiment.labels or (NO_LABEL,),
    }
    for run in trial.runs:
        hours = period.hours(run)
        on_gpus = sum(slot in gpus for slot in run.slot_ids)
        if hours > 0:
            part = hours / replace(period, since=None).hours(run)
            for group in groups[by]:
                yield _Share(group, work, run, hours * len(run.slot_ids), hours * on_gpus, part)


def _cost(group: str, shares: Sequence[_Share]) -> Cost:
    measured = [(share.run.gpu_usage, share.part) for share in shares if share.run.gpu_usage]
    energy = [part * one.energy_joules for one, part in measured if one.energy_joules is not None]
    busy = sum(part * one.busy_seconds for one, part in measured) / _SECONDS_PER_HOUR
    seen = sum(part * one.measured_seconds for one, part in measured) / _SECONDS_PER_HOUR
    validations = [value for share in shares for value in share.work.validations or ()]
    return Cost(
        group=group,
        experiments=len({share.work.experiment.id for share in shares}),
        trials=len({share.work.trial.id for share in shares}),
        runs=len(shares),
        slot_hours=sum(share.slot_hours for share in shares),
        gpu_hours=sum(share.gpu_hours for share in shares),
        gpu_busy_hours=busy if seen else None,
        gpu_idle_hours=seen - busy if seen else None,
        energy_kwh=sum(energy) / _JOULES_PER_KWH if energy else None,
        gained=max(validations) - min(validations) if validations else None,
    )
