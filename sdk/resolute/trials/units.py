"""Lengths and intervals of training."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any


class TrainUnit:
    """A length, an interval or a list of points of training. Use ``Batch`` or ``Epoch``.

    Args:
        value: A number n: an interval of n units, or a length of n units; less than 1 means 1. A list, tuple,
            set or range: exactly these points.

    Raises:
        TypeError: The value has another type.

    Examples:
        >>> from resolute import pytorch
        >>> pytorch.TrainUnit.from_config({"epochs": 2}, None).should_stop(4)
        True
    """

    def __init__(self, value: int | Collection[int]) -> None:
        counts = value if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [value]
        if not all(isinstance(count, int) and not isinstance(count, bool) for count in counts):
            raise TypeError(
                f"{type(self).__name__}({value!r}) is not valid: a number, or a list of numbers, was expected"
            )
        self.value = value

    @classmethod
    def from_config(cls, length: Mapping[str, int], global_batch_size: int | None) -> TrainUnit:
        """Converts a length of a config, such as ``{"epochs": 2}``.

        Args:
            length: One of ``batches``, ``epochs`` and ``records`` with a number.
            global_batch_size: Records of a batch over all slots; needed for ``records`` only.

        Raises:
            ValueError: It is none of these, or records cannot be turned into batches.
        """
        if len(length) != 1:
            raise ValueError(
                f"the length {dict(length)!r} must have one of the keys batches, epochs and records"
            )
        (unit, count), *_ = length.items()
        if unit == "batches":
            return Batch(count)
        if unit == "epochs":
            return Epoch(count)
        if unit != "records":
            raise ValueError(f"the length is in {unit!r}; batches, epochs or records were expected")
        return Batch(records_to_batches(count, global_batch_size))

    def should_stop(self, step_num: int) -> bool:
        """Returns whether this interval ends after ``step_num`` of its unit."""
        if isinstance(self.value, int):
            return step_num % max(self.value, 1) == 0
        return step_num in self.value

    def next_step(self, step: int, epoch_length: int) -> int:
        """Returns the first batch after ``step`` at which this interval ends; ``sys.maxsize`` for never.

        Args:
            step: Batches done.
            epoch_length: Batches of an epoch.
        """
        size = self._size(epoch_length)
        done = step // size
        if isinstance(self.value, int):
            period = max(self.value, 1)
            return (done // period + 1) * period * size
        return min((count * size for count in self.value if count > done), default=sys.maxsize)

    def steps(self, epoch_length: int) -> int:
        """Returns this length in batches.

        Raises:
            TypeError: It is a list of points.
        """
        if not isinstance(self.value, int):
            raise TypeError(f"{self!r} is not a length: a number was expected, not a list")
        return self.value * self._size(epoch_length)

    def _size(self, epoch_length: int) -> int:
        """Returns the batches in one of the unit."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.value == self.value

    def __hash__(self) -> int:
        return hash((type(self), self.value if isinstance(self.value, int) else tuple(self.value)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class Batch(TrainUnit):
    """A length or interval in batches of one slot.

    Examples:
        >>> from resolute import pytorch
        >>> every_hundred, at_two_points = pytorch.Batch(100), pytorch.Batch([10, 1000])
    """

    def _size(self, epoch_length: int) -> int:
        return 1


class Epoch(TrainUnit):
    """A length or interval in epochs. An epoch has as many batches as the chief's training loader.

    Examples:
        >>> from resolute import pytorch
        >>> five_epochs = pytorch.Epoch(5)
    """

    def _size(self, epoch_length: int) -> int:
        return epoch_length


NEVER = Batch(sys.maxsize)


def records_to_batches(records: int, global_batch_size: Any) -> int:
    """Converts a number of records into batches: at least one.

    Raises:
        ValueError: The size of a batch is not known.
    """
    if not isinstance(global_batch_size, int) or global_batch_size < 1:
        raise ValueError(
            "a length in records needs the hyperparameter global_batch_size, a whole number from 1; "
            f"it is {global_batch_size!r}"
        )
    return max(records // global_batch_size, 1)
