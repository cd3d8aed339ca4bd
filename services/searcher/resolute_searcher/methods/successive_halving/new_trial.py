"""A new trial of a bracket, which trains to the first rung."""

from __future__ import annotations

from collections.abc import Iterator

from resolute_searcher.log.operations import MethodOperation, ValidateAfter
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.base import Sampler
from resolute_searcher.spec.halving import Halving
from resolute_searcher.spec.space import Json


def new_trial(
    halving: Halving, sampler: Sampler, why: ReasonKind, *, hparams: dict[str, Json] | None = None
) -> Iterator[MethodOperation]:
    """Creates a trial and gives it its first length.

    Args:
        halving: The bracket.
        sampler: Makes the trial.
        why: Why it is wanted.
        hparams: The hyperparameters, or None to sample them.
    """
    created = sampler.create(Reason(why, bracket=0), hparams=hparams)
    yield created
    first = Reason(ReasonKind.FIRST_LENGTH, bracket=0, rung=0)
    yield ValidateAfter(created.trial_key, halving.length(0), first)
