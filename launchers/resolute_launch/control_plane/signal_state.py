"""The preemption signal for the trial: the server's, merged with this machine's decisions."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from resolute.api.preemption.v1.signal_pb2 import Signal, SignalReason
from resolute.contracts.clock import Clock
from resolute.contracts.run.shared_memory.flags import Flags


@dataclass(frozen=True, slots=True)
class Directive:
    """The instruction to the run."""

    preempt: bool = False
    """Whether it must checkpoint and exit."""
    kill: bool = False
    """Whether it must end at once."""
    reason: SignalReason.ValueType = SignalReason.SIGNAL_REASON_UNSPECIFIED
    """Why."""

    @property
    def reason_name(self) -> str:
        """The name of the reason."""
        return SignalReason.Name(self.reason).removeprefix("SIGNAL_REASON_").lower()


class SignalState:
    """Merges the signals and writes the result for the trial. Several threads may use it.

    The deadline of the processes starts when this machine first receives the signal. So neither a late
    delivery nor a wrong clock shortens the trial's time to checkpoint.

    Args:
        flags: Memory shared with the trial.
        clock: Clock for the time of receipt.
        preemption_timeout: Seconds between a signal and SIGTERM to the processes.
    """

    def __init__(self, flags: Flags, *, clock: Clock, preemption_timeout: float) -> None:
        self._flags = flags
        self._clock = clock
        self._timeout = preemption_timeout
        self._lock = threading.Lock()
        self._server = Signal()
        self._local = SignalReason.SIGNAL_REASON_UNSPECIFIED
        self._deadline = 0.0

    @property
    def revision(self) -> int:
        """Revision of the latest signal from the server."""
        return self._server.revision

    @property
    def acknowledged_revision(self) -> int | None:
        """Revision that the trial acknowledged; None if it has acknowledged nothing."""
        return self._flags.acknowledged_revision if self._flags.acknowledged else None

    @property
    def directive(self) -> Directive:
        """What the run must do now."""
        with self._lock:
            return self._merged()

    def update(self, signal: Signal) -> bool:
        """Takes a signal from the server; one older than the last changes nothing.

        Returns:
            Whether the directive changed.
        """
        with self._lock:
            if signal.revision <= self._server.revision:
                return False
            before = self._merged()
            self._server.CopyFrom(signal)
            return self._show(before)

    def preempt_locally(self, reason: SignalReason.ValueType) -> bool:
        """Preempts by a decision of this machine: it is going away, or the control plane is.

        Returns:
            Whether the directive changed.
        """
        with self._lock:
            before = self._merged()
            self._local = reason
            return self._show(before)

    def _merged(self) -> Directive:
        local = self._local != SignalReason.SIGNAL_REASON_UNSPECIFIED
        signaled = self._server.preempt or self._server.kill
        return Directive(
            preempt=self._server.preempt or local,
            kill=self._server.kill,
            reason=self._server.reason if signaled else self._local,
        )

    def _show(self, before: Directive) -> bool:
        now = self._merged()
        if now.preempt and not self._deadline:
            self._deadline = self._clock.time() + self._timeout
        self._flags.set_signal(
            revision=self._server.revision,
            preempt=now.preempt,
            kill=now.kill,
            reason=now.reason,
            deadline=self._deadline if now.preempt else 0.0,
        )
        return now != before
