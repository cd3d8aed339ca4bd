"""Logs a Lightning training, whether the cluster runs it or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from resolute import core_v2
from resolute.client import Client
from resolute.core import TrainContext
from resolute.pytorch.lightning.library import find_library

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger
else:
    Logger = find_library().loggers.Logger
_rank_zero_only: Any = find_library().utilities.rank_zero_only


class DetLogger(Logger):  # type: ignore[misc, unused-ignore]  # without Lightning it is Any
    """A logger for Lightning's Trainer, which records a training as a trial by ``core_v2``.

    Args:
        defaults: The older spelling of ``config``.
        unmanaged: The older spelling of the experiment's place.
        config: Description and place of the created experiment.
        client: A connection; the default is one of its own.
    """

    def __init__(
        self,
        *,
        defaults: core_v2.Config | None = None,
        unmanaged: core_v2.Config | None = None,
        config: core_v2.Config | None = None,
        client: Client | None = None,
    ) -> None:
        super().__init__()
        given = {"defaults": defaults, "unmanaged": unmanaged, "config": config, "client": client}
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._open = False

    @property
    def name(self) -> str:
        """The logger's name."""
        return "DetLogger"

    @property
    def version(self) -> str:
        """The logger's version."""
        return "0.1"

    @property
    def experiment(self) -> TrainContext:
        """Reports metrics; the trial begins with the first use."""
        if not self._open:
            core_v2.init(**self._options)
            self._open = True
        train: TrainContext = core_v2.train
        return train

    @_rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing: hyperparameters are part of the config."""

    @_rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Reports metrics of training."""
        self.experiment.report_training_metrics(steps_completed=step or 0, metrics=dict(metrics))

    @_rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def finalize(self, status: str) -> None:
        """Ends the trial."""
        if self._open:
            core_v2.close()
            self._open = False
