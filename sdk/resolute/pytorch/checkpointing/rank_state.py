"""The state of each rank in a checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from resolute.pytorch.backends import random_state
from resolute.pytorch.metrics.aggregation import TrainingMetrics
from resolute.pytorch.trial.base_context import TrialContext

_log = logging.getLogger("resolute.pytorch")


class RankState:
    """The random state, the order of the data, and the unreported metrics of one rank.

    Args:
        context: The trial's context.
        metrics: Metrics since the last report. They are part of a checkpoint between two reports.
    """

    def __init__(self, context: TrialContext, metrics: TrainingMetrics) -> None:
        self._context = context
        self._metrics = metrics

    def capture(self, step: int) -> dict[str, Any]:
        """Returns the current state, after a number of batches."""
        order = self._context._data_order
        return {
            "data_order": None if order is None else order.state(step),
            "rng_state": random_state.capture(self._context.device),
            "training_metrics": self._metrics.batches,
            "reducer_values": self._context.function_reducer_values(),
            "ranks": self._context.distributed.size,
        }

    def restore(
        self,
        own: Mapping[str, Any],
        *,
        resumes: bool,
        random_numbers: Mapping[str, Any] | None = None,
    ) -> bool:
        """Restores a state.

        Args:
            own: What ``capture`` returned; empty for nothing.
            resumes: Whether the trial continues where it was, so that its metrics do too.
            random_numbers: To be taken where this rank has none of its own.

        Returns:
            Whether it was this rank's. With another number of ranks, no rank has its own state back.
        """
        fits = own.get("ranks") == self._context.distributed.size
        random_numbers = own.get("rng_state") if fits else random_numbers
        if random_numbers is None:
            _log.warning("the checkpoint has no random numbers: those of this run are new")
        else:
            random_state.restore(random_numbers, self._context.device)
        if fits and resumes:
            self._metrics.batches = list(own.get("training_metrics") or [])
            self._context.restore_function_reducer_values(own.get("reducer_values") or [])
            if self._context._data_order is not None and own.get("data_order"):
                self._context._data_order.restore(own["data_order"])
        return fits
