"""Independent samples; with one trial, the `single` method."""

from __future__ import annotations

from resolute_searcher.log.events import ExitReason
from resolute_searcher.log.operations import Create
from resolute_searcher.log.reasons import Reason
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.full_length import FullLengthSearch


class RandomSearch(FullLengthSearch):
    """Trains a number of random samples, each to the full length; refused samples have no progress.

    Args:
        max_length: Length to train to; None when trials themselves know when they are done.
        max_trials: Number of trials.
        max_concurrent_trials: Trials alive at once; 0 is no limit.
        replace_invalid: Whether a trial whose hyperparameters were refused is replaced by another.
    """

    def __init__(
        self,
        *,
        max_length: int | None,
        max_trials: int,
        max_concurrent_trials: int,
        replace_invalid: bool = True,
    ) -> None:
        super().__init__(
            max_length=max_length, max_trials=max_trials, max_concurrent_trials=max_concurrent_trials
        )
        self._replace_invalid = replace_invalid

    def create_trial(self, sampler: Sampler, reason: Reason) -> Create:
        """Samples a trial."""
        return sampler.create(reason)

    def on_exit(self, trial_key: str, reason: ExitReason) -> None:
        """Notes a trial that left; one whose hyperparameters were refused does not count."""
        if reason.invalid and trial_key in self._open:
            del self._open[trial_key]
            if self._replace_invalid:
                self._counted -= 1
        else:
            super().on_exit(trial_key, reason)
