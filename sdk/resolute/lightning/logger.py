"""Reports Lightning's metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from resolute.core import TrainContext
from resolute.info import trial_of
from resolute.lightning.callback import ResoluteCallback
from resolute.pytorch.lightning.library import find_library

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger
else:
    Logger = find_library().loggers.Logger


class ResoluteLogger(Logger):  # type: ignore[misc, unused-ignore]  # without Lightning it is Any
    """Reports logged metrics: of validations as validation metrics, of tests in the group ``test``.

    The step of a report is the number of trained batches; Lightning's own step differs from it if gradients
    are accumulated. A metric that is logged again after the same batch is reported once.

    Args:
        callback: The callback that counts the batches. It must be one of the trainer's callbacks.

    Examples:
        >>> import lightning.pytorch as pl
        >>> from resolute import core
        >>> from resolute.lightning import ResoluteCallback, ResoluteLogger
        >>> with core.init() as context:
        ...     callback = ResoluteCallback(context)
        ...     trainer = pl.Trainer(callbacks=[callback], logger=ResoluteLogger(callback), accelerator="cpu")
        ...     trainer.logger.name
        'resolute'
    """

    def __init__(self, callback: ResoluteCallback) -> None:
        super().__init__()
        self._callback = callback
        self._known: dict[str, set[str]] = {}
        self._known_at = -1

    @property
    def name(self) -> str:
        """What Lightning calls this logger."""
        return "resolute"

    @property
    def version(self) -> str:
        """Number of the trial; 0 where there is none."""
        trial = trial_of(self._callback.core.info)
        return "0" if trial is None else str(trial.trial_id)

    @property
    def experiment(self) -> TrainContext:
        """What reports, for a module that wants to report more by itself."""
        return self._callback.core.train

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Does nothing: the platform knows a trial's hyperparameters."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Reports metrics.

        Args:
            metrics: Numbers by name.
            step: Lightning's step; batches are counted instead.
        """
        callback = self._callback
        if callback.core.distributed.rank:
            return
        group = callback.group
        if self._known_at != callback.batches:
            self._known, self._known_at = {}, callback.batches
        known = self._known.setdefault(group, set())
        new = {name: value for name, value in metrics.items() if name not in known}
        if not new:
            return
        known.update(new)
        callback.core.train.report_metrics(
            group, steps_completed=callback.batches, metrics={**new, **callback.counts}
        )
