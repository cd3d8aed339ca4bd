"""The cost of a batch that a script declares."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCost:
    """The cost of one batch over all slots. Unknown values are None."""

    tokens: float | None = None
    """Tokens in it."""
    flops: float | None = None
    """Floating-point operations that the model needs for it, forward and backward."""
    peak_flops: float | None = None
    """Operations a second that one slot could do at most."""

    def __post_init__(self) -> None:
        for name in ("tokens", "flops", "peak_flops"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} is {value!r}; a number above 0 was expected")
        if (self.flops is None) != (self.peak_flops is None):
            raise ValueError("flops and peak_flops belong together: give both, or neither")

    def rates(self, batches_per_second: float, *, slots: int) -> dict[str, float]:
        """Returns tokens per second and the model FLOPs utilization (MFU, from 0 to 1).

        Args:
            batches_per_second: How fast training is.
            slots: How many train.
        """
        rates = {}
        if self.tokens is not None:
            rates["tokens_per_second"] = self.tokens * batches_per_second
        if self.flops is not None and self.peak_flops is not None:
            rates["mfu"] = self.flops * batches_per_second / (self.peak_flops * slots)
        return rates
