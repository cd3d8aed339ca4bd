"""Accelerate's ``log`` as reports.

::

    with resolute.core.init() as context:
        accelerator = Accelerator(log_with=ResoluteTracker(context))
        accelerator.init_trackers("any name")
        accelerator.log({"loss": 0.7}, step=100)
        accelerator.log({"accuracy": 0.9}, step=100, log_kwargs={"resolute": {"group": "validation"}})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelerate.tracking import GeneralTracker

from resolute import core
from resolute.core.reporting.train import TRAINING

__all__ = ["ResoluteTracker"]


class ResoluteTracker(GeneralTracker):  # type: ignore[misc, unused-ignore]  # without Accelerate it is Any
    """Reports what ``accelerator.log`` is given, on the main process.

    Args:
        context: The Core API.

    Examples:
        >>> from accelerate import Accelerator
        >>> from resolute import core
        >>> from resolute.accelerate import ResoluteTracker
        >>> with core.init() as context:
        ...     accelerator = Accelerator(cpu=True, log_with=ResoluteTracker(context))
        ...     accelerator.init_trackers("digits")
        ...     accelerator.log({"loss": 0.7}, step=100)
        ...     accelerator.log({"accuracy": 0.9}, step=100, log_kwargs={"resolute": {"group": "validation"}})
        ...     accelerator.end_training()
    """

    name = "resolute"
    requires_logging_directory = False
    main_process_only = True

    def __init__(self, context: core.Context) -> None:
        super().__init__()
        self._train = context.train

    @property
    def tracker(self) -> core.TrainContext:
        """What reports, for a script that wants to report more by itself."""
        return self._train

    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Keeps the configuration of ``init_trackers`` with the trial's metadata, under ``config``.

        Args:
            values: JSON-like data by name.
        """
        self._train.set_metadata({**self._train.get_metadata(), "config": dict(values)})

    def log(self, values: Mapping[str, Any], step: int | None = None, **kwargs: Any) -> None:
        """Reports metrics.

        Args:
            values: Numbers by name.
            step: Steps completed.
            kwargs: ``group``: what they are metrics of; default ``training``.

        Raises:
            ValueError: ``step`` is missing, or there is another argument than ``group``.
        """
        group = kwargs.pop("group", TRAINING)
        if kwargs:
            raise ValueError(f"log_kwargs of resolute has {', '.join(sorted(kwargs))}; only group is known")
        if step is None:
            raise ValueError("accelerator.log() needs step=..., the number of steps completed")
        self._train.report_metrics(group, steps_completed=step, metrics=values)

    def finish(self) -> None:
        """Waits until every report has arrived.

        Raises:
            InvalidArgumentError: The service refused a report.
        """
        self._train.flush()
