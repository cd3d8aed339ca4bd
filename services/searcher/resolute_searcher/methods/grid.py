"""Every point of a grid over the space."""

from __future__ import annotations

from resolute_searcher.log.operations import Create
from resolute_searcher.log.reasons import Reason
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.full_length import FullLengthSearch
from resolute_searcher.spec.grid import Grid
from resolute_searcher.spec.space import Space


class GridSearch(FullLengthSearch):
    """Trains every grid point to the full length, the last point first; refused points count as complete.

    Args:
        space: The space; its ranges carry counts.
        max_length: Length to train to; None when trials themselves know when they are done.
        max_concurrent_trials: Trials alive at once; 0 is no limit.

    Raises:
        ValueError: A range has no count.
    """

    def __init__(self, space: Space, *, max_length: int | None, max_concurrent_trials: int) -> None:
        self._grid = Grid(space)
        super().__init__(
            max_length=max_length,
            max_trials=self._grid.size,
            max_concurrent_trials=max_concurrent_trials,
        )

    def create_trial(self, sampler: Sampler, reason: Reason) -> Create:
        """Makes the trial of the next grid point."""
        return sampler.create(reason, hparams=self._grid.point(self._grid.size - 1 - self._counted))
