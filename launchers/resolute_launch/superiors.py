"""What others want of a run: the server, the machine, the trial itself. All of it becomes deadlines."""

from __future__ import annotations

from collections.abc import Callable

from resolute.api.preemption.v1.preemption_service_pb2 import SignalReason
from resolute.clock import Clock
from resolute_launch.escalation import Escalation
from resolute_launch.lease import LeaseKeeper
from resolute_launch.patience import Patience
from resolute_launch.signal_board import Directive, SignalBoard
from resolute_launch.task import Task
from resolute_launch.terminations import Terminations
from resolute_launch.verdict import Observations

EARLY_EXIT_SECONDS = 10.0
"""How long code may go on that said that it ends early."""


class Superiors:
    """Looks at everyone who may ask for the end of a run. Looking twice at the same changes nothing.

    Args:
        task: The run's task.
        seen: Takes what was seen.
        board: The signal.
        lease: The lease; passes on what this machine decides.
        patience: With the control plane.
        terminations: Requests to leave, from the machine.
        say: Tells people, in the log of the trial.
        clock: Measures deadlines.
    """

    def __init__(
        self,
        *,
        task: Task,
        seen: Observations,
        board: SignalBoard,
        lease: LeaseKeeper,
        patience: Patience,
        terminations: Terminations,
        say: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._task, self._seen, self._say = task, seen, say
        self._board, self._lease = board, lease
        self._patience, self._terminations = patience, terminations
        self.escalation = Escalation(clock, grace=task.term_grace_seconds)
        """When the processes are made to end."""
        self._directive = Directive()
        self._terminations_seen = 0
        self._acknowledged = False
        self._left_early = False

    def look(self) -> None:
        """Notes what has changed."""
        self._look_at_lease()
        self._look_at_machine()
        if self._patience.exhausted and not self._seen.preempted:
            self._say(f"WARNING: the control plane has been away for {self._patience.seconds:g} s")
            self._preempt(SignalReason.SIGNAL_REASON_TIMEOUT)
        directive = self._board.directive
        if directive != self._directive:
            self._directive = directive
            self._obey(directive)
        self._look_at_trial()

    def _look_at_lease(self) -> None:
        if self._lease.lost:
            self._seen.force(f"the run lost its allocation: {self._lease.lost}")
            self.escalation.terminate_in(0)

    def _look_at_machine(self) -> None:
        count = self._terminations.count
        if count > self._terminations_seen:
            self._terminations_seen = count
            self._preempt(SignalReason.SIGNAL_REASON_MACHINE)
        if count > 1:
            self._seen.force("the machine asked more than once for its end")
            self.escalation.terminate_in(0)

    def _look_at_trial(self) -> None:
        revision = self._board.acknowledged_revision
        if revision is not None and self._seen.preempted and not self._acknowledged:
            self._acknowledged = True
            self._lease.acknowledge(revision)
        if not self._left_early and self._task.run.early_exit_file.exists():
            self._left_early = True
            self.escalation.kill_in(EARLY_EXIT_SECONDS)

    def _preempt(self, reason: SignalReason.ValueType) -> None:
        self._board.preempt_locally(reason)
        self._lease.request_preemption(reason)

    def _obey(self, directive: Directive) -> None:
        if directive.kill:
            self._seen.force("it was killed on request")
            self._say("the run is killed on request")
            self.escalation.kill_in(0)
        elif directive.preempt and not self._seen.preempted:
            self._seen.preempted = True
            # At the gate there is nothing to save.
            seconds = self._task.spec.preemption_timeout_seconds if self._seen.released else 0.0
            self._say(
                f"the run is asked to checkpoint and exit (reason: {directive.reason_name}); "
                f"its processes are ended if they have not exited after {seconds:g} s"
            )
            self.escalation.terminate_in(seconds)
