"""All parts of the Core API in one object."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from resolute.core.checkpoint import CheckpointContext
from resolute.core.distributed import DistributedContext
from resolute.core.experimental import ExperimentalCoreContext
from resolute.core.preempt import PreemptContext
from resolute.core.profiler import DummyProfilerContext, ProfilerContext
from resolute.core.reporting.early_exit import EarlyExitReason
from resolute.core.reporting.train import TrainContext
from resolute.core.searcher import SearcherContext
from resolute.core.stack_dump import StackDump
from resolute.core.tensorboard import LocalTensorboard, Tensorboard
from resolute.info import ClusterInfo, trial_of
from resolute.trial_errors import InvalidHP

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("resolute.core")
_TITLE, _DESCRIPTION = 200, 3000
"""Most characters of an alert."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a context, chosen once: those for a cluster or those for a script off cluster."""

    distributed: DistributedContext
    train: TrainContext
    checkpoint: CheckpointContext
    searcher: SearcherContext
    preempt: PreemptContext
    profiler: ProfilerContext | DummyProfilerContext
    tensorboard: Tensorboard = field(default_factory=LocalTensorboard)
    raise_alert: Callable[[str, str, str], None] | None = None
    """Tells the endpoints of the workspace: title, text, level; None off cluster."""
    closers: tuple[Callable[[], None], ...] = ()
    """Called at the end, in order, each even if one before it fails."""


class Context:
    """The platform's features for a training script. ``resolute.core.init`` creates it.

    Attributes:
        checkpoint: Writes and reads checkpoints.
        distributed: The other processes of the trial.
        preempt: The preemption signal.
        searcher: The lengths to train to.
        train: Metrics and status.
        profiler: Samples of the machine.
        info: Information about the cluster and the trial; None off cluster.
        hparams: Hyperparameters: those given to ``init``, overridden by those of the trial on a cluster.
        seed: Seed of the trial; 0 off cluster.
        experimental: Features that may still change.

    Examples:
        >>> from resolute import core
        >>> context = core.init(hparams={"lr": 0.1})
        >>> context.start()
        >>> context.hparams["lr"], context.seed, context.preempt.should_preempt()
        (0.1, 0, False)
        >>> context.close()
    """

    def __init__(
        self, parts: Parts, *, info: ClusterInfo | None = None, hparams: Mapping[str, Any] | None = None
    ) -> None:
        self._parts = parts
        self._owner = os.getpid()
        self._stack_dump = StackDump()
        self.info = info
        trial = trial_of(info)
        of_trial = trial.hparams if trial else {}
        self.hparams: dict[str, Any] = {**(hparams or {}), **of_trial}
        if hparams and parts.distributed.rank == 0 and (unread := sorted(of_trial.keys() - hparams.keys())):
            # A misspelled name leaves the default in force, and a search varies what nothing reads.
            _log.warning(
                "the hparams given to init lack %s of the config's hyperparameters: see that the script "
                "reads them by these names",
                ", ".join(unread),
            )
        self.seed = trial.trial_seed if trial else 0
        self.checkpoint = parts.checkpoint
        self.distributed = parts.distributed
        self.preempt = parts.preempt
        self.profiler = parts.profiler
        self.searcher = parts.searcher
        self.train = parts.train
        self.experimental = ExperimentalCoreContext()

    def start(self) -> None:
        """Begins to watch for preemption, and whatever else runs in the background."""
        self._stack_dump.install()
        self.preempt.start()
        self._parts.tensorboard.start()

    @contextlib.contextmanager
    def restore_latest(self) -> Iterator[Path | None]:
        """Returns a directory with the files of the trial's latest checkpoint, for the length of a block.

        Yields:
            The directory; None where there is no checkpoint, so that training begins.

        Raises:
            DataLossError: A file is not what was committed.

        Examples:
            >>> from resolute import core
            >>> with core.init() as context, context.restore_latest() as path:
            ...     print("begins" if path is None else "continues")
            begins
        """
        latest = self.info.latest_checkpoint if self.info else None
        if latest is None:
            yield None
            return
        with self.checkpoint.restore_path(latest) as path:
            yield path

    def close(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Ends what ``start`` began. If the hyperparameters were refused, the process then exits with 0.

        Args:
            exc_type: Class of the error that ends the script, if one does.
            exc_val: The error.
            exc_tb: Its traceback.
        """
        if os.getpid() != self._owner:
            # A forked child that unwinds the stack of its parent: what is open belongs to the parent.
            return
        invalid_hp = exc_type is not None and issubclass(exc_type, InvalidHP)
        if invalid_hp:
            _log.warning("the hyperparameters were refused: %s", exc_val)
            self.train.report_early_exit(EarlyExitReason.INVALID_HP, message=str(exc_val))
        self._close_all()
        if invalid_hp:
            sys.exit(0)

    def alert(self, title: str | None = None, description: str | None = None, level: str = "info") -> None:
        """Raises an alert: a line in the trial's log, and a message where rules of its workspace say so.

        Training continues even if the cluster cannot be reached.

        Args:
            title: A few words, cut after 200 characters.
            description: More words, cut after 3000.
            level: ``debug``, ``info``, ``warn`` or ``error``.

        Raises:
            ValueError: The level is none of these.
        """
        number = {
            "debug": logging.DEBUG,
            "info": logging.INFO,
            "warn": logging.WARNING,
            "error": logging.ERROR,
        }
        if level not in number:
            raise ValueError(f"level is {level!r}; {', '.join(number)} were expected")
        short, text = str(title or "")[:_TITLE], str(description or "")[:_DESCRIPTION]
        _log.log(number[level], "alert: %s", ": ".join(filter(None, (short, text))))
        if self._parts.raise_alert is not None:
            self._parts.raise_alert(short, text, level)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close(exc_type, exc_val, exc_tb)

    def _close_all(self) -> None:
        self._stack_dump.remove()
        steps: tuple[Callable[[], None], ...] = (
            # What it sends needs everything else.
            self.checkpoint.wait,
            self.preempt.close,
            self.profiler.close,
            self._parts.tensorboard.close,
            self.distributed.close,
            *self._parts.closers,
        )
        # Each step runs even if one before it fails; the failures are raised once everything was closed.
        with contextlib.ExitStack() as stack:
            for step in reversed(steps):
                stack.callback(step)
