"""Random configs, each with the largest micro batch that fits, determined by binary search."""

from __future__ import annotations

from typing import Any

from determined.pytorch.dsat.methods.base import BaseDSATSearchMethod
from determined.pytorch.dsat.trials import DSATTrial


class BinarySearchDSATSearchMethod(BaseDSATSearchMethod):
    """Halves the range of micro batch sizes of a config until it is empty.

    Args:
        arguments: Arguments of every method.
        search_range_factor: Factor by which a range is wider than the profile of the model suggests.
        options: Options of every method.
    """

    def __init__(self, *arguments: Any, search_range_factor: float = 1.0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.search_range_factor = search_range_factor

    def first_micro_batch(self, lo: int, hi: int) -> int:
        """The middle."""
        return (lo + hi) // 2

    def new_range(self, stage: int) -> tuple[int, int]:
        """From one record on."""
        return 1, max(int(self.search_range_factor * self.most_records(stage)), 1)

    def next_trial(self, last: DSATTrial) -> DSATTrial | None:
        """The middle of what is left."""
        lo = last.lo if last.error else last.micro_batch + 1
        hi = last.micro_batch - 1 if last.error else last.hi
        return None if lo > hi else self.successor(last, lo=lo, hi=hi)
