"""Tells which validation is the best, by the metric of the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resolute import core
from resolute.info import trial_of


@dataclass(frozen=True, slots=True)
class SearcherMetric:
    """The metric of the experiment's search."""

    name: str
    smaller_is_better: bool
    required: bool = True
    """Whether a validation without it is a fault."""

    @classmethod
    def of(cls, context: core.Context) -> SearcherMetric | None:
        """Returns the metric; None where no trial is run."""
        info, trial = context.info, trial_of(context.info)
        if info is None or trial is None:
            return None
        searcher = (trial._config or {}).get("searcher") or {}
        # A single trial that ends with its script asks nothing of a search; the experiment has a warning.
        required = searcher.get("name") != "single" or not is_time_driven(context)
        connection = info.connection
        if connection is not None and connection.searcher_metric:
            return cls(connection.searcher_metric, connection.smaller_is_better, required)
        name = str(searcher.get("metric", ""))
        return cls(name, bool(searcher.get("smaller_is_better", True)), required)

    def pick(self, metrics: Mapping[str, Any]) -> float | None:
        """Returns the value of the metric; None where it is missing and that is no fault.

        Raises:
            RuntimeError: It is missing, or no number.
        """
        if self.name not in metrics:
            if not self.required:
                return None
            raise RuntimeError(
                f"Search method is configured to use metric '{self.name}', but the validation gave "
                f"{', '.join(sorted(metrics)) or 'none'}: return it from the evaluation, or name another "
                "one as "
                "searcher.metric in the config"
            )
        value = metrics[self.name]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise RuntimeError(  # noqa: TRY004 - the documented class
                f"Search method is configured to use metric '{self.name}', which must be a scalar, not "
                f"a {type(value).__name__}: {value!r}"
            )
        return float(value)

    def improves(self, value: float, best: float | None) -> bool:
        """Returns whether a value is better than the best so far; any number is better than None or NaN."""
        if best is None or best != best:  # noqa: PLR0124 - NaN is the number that differs from itself
            return True
        return value < best if self.smaller_is_better else value > best


def is_time_driven(context: core.Context) -> bool:
    """Returns whether the search is driven by validation reports, without operations."""
    if context.info is None:
        return False
    connection, local = context.info.connection, context.info.local
    if local is not None:
        return not local.lengths
    return connection is not None and connection.time_driven
