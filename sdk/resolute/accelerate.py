"""Reports the metrics that scripts pass to Accelerate's ``log``.

::

    with resolute.core.init() as context:
        accelerator = Accelerator(log_with=ResoluteTracker(context))
        accelerator.init_trackers("any name")
        accelerator.log({"loss": 0.7}, step=100)
        accelerator.log({"accuracy": 0.9}, step=100, log_kwargs={"resolute": {"group": "validation"}})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from accelerate.tracking import GeneralTracker
from accelerate.utils import broadcast_object_list

from resolute import core
from resolute.core.reporting.train import TRAINING
from resolute.pytorch.data.replayed_loader import ReplayedLoader
from resolute.trials.batch_watch import BatchWatch
from resolute.trials.throughput import Throughput

__all__ = ["ResoluteTracker", "ResumableLoader"]


class ResoluteTracker(GeneralTracker):  # type: ignore[misc, unused-ignore]  # without Accelerate it is Any
    """A tracker for Accelerate that reports the metrics of ``accelerator.log``, on the main process.

    Args:
        context: The Core API.

    Attributes:
        throughput: The measurements of a ``ResumableLoader``. They are reported whenever the script logs
            training metrics, in a trial of a cluster.

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
        self.throughput = Throughput(context)

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
        if group == TRAINING:
            self.throughput.report(step)

    def finish(self) -> None:
        """Waits until every report has arrived.

        Raises:
            InvalidArgumentError: The service refused a report.
        """
        self._train.flush()


class ResumableLoader:
    """A prepared loader that goes on with the next batch after ``accelerator.load_state``.

    Each iteration is an epoch. The first iteration after a resume yields the rest of the interrupted epoch;
    to get there it reads the trained batches again, without yielding them. The random numbers that samplers,
    workers and the data set draw from Python, NumPy and torch depend only on torch's seed and the number of
    the epoch.

    Args:
        loader: A loader that ``accelerator.prepare`` returned.
        tracker: The tracker that reports the training speed and the share of time spent waiting for data;
            None reports neither. Time between two batches counts as training.

    Attributes:
        epoch: Number of completed epochs.
        batches: Number of batches of the current epoch that were yielded.

    Examples:
        >>> import torch
        >>> from accelerate import Accelerator
        >>> from accelerate.utils import set_seed
        >>> from resolute.accelerate import ResumableLoader
        >>> accelerator = Accelerator(cpu=True)
        >>> set_seed(7)
        >>> records = torch.utils.data.DataLoader(range(8), batch_size=4, shuffle=True)
        >>> loader = ResumableLoader(accelerator.prepare(records))
        >>> accelerator.register_for_checkpointing(loader)
        >>> for epoch in range(loader.epoch, 2):
        ...     for batch in loader:
        ...         pass
        >>> loader.epoch
        2
    """

    def __init__(self, loader: Any, tracker: ResoluteTracker | None = None) -> None:
        self._watch = None if tracker is None else BatchWatch(tracker.throughput)
        if tracker is not None and tracker.throughput.batch_size is None:
            tracker.throughput.batch_size = getattr(loader, "total_batch_size", None)
        self._loader = ReplayedLoader(loader)
        (state,) = broadcast_object_list([self._loader.state(between_epochs=True)])
        self._loader.restore(state)
        self.epoch = 0
        self.batches = 0

    def __len__(self) -> int:
        """Returns the batches of an epoch."""
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        """Yields the batches of this epoch that were not yielded yet."""
        trained = self.batches
        if callable(getattr(self._loader, "set_epoch", None)):
            self._loader.set_epoch(self.epoch)
        self._loader.begin(self.epoch)
        for number, batch in enumerate(self._watched(trained), start=1):
            if number > trained:
                self.batches = number
                yield batch
        self.epoch, self.batches = self.epoch + 1, 0

    def _watched(self, trained: int) -> Iterator[Any]:
        """The batches of the epoch: of those that are not read once more, how long they are waited for."""
        watch = self._watch
        if watch is None:
            yield from self._loader
            return
        watch.ready()
        for number, batch in enumerate(self._loader, start=1):
            watch.arrived()
            yield batch
            if number > trained:
                watch.trained()
            else:
                watch.ready()

    def state_dict(self) -> dict[str, Any]:
        """Returns what ``accelerator.save_state`` keeps."""
        state = self._loader.state(between_epochs=not self.batches)
        return {**state, "epoch": self.epoch, "batches": self.batches}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up what ``state_dict`` returned."""
        self._loader.restore(state)
        self.epoch, self.batches = state["epoch"], state["batches"]
