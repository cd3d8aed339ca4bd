"""The preemption signal of a trial: whether it must checkpoint and exit."""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from resolute.core.distributed import DistributedContext

if TYPE_CHECKING:
    from typing_extensions import Self


class PreemptMode(enum.Enum):
    """The processes that read the signal, and the way in which they agree.

    Examples:
        >>> from resolute import core
        >>> with core.init(preempt_mode=core.PreemptMode.ChiefOnly) as context:
        ...     context.preempt.should_preempt()
        False
    """

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    """Every process asks, in step with the others; all get what the chief saw."""
    ChiefOnly = "CHIEF_ONLY"
    """Only the chief asks, and tells the others by means of its own."""
    WorkersAskMaster = "WORKERS_ASK_MASTER"
    """Every process asks whenever it wants, and may see the signal earlier or later than the others."""


class Signal(Protocol):
    """The signal of an allocation; on a cluster the ``Flags`` of the run directory."""

    @property
    def preempt(self) -> bool:
        """Whether the trial must checkpoint and exit."""

    def acknowledge(self) -> None:
        """Tells the platform that the trial exits because of the signal, or has no operation left."""


class NoSignal:
    """The signal off cluster, which is never set."""

    preempt = False

    def acknowledge(self) -> None:
        """Does nothing: off cluster nothing receives it."""


class PreemptContext:
    """Tells whether to stop. Get it as ``Context.preempt``.

    Args:
        dist: The other processes.
        mode: The processes that read the signal.
        open_signal: Opens the signal when the context starts.
        asked: Called at each question, as a sign that training continues.

    Examples:
        >>> from resolute import core
        >>> with core.init() as context:
        ...     for step in range(100):
        ...         if context.preempt.should_preempt():
        ...             break  # after a checkpoint was saved
        ...     print(step)
        99
    """

    def __init__(
        self,
        dist: DistributedContext,
        mode: PreemptMode = PreemptMode.WorkersAskChief,
        *,
        open_signal: Callable[[], Signal],
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        self._dist = dist
        self._asked = asked
        self._mode = PreemptMode(mode)
        self._alone = dist.size == 1
        self._open_signal = open_signal
        self._signal: Signal | None = None
        self._acknowledged_by: int | None = None

    def start(self) -> PreemptContext:
        """Begins to watch.

        Raises:
            RuntimeError: It was started before.
        """
        if self._signal is not None:
            raise RuntimeError("the PreemptContext was started already: start() is called once, by core.init")
        self._signal = self._open_signal()
        return self

    def close(self) -> None:
        """Ends watching."""

    def __enter__(self) -> Self:
        if self._signal is None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Returns whether to write a checkpoint and exit now. It costs next to nothing; ask at every step.

        Args:
            auto_ack: Whether True also promises that the trial will exit because of the signal. Without the
                promise, an exit counts as the end of the trial.

        Raises:
            RuntimeError: The context was not started, or a worker asks in ``PreemptMode.ChiefOnly``.
        """
        if self._signal is None:
            raise RuntimeError("cannot call PreemptContext.should_preempt() before PreemptContext.start()")
        self._asked()
        preempt = self._agree(self._signal)
        if preempt and auto_ack and self._acknowledged_by != os.getpid():
            self.acknowledge_preemption_signal()
        return preempt

    def acknowledge_preemption_signal(self) -> None:
        """Promises that the trial exits because of the signal, so that it will be continued later.

        Raises:
            RuntimeError: The context was not started.
        """
        if self._signal is None:
            raise RuntimeError(
                "cannot call PreemptContext.acknowledge_preemption_signal() before PreemptContext.start()"
            )
        self._acknowledged_by = os.getpid()
        self._signal.acknowledge()

    def _agree(self, signal: Signal) -> bool:
        # Asked at every step, so the way of one process is short.
        if self._alone or self._mode is PreemptMode.WorkersAskMaster:
            return signal.preempt
        if self._mode is PreemptMode.ChiefOnly:
            if self._dist.rank:
                raise RuntimeError(
                    f"should_preempt() was called from non-chief worker of rank {self._dist.rank}: in "
                    "PreemptMode.ChiefOnly only the chief, rank 0, may call it"
                )
            return signal.preempt
        return bool(self._dist.broadcast(signal.preempt if self._dist.rank == 0 else None))


class DummyPreemptContext(PreemptContext):
    """Preemption off cluster: it never preempts, and has the same rules about which rank may ask, and when.

    Examples:
        >>> from resolute import core
        >>> with core.DummyPreemptContext(core.DummyDistributedContext()) as preempt:
        ...     preempt.should_preempt()
        False
    """

    def __init__(self, dist: DistributedContext, mode: PreemptMode = PreemptMode.WorkersAskChief) -> None:
        super().__init__(dist, mode, open_signal=lambda: _local_signals[-1])


_local_signals: list[Signal] = [NoSignal()]
"""The last one is what contexts off cluster watch."""


@contextlib.contextmanager
def local_signal(signal: Signal) -> Iterator[None]:
    """Makes contexts off cluster that are started in the block watch a signal; for tests of scripts."""
    _local_signals.append(signal)
    try:
        yield
    finally:
        _local_signals.remove(signal)
