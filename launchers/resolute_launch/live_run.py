"""One run, from its spec to its exit record."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Mapping, Sequence

from resolute.clock import Clock
from resolute.errors import ResoluteError
from resolute.exit_record import ExitRecord
from resolute.run_directory import Flags
from resolute.spool.format import Line, Stdtype
from resolute.spool.lines import LineWriter
from resolute.spool.reports import refusals_of
from resolute.spool.shipping import Shipping
from resolute_launch import entrypoint, model_definition, verdict
from resolute_launch.child import Child, gate_file, scratch_of
from resolute_launch.environment import task_environment
from resolute_launch.escalation import Step
from resolute_launch.gate import Gate
from resolute_launch.lease import LeaseKeeper
from resolute_launch.output import OutputPump
from resolute_launch.patience import patiently
from resolute_launch.secrecy import Secrets
from resolute_launch.signal_board import SignalBoard
from resolute_launch.signal_watch import SignalWatch
from resolute_launch.superiors import Superiors
from resolute_launch.task import Link, Task
from resolute_launch.task_info import cluster_info, rendezvous_alone, run_identity
from resolute_launch.terminations import Terminations
from resolute_launch.verdict import Observations

DRAIN_SECONDS = 30.0
"""How long spools are drained when the machine goes away."""
_TICK_SECONDS = 0.25
_LINGER_SECONDS = 0.5
_PIPE_SECONDS = 5.0
_log = logging.getLogger("resolute.supervisor")


class LiveRun:
    """The supervisor's work for one run, once it knows what the run is.

    Args:
        task: The run's task.
        link: The way to the control plane.
        terminations: Requests to leave, from the machine.
        environ: What the supervisor was started with.
        clock: Tells the time.
    """

    def __init__(
        self,
        task: Task,
        link: Link,
        *,
        terminations: Terminations,
        environ: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._task, self._run, self._link = task, task.run, link
        self._terminations, self._environ, self._clock = terminations, environ, clock
        self._attention = threading.Event()
        self._ended = threading.Event()
        self._seen = Observations()
        self._flags = Flags.create(task.run.flags_file)
        notify = self._attention.set
        board = SignalBoard(self._flags, clock=clock, preemption_timeout=task.spec.preemption_timeout_seconds)
        secrets = Secrets(task.order.token, task.run.read_token())
        self._gate = Gate(
            task, control=link.control, seen=self._seen, notify=notify, secrets=secrets, clock=clock
        )
        self._writer = LineWriter(task.run.spool, clock=clock)
        self._pump = OutputPump(
            task.run,
            self._writer,
            clock=clock,
            gate=gate_file(task.run),
            secrets=secrets,
            opened=self._gate.open,
        )
        self._shipping = Shipping(link.channel, task.run.spool, run_identity(task), clock=clock)
        self._lease = LeaseKeeper(task, link, board=board, secrets=secrets, notify=notify)
        self._watch = SignalWatch(link.control, board, notify=notify)
        self._superiors = Superiors(
            task=task,
            seen=self._seen,
            board=board,
            lease=self._lease,
            patience=link.patience,
            terminations=terminations,
            say=self._pump.say,
            clock=clock,
        )
        self._escalation = self._superiors.escalation

    def conduct(self) -> ExitRecord:
        """Brings the run up, stands by it to its end, and ships what it left.

        Returns:
            How it ended; on disk already, if the disk took it.
        """
        self._terminations.subscribe(self._attention.set)
        self._lease.start()
        self._watch.start()
        self._shipping.start()
        try:
            record = self._execute()
            self._keep(record)
            self._drain()
            self._run.remove_remains()
            return record
        finally:
            self._gate.close()
            self._watch.stop()

    def close(self) -> None:
        """Ends what was kept until the exit was reported."""
        self._lease.stop()
        self._shipping.stop()

    def _execute(self) -> ExitRecord:
        try:
            command = entrypoint.plan(
                self._task.config.get("entrypoint"),
                python=self._task.order.python,
                distributed=self._task.distributed,
            )
            self._fetch()
            child = self._start_child()
        except InterruptedError:
            pass
        except (ResoluteError, OSError) as failure:
            self._seen.obstacle = str(failure)
            self._pump.say(f"ERROR: {failure}")
        else:
            self._stand_by(child, command.argv)
            return self._clear_up(child)
        self._pump.stop()
        return verdict.never_started(self._seen, clock=self._clock)

    def _fetch(self) -> None:
        spec = self._task.spec

        def once() -> None:
            model_definition.fetch(
                self._run,
                sha256=spec.model_definition_sha256,
                chunks=lambda: self._link.control.model_definition(spec.experiment_id),
                interrupted=self._interrupted,
            )

        patiently(once, patience=self._link.patience, stop=threading.Event(), purpose="fetching the code")
        if self._interrupted():
            raise InterruptedError

    def _interrupted(self) -> bool:
        self._superiors.look()
        return self._seen.pointless

    def _start_child(self) -> Child:
        rendezvous = rendezvous_alone(self._task.order) if self._task.alone else None
        info = cluster_info(self._task, rendezvous=rendezvous)
        info.write(self._run.info)
        environment = task_environment(
            self._environ, task=self._task, info=info, scratch=scratch_of(self._run)
        )
        child = Child.start(
            self._run,
            environment=environment,
            stdout=self._pump.stdout.writer,
            stderr=self._pump.stderr.writer,
        )
        self._pump.start()
        return child

    def _stand_by(self, child: Child, argv: Sequence[str]) -> None:
        waiter = threading.Thread(target=self._wait_for, args=(child,), name="child-wait", daemon=True)
        waiter.start()
        while not self._ended.is_set():
            self._superiors.look()
            if self._gate.pass_through(child, argv):
                self._lease.entrypoint_runs(child.pid)
            self._escalate(child)
            self._attention.wait(min(_TICK_SECONDS, self._escalation.seconds_until_due()))
            self._attention.clear()
        waiter.join()

    def _wait_for(self, child: Child) -> None:
        child.wait_without_reaping()
        self._ended.set()
        self._attention.set()

    def _escalate(self, child: Child) -> None:
        if self._seen.obstacle:
            self._escalation.kill_in(0)
        step = self._escalation.due()
        if step is Step.NONE or self._ended.is_set():
            return
        if self._seen.released:
            self._seen.force("it did not exit in time after it was asked to, and was ended")
        child.signal_group(signal.SIGTERM if step is Step.TERMINATE else signal.SIGKILL)

    def _clear_up(self, child: Child) -> ExitRecord:
        # What was started with `>(...)` gets a moment to write its last lines.
        self._pump.finish(_LINGER_SECONDS)
        child.end_family()
        self._pump.finish(_PIPE_SECONDS)
        self._pump.stop()
        return verdict.ended(
            child.reap(),
            self._seen,
            run=self._run,
            flags=self._flags,
            words=self._pump.last_words,
            clock=self._clock,
        )

    def _keep(self, record: ExitRecord) -> None:
        """Puts the end on disk before anyone is told. A full disk must not keep it from being told at all."""
        try:
            record.write(self._run.exit_file)
            self._writer.close()
        except (ResoluteError, OSError) as failure:
            _log.error("what the run ends with could not be written: %s", failure)

    def _drain(self) -> None:
        """Waits until what the run left has arrived, and then says what of it is not kept."""
        limit = DRAIN_SECONDS if self._terminations.count else self._link.patience.seconds
        deadline = self._clock.monotonic() + limit

        def give_up() -> bool:
            return self._link.patience.exhausted or self._clock.monotonic() >= deadline

        if self._shipping.drain(give_up=give_up) and self._say_refusals():
            self._shipping.drain(give_up=give_up)

    def _say_refusals(self) -> bool:
        """Adds to the log which reports were refused: a script that has ended cannot be told any more."""
        refusals = list(refusals_of(self._run.spool))
        if not refusals:
            return False
        now = self._clock.time()
        texts = (f"ERROR: a report is not kept: {refusal}" for refusal in refusals)
        writer = LineWriter(self._run.spool, clock=self._clock)
        writer.append_lines([Line(now, Stdtype.PLATFORM, text.encode()) for text in texts])
        writer.close()
        return True
