"""Which checkpoints of an experiment may go: a pure function of what there is and of the policy.

Kept is the union of the best of the experiment, the best of each trial and the latest of each trial.
Only checkpoints with a validation at the same step have a rank among the best.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from resolute_checkpoints.domain.checkpoint import Candidate
from resolute_serving.validation import invalid


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How many checkpoints stay."""

    save_experiment_best: int = 0
    """Best of the experiment."""
    save_trial_best: int = 1
    """Best of each trial."""
    save_trial_latest: int = 1
    """Latest of each trial."""

    def __post_init__(self) -> None:
        for name in ("save_experiment_best", "save_trial_best", "save_trial_latest"):
            count = getattr(self, name)
            if count < 0:
                message = f"{name} is {count}; it must be a number from 0"
                raise invalid(name, message)


class KeepReason(Enum):
    """Why a checkpoint stays."""

    PINNED = "pinned"
    EXPERIMENT_BEST = "experiment_best"
    TRIAL_BEST = "trial_best"
    TRIAL_LATEST = "trial_latest"


@dataclass(frozen=True, slots=True)
class Selection:
    """What retention decided; deleting and showing what would be deleted both read it."""

    deleted: tuple[str, ...]
    """Identifiers, in the order in which the candidates came."""
    kept: Mapping[str, frozenset[KeepReason]]
    """Identifiers of the others, each with every reason."""


def select_deletions(
    candidates: Sequence[Candidate],
    policy: RetentionPolicy,
    *,
    smaller_is_better: bool,
    pinned: Collection[str] = (),
) -> Selection:
    """Decides which checkpoints of one experiment go.

    Args:
        candidates: Every committed checkpoint of the experiment.
        policy: How many stay.
        smaller_is_better: Whether a smaller metric is better.
        pinned: Identifiers that do not go either, such as sources of warm starts.
    """
    best = _best_first(candidates, smaller_is_better=smaller_is_better)
    latest = sorted(candidates, key=lambda c: (-c.steps_completed, -c.commit_time, c.checkpoint_id))
    reasons: defaultdict[str, set[KeepReason]] = defaultdict(set)
    for reason, chosen in (
        (KeepReason.PINNED, [c for c in candidates if c.kept or c.checkpoint_id in pinned]),
        (KeepReason.EXPERIMENT_BEST, best[: policy.save_experiment_best]),
        (KeepReason.TRIAL_BEST, _first_of_each_trial(best, policy.save_trial_best)),
        (KeepReason.TRIAL_LATEST, _first_of_each_trial(latest, policy.save_trial_latest)),
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


def _first_of_each_trial(ordered: Iterable[Candidate], count: int) -> list[Candidate]:
    seen: defaultdict[str, int] = defaultdict(int)
    chosen = []
    for candidate in ordered:
        if seen[candidate.trial_id] < count:
            chosen.append(candidate)
        seen[candidate.trial_id] += 1
    return chosen
