"""Reasons from a trial's rank on a rung."""

from __future__ import annotations

from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.spec.halving import Halving


def rung_reason(kind: ReasonKind, halving: Halving, rung: Rung, *, number: int, trial_key: str) -> Reason:
    """Returns a reason with the rank of a trial on a rung.

    Args:
        kind: What follows from that.
        halving: The bracket, whose number is left to anyone who has several.
        rung: The rung; the trial is on it, unless it was taken off as refused.
        number: The rung's number, from 0 at the bottom.
        trial_key: The trial.
    """
    if trial_key not in rung:
        return Reason(kind, bracket=0, rung=number)
    last = rung.last_of_top()
    return Reason(
        kind,
        bracket=0,
        rung=number,
        rank=rung.rank(trial_key),
        rank_of=len(rung),
        metric=halving.metric(rung.entry(trial_key).metric),
        threshold=None if last is None else halving.metric(last.metric),
        top_size=rung.top_size,
    )
