"""Decides when the processes of a run must end: at the request of the server, the machine, or the trial."""

from __future__ import annotations

from collections.abc import Callable

from resolute.api.preemption.v1.signal_pb2 import SignalReason
from resolute.contracts.clock import Clock
from resolute.contracts.times import seconds_of
from resolute_launch.container.task import Task
from resolute_launch.control_plane.outage_timeout import OutageTimeout
from resolute_launch.control_plane.signal_state import Directive, SignalState
from resolute_launch.processes.shutdown_sequence import ShutdownSequence
from resolute_launch.processes.signal_handlers import SignalHandlers
from resolute_launch.supervisor.exit_summary import Observations
from resolute_launch.supervisor.lease import LeaseRenewer

EARLY_EXIT_SECONDS = 10.0
"""How long a trial may run after it announced an early exit."""


class TerminationPolicy:
    """Turns every request to end a run into deadlines of its shutdown sequence. Its checks are idempotent.

    Args:
        task: The run's task.
        observations: The observations for the exit summary.
        signal_state: The signal.
        lease: Sends this machine's decisions to the control plane.
        outage_timeout: The timeout for an outage of the control plane.
        signal_handlers: Termination requests from the machine.
        log_line: Adds a line to the log of the trial.
        clock: Measures deadlines.
    """

    def __init__(
        self,
        *,
        task: Task,
        observations: Observations,
        signal_state: SignalState,
        lease: LeaseRenewer,
        outage_timeout: OutageTimeout,
        signal_handlers: SignalHandlers,
        log_line: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._task, self._observations, self._log_line = task, observations, log_line
        self._signal_state, self._lease = signal_state, lease
        self._outage_timeout, self._signal_handlers = outage_timeout, signal_handlers
        self.shutdown_sequence = ShutdownSequence(clock, grace=task.term_grace_seconds)
        """When the processes get SIGTERM and SIGKILL."""
        self._directive = Directive()
        self._termination_requests_seen = 0
        self._machine_notice = False
        self._hang = ""
        self._acknowledged = False
        self._left_early = False

    def notice_machine(self) -> None:
        """Has the run asked to checkpoint and exit: its machine goes away. Any thread may call it."""
        self._machine_notice = True

    def end_hung(self, why: str) -> None:
        """Has the run ended because nothing of it moves. Any thread may call it."""
        self._hang = why

    def check(self) -> None:
        """Reacts to everything that has changed since the last call."""
        self._check_lease()
        self._check_machine()
        if self._outage_timeout.exhausted and not self._observations.preempted:
            self._log_line(f"WARNING: the control plane has been away for {self._outage_timeout.seconds:g} s")
            self._preempt(SignalReason.SIGNAL_REASON_TIMEOUT)
        directive = self._signal_state.directive
        if directive != self._directive:
            self._directive = directive
            self._apply(directive)
        self._check_trial()
        if self._hang:
            self._observations.force(self._hang)
            # What hangs does not end by itself, and an exit code of 0 would count as its end.
            self.shutdown_sequence.kill_in(0)

    def _check_lease(self) -> None:
        if self._lease.lost:
            self._observations.force(f"the run lost its allocation: {self._lease.lost}")
            self.shutdown_sequence.terminate_in(0)

    def _check_machine(self) -> None:
        count = self._signal_handlers.count
        if count > self._termination_requests_seen:
            self._termination_requests_seen = count
            self._preempt(SignalReason.SIGNAL_REASON_MACHINE)
        if self._machine_notice:
            self._machine_notice = False
            self._preempt(SignalReason.SIGNAL_REASON_MACHINE)
        if count > 1:
            self._observations.force("the machine requested its termination more than once")
            self.shutdown_sequence.terminate_in(0)

    def _check_trial(self) -> None:
        revision = self._signal_state.acknowledged_revision
        if revision is not None and self._observations.preempted and not self._acknowledged:
            self._acknowledged = True
            self._lease.acknowledge(revision)
        if not self._left_early and self._task.run.early_exit_file.exists():
            self._left_early = True
            self.shutdown_sequence.kill_in(EARLY_EXIT_SECONDS)

    def _preempt(self, reason: SignalReason.ValueType) -> None:
        self._signal_state.preempt_locally(reason)
        self._lease.request_preemption(reason)

    def _apply(self, directive: Directive) -> None:
        if directive.kill:
            self._observations.force("it was killed on request")
            self._log_line("the run is killed on request")
            self.shutdown_sequence.kill_in(0)
        elif directive.preempt and not self._observations.preempted:
            self._observations.preempted = True
            # Before the start barrier there is nothing to save.
            seconds = seconds_of(self._task.spec.preemption_timeout) if self._observations.released else 0.0
            self._log_line(
                f"the run is asked to checkpoint and exit (reason: {directive.reason_name}); "
                f"its processes are terminated if they have not exited after {seconds:g} s"
            )
            self.shutdown_sequence.terminate_in(seconds)
