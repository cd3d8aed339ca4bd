"""What trials took: slot-hours and GPU-hours of their runs, from the recorded allocations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from resolute.client.schema.records import ExperimentRecord, RunRecord, TrialRecord

_SECONDS_PER_HOUR = 3600.0
NO_LABEL = "(no label)"
"""Names experiments without labels, among labels."""


class Grouping(Enum):
    """What costs are added up for."""

    TRIAL = "trial"
    EXPERIMENT = "experiment"
    USER = "user"
    LABEL = "label"


@dataclass(frozen=True, kw_only=True)
class Period:
    """Time that counts."""

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
    """What one group took."""

    group: str
    """Number of the trial or the experiment, name of the user, or label."""
    experiments: int
    trials: int
    runs: int
    slot_hours: float
    gpu_hours: float
    """Of these, on slots that are GPUs."""


@dataclass(frozen=True)
class _Share:
    group: str
    experiment: int
    trial: int
    slot_hours: float
    gpu_hours: float


def costs(
    found: Iterable[tuple[ExperimentRecord, TrialRecord]],
    *,
    by: Grouping,
    period: Period,
    gpus: Collection[int],
) -> list[Cost]:
    """Adds up what trials took.

    Args:
        found: Trials with their runs, and their experiments.
        by: What costs are added up for; an experiment with several labels counts for each.
        period: Time that counts.
        gpus: The slots that are GPUs.

    Returns:
        The groups in the order in which they were found. Groups without a run in the period are left out.
    """
    groups: dict[str, list[_Share]] = {}
    for experiment, trial in found:
        for share in _shares(experiment, trial, by=by, period=period, gpus=gpus):
            groups.setdefault(share.group, []).append(share)
    return [
        Cost(
            group=group,
            experiments=len({share.experiment for share in shares}),
            trials=len({share.trial for share in shares}),
            runs=len(shares),
            slot_hours=sum(share.slot_hours for share in shares),
            gpu_hours=sum(share.gpu_hours for share in shares),
        )
        for group, shares in groups.items()
    ]


def _shares(
    experiment: ExperimentRecord,
    trial: TrialRecord,
    *,
    by: Grouping,
    period: Period,
    gpus: Collection[int],
) -> Iterator[_Share]:
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
            for group in groups[by]:
                yield _Share(group, experiment.id, trial.id, hours * len(run.slot_ids), hours * on_gpus)
