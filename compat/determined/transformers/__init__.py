"""Training with Hugging Face's Trainer: ``resolute.transformers``."""

from resolute.core import SearcherOperation
from resolute.transformers import ResoluteCallback


class DetCallback(ResoluteCallback):
    """Makes a training a trial: ``resolute.transformers.ResoluteCallback``, with the search's operation."""

    @property
    def current_op(self) -> SearcherOperation | None:
        """The operation that the trial is at, for ``dsat_reporting_context``; None without operations."""
        return self._search.current
