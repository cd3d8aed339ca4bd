"""Converts arrays of any library to NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor of PyTorch, whose images have their channels first."""
    return hasattr(value, "detach") and hasattr(value, "cpu")


def to_array(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns an array of numbers.

    Args:
        value: An array, a tensor on any device, or nested lists of numbers.

    Raises:
        TypeError: It holds something else than numbers.
    """
    import numpy as np

    if is_tensor(value):
        value = value.detach().cpu()
        # Types that NumPy does not have, such as bfloat16, come as 32-bit numbers.
        value = value.float() if value.is_floating_point() else value
    array = np.asarray(value)
    if array.dtype.kind not in "buif":
        raise TypeError(f"it holds {array.dtype}, not numbers; convert it to an array of numbers")
    return array
