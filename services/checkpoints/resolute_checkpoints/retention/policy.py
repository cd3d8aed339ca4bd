"""Decides which checkpoints of an experiment may be deleted: a pure function of checkpoints and policy.

The kept checkpoints are the union of the best of the experiment, the best of each trial, the latest of each
trial and its milestones. Only checkpoints with a validation at the same step have a rank among the best. If
there are fewer ranked checkpoints than wanted, the latest ones take their places, so that a diverged trial
keeps checkpoints to continue from.

While trials run, the checkpoints that they can continue from or go back to are kept too. If a trial has
committed a checkpoint after its values were read, all its checkpoints are kept, because the best one may have
changed since. A checkpoint after the one to which its trial went back is never kept by any of these rules.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from resolute_checkpoints.domain.checkpoint import Candidate
from resolute_serving.validation import invalid


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The numbers of checkpoints to keep."""

    save_experiment_best: int = 0
    """Best of the experiment."""
    save_trial_best: int = 1
    """Best of each trial."""
    save_trial_latest: int = 1
    """Latest of each trial."""
    keep_every_steps: float = 0.0
    """The first of each trial at or after every multiple of so many steps; 0 for none."""
    keep_every_seconds: float = 0.0
    """The first of each trial in each period of so many seconds since 1970; 0 for none."""
    keep_restorable: bool = False
    """Whether trials may continue: the latest complete one of each stays."""

    def __post_init__(self) -> None:
        for name in ("save_experiment_best", "save_trial_best", "save_trial_latest"):
            count = getattr(self, name)
            if count < 0:
                message = f"{name} is {count}; it must be a number from 0"
                raise invalid(name, message)
        for name in ("keep_every_steps", "keep_every_seconds"):
            period = getattr(self, name)
            if not 0 <= period < math.inf:
                raise invalid(name, f"{name} is {period}; it must be a finite number from 0")


class KeepReason(Enum):
    """The reason why a checkpoint is kept."""

    PINNED = "pinned"
    """Also versions of models, and what was inherited."""
    SOURCE = "source"
    """Another trial begins from it."""
    HELD = "held"
    """Somebody reads it."""
    AWAITS_REPORTS = "awaits_reports"
    """Reports that may make it the best have not arrived."""
    RESTORABLE = "restorable"
    GOOD = "good"
    """The guard of its experiment would go back to it."""
    MILESTONE = "milestone"
    EXPERIMENT_BEST = "experiment_best"
    TRIAL_BEST = "trial_best"
    TRIAL_LATEST = "trial_latest"


@dataclass(frozen=True, slots=True)
class Selection:
    """The decision of retention, used both to delete and to show what would be deleted."""

    deleted: tuple[str, ...]
    """Identifiers, in the order in which the candidates came."""
    kept: Mapping[str, frozenset[KeepReason]]
    """Identifiers of the others, each with every reason."""


def select_deletions(
    candidates: Sequence[Candidate],
    policy: RetentionPolicy,
    *,
    smaller_is_better: bool,
    sources: Collection[str] = (),
    awaited: Collection[str] = (),
    good_steps: Mapping[str, int] = MappingProxyType({}),
) -> Selection:
    """Selects the checkpoints of one experiment that are deleted.

    Args:
        candidates: Every committed checkpoint of the experiment.
        policy: How many stay.
        smaller_is_better: Whether a smaller metric is better.
        sources: Identifiers that do not go either: other trials begin from them.
        awaited: Trials of which reports have not all arrived.
        good_steps: Trials that may go back, each with the steps to which its reports are known to be good.
    """
    valid = [candidate for candidate in candidates if not candidate.left_behind]
    best = _best_first(valid, smaller_is_better=smaller_is_better)
    latest = sorted(valid, key=lambda c: (-c.steps_completed, -c.commit_time, c.checkpoint_id))
    waiting = {c.trial_id for c in candidates if not c.ranked}.union(awaited)
    reasons: defaultdict[str, set[KeepReason]] = defaultdict(set)
    for reason, chosen in (
        (KeepReason.PINNED, [c for c in candidates if c.kept]),
        (KeepReason.SOURCE, [c for c in candidates if c.checkpoint_id in sources]),
        (KeepReason.HELD, [c for c in candidates if c.held]),
        (KeepReason.AWAITS_REPORTS, [c for c in candidates if c.trial_id in waiting]),
        (KeepReason.EXPERIMENT_BEST, best[: policy.save_experiment_best]),
        (KeepReason.TRIAL_BEST, _first_of_each_trial(best, policy.save_trial_best)),
        (KeepReason.TRIAL_LATEST, _first_of_each_trial(latest, policy.save_trial_latest)),
        (KeepReason.TRIAL_LATEST, _first_of_each_trial(_without_rank(latest, best, policy), 1)),
        (
            KeepReason.RESTORABLE,
            _first_of_each_trial((c for c in latest if c.complete), int(policy.keep_restorable)),
        ),
        (KeepReason.GOOD, _good(latest, good_steps)),
        (KeepReason.MILESTONE, _milestones(valid, policy)),
    ):
        for candidate in chosen:
            reasons[candidate.checkpoint_id].add(reason)
    deleted = tuple(c.checkpoint_id for c in candidates if c.checkpoint_id not in reasons)
    return Selection(deleted=deleted, kept={key: frozenset(value) for key, value in reasons.items()})


def _best_first(candidates: Iterable[Candidate], *, smaller_is_better: bool) -> list[Candidate]:
    sign = 1.0 if smaller_is_better else -1.0
    ranked = [
        (sign * candidate.metric, candidate.validation_order, index, candidate)
        for index, candidate in enumerate(candidates)
        if candidate.metric is not None and not math.isnan(candidate.metric)
    ]
    ranked.sort(key=lambda entry: entry[:3])
    return [entry[3] for entry in ranked]


def _without_rank(
    candidates: Iterable[Candidate], best: Sequence[Candidate], policy: RetentionPolicy
) -> list[Candidate]:
    """Returns the trials whose best checkpoints are kept and have no rank yet; all if none has."""
    ranked = {candidate.trial_id for candidate in best}
    wanted = policy.save_trial_best or (policy.save_experiment_best and not best)
    return [candidate for candidate in candidates if wanted and candidate.trial_id not in ranked]


def _first_of_each_trial(ordered: Iterable[Candidate], count: int) -> list[Candidate]:
    seen: defaultdict[str, int] = defaultdict(int)
    chosen = []
    for candidate in ordered:
        if seen[candidate.trial_id] < count:
            chosen.append(candidate)
        seen[candidate.trial_id] += 1
    return chosen


def _good(latest: Iterable[Candidate], good_steps: Mapping[str, int]) -> list[Candidate]:
    """Returns the latest good checkpoint of each trial, or its first one if none is known to be good."""
    chosen: dict[str, Candidate] = {}
    for candidate in latest:
        good = good_steps.get(candidate.trial_id)
        known = chosen.get(candidate.trial_id)
        if good is None or not candidate.complete:
            continue
        if known is None or known.steps_completed > good:
            chosen[candidate.trial_id] = candidate
    return list(chosen.values())


def _milestones(candidates: Sequence[Candidate], policy: RetentionPolicy) -> list[Candidate]:
    """Returns the first checkpoint of each trial in each period, from the first multiple of steps on."""
    steps, seconds = policy.keep_every_steps, policy.keep_every_seconds
    first: dict[tuple[str, str, float], Candidate] = {}
    for candidate in sorted(candidates, key=lambda c: (c.steps_completed, c.commit_time)):
        if steps and candidate.steps_completed >= steps:
            key = (candidate.trial_id, "steps", _period(candidate.steps_completed, steps))
            first.setdefault(key, candidate)
    for candidate in sorted(candidates, key=lambda c: c.commit_time):
        if seconds:
            first.setdefault((candidate.trial_id, "time", _period(candidate.commit_time, seconds)), candidate)
    return list(first.values())


def _period(value: float, length: float) -> float:
    """Returns the period of a value; if periods are too short to be counted, the value itself."""
    period = value // length
    return period if math.isfinite(period) else value
