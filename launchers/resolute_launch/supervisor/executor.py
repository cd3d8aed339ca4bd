"""One run, from its spec to its exit record."""

from __future__ import annotations

import logging
import resource
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from resolute.contracts.clock import Clock
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.contracts.times import seconds_of
from resolute.errors import ResoluteError
from resolute.runtime.redaction import Secrets
from resolute.spool.delivery.shipping import SpoolShipper
from resolute.spool.line_writer import LineWriter
from resolute.spool.omissions import read_left_out
from resolute_launch.container import model_definition
from resolute_launch.container.entrypoint_process import (
    EntrypointProcess,
    Shell,
    barrier_file,
    create_scratch_directory,
)
from resolute_launch.container.environment import task_environment
from resolute_launch.container.output import OutputCollector
from resolute_launch.container.startup_hook import StartupHook
from resolute_launch.container.task import Task
from resolute_launch.container.task_info import cluster_info, run_identity, single_container_rendezvous
from resolute_launch.control_plane.connection import ControlPlaneConnection
from resolute_launch.control_plane.signal_state import SignalState
from resolute_launch.control_plane.signal_watcher import SignalWatcher
from resolute_launch.exec import entrypoint
from resolute_launch.gpus.xid_errors import XidErrors
from resolute_launch.interpreter._resolute_output import VARIABLE, name_pipes
from resolute_launch.processes.shutdown_sequence import ShutdownStep
from resolute_launch.processes.signal_handlers import SignalHandlers
from resolute_launch.supervisor import exit_summary
from resolute_launch.supervisor.environment_report import EnvironmentReport
from resolute_launch.supervisor.exit_summary import Observations
from resolute_launch.supervisor.joining.start_barrier import StartBarrier
from resolute_launch.supervisor.late_lines import LateLines
from resolute_launch.supervisor.lease import LeaseRenewer
from resolute_launch.supervisor.monitors import Monitors
from resolute_launch.supervisor.phases import Phases
from resolute_launch.supervisor.termination_policy import TerminationPolicy
from resolute_launch.warm.client import WarmStart

DRAIN_SECONDS = 30.0
"""How long spools are drained when the machine goes away."""
_TICK_SECONDS = 0.25
_LINGER_SECONDS = 0.5
_PIPE_SECONDS = 5.0
_REPORT_SECONDS = 5.0
"""How long the end of a very short run waits for the record of its environment."""
_log = logging.getLogger("resolute.supervisor")


class RunExecutor:
    """Executes one run, once its launch spec is known.

    Args:
        task: The run's task.
        connection: The connection to the control plane.
        signal_handlers: Termination requests from the machine.
        environ: The environment of the supervisor.
        clock: Tells the time.
    """

    def __init__(
        self,
        task: Task,
        connection: ControlPlaneConnection,
        *,
        signal_handlers: SignalHandlers,
        environ: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._task, self._run, self._connection = task, task.run, connection
        self._signal_handlers, self._environ, self._clock = signal_handlers, environ, clock
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._observations = Observations(
            xid_errors=XidErrors(task.order.devices) if task.order.devices else None, node=task.order.agent_id
        )
        self._flags = Flags.create(task.run.flags_file)
        notify = self._wake.set
        signal_state = SignalState(
            self._flags, clock=clock, preemption_timeout=seconds_of(task.spec.preemption_timeout)
        )
        self._secrets = Secrets(task.order.token, task.run.read_token())
        self._start_barrier = self._open_barrier()
        self._writer = LineWriter(task.run.spool, clock=clock)
        self._output = self._collect_output()
        self._shipping = SpoolShipper(connection.channel, task.run.spool, run_identity(task), clock=clock)
        self._late_lines = LateLines(
            self._shipping, task.run.spool, seconds=task.order.log_wait_seconds, clock=clock
        )
        self._lease = LeaseRenewer(
            task, connection, signal_state=signal_state, secrets=self._secrets, notify=notify, clock=clock
        )
        self._signal_watcher = SignalWatcher(connection.control, signal_state, notify=notify)
        self._termination_policy = TerminationPolicy(
            task=task,
            observations=self._observations,
            signal_state=signal_state,
            lease=self._lease,
            outage_timeout=connection.outage_timeout,
            signal_handlers=signal_handlers,
            log_line=self._output.log_line,
            clock=clock,
        )
        self._shutdown_sequence = self._termination_policy.shutdown_sequence
        self._warm_start = WarmStart(task, interrupted=self._interrupted, log_line=self._output.log_line)
        self._monitors = self._open_monitors()
        self._phases = Phases(task, environ=environ, clock=clock)
        self._environment = EnvironmentReport(connection.control)
        self._startup_hook = StartupHook(
            task,
            environ=environ,
            interrupted=self._interrupted,
            wait=self._wait,
            log_line=self._output.log_line,
            clock=clock,
        )

    def _open_barrier(self) -> StartBarrier:
        return StartBarrier(
            self._task,
            control=self._connection.control,
            observations=self._observations,
            notify=self._wake.set,
            secrets=self._secrets,
            clock=self._clock,
        )

    def _collect_output(self) -> OutputCollector:
        return OutputCollector(
            self._run,
            self._writer,
            clock=self._clock,
            barrier=barrier_file(self._run),
            secrets=self._secrets,
            hook_finished=self._start_barrier.mark_hook_finished,
        )

    def _open_monitors(self) -> Monitors:
        return Monitors(
            self._task,
            control=self._connection.control,
            lease=self._lease,
            output=self._output,
            leave_machine=self._leave_machine,
            end_hung=self._end_hung,
            clock=self._clock,
        )

    def execute(self) -> ExitRecord:
        """Starts the entrypoint, watches it to its end, and sends the remaining reports and lines.

        Returns:
            How the run ended; it is on disk already, unless the disk is full.
        """
        self._signal_handlers.subscribe(self._wake.set)
        self._lease.start()
        self._signal_watcher.start()
        self._shipping.start()
        try:
            _allow_core_files(self._task.config)
            self._monitors.start()
            record = replace(self._execute(), gpu_usage=self._monitors.gpus.stop())
            record = self._with_left_out(record)
            self._write_exit_record(record)
            self._drain()
            self._monitors.finish()
            self._run.remove_external_resources()
            return self._with_left_out(record)
        finally:
            self._monitors.stop()
            self._start_barrier.close()
            self._signal_watcher.stop()
            self._startup_hook.close()
            self._run.remove_secrets()

    def wait_for_lines(self) -> None:
        """Waits, for a bounded time, until all lines of the run have arrived.

        Raises:
            ResoluteError: The control plane is still away: the time is not spent before lines can arrive.
        """
        self._lease.renew()
        self._late_lines.wait(give_up=lambda: self._connection.outage_timeout.exhausted)

    def close(self) -> None:
        """Stops what must run until the exit is reported."""
        self._lease.stop()
        self._shipping.stop()
        self._phases.close()

    def _execute(self) -> ExitRecord:
        try:
            self._phases.begin("pull")
            self._fetch()
            self._fetch_secrets()
            self._phases.begin("start")
            self._wait_for_tokens()
            environment = self._task_environment()
            variables = self._startup_hook.prepare(environment)
            command = entrypoint.plan(
                self._task.config.get("entrypoint"),
                python=self._startup_hook.python,
                distributed=self._task.distributed,
            )
            child = self._start_child(command.argv, environment, for_shell=variables)
        except InterruptedError:
            pass
        except (ResoluteError, OSError) as failure:
            self._observations.start_failure = str(failure)
            self._output.log_line(f"ERROR: {failure}")
        else:
            self._wait_for_end(child, command.argv)
            return self._clean_up(child)
        self._output.stop()
        return exit_summary.before_start(self._observations, clock=self._clock)

    def _leave_machine(self) -> None:
        self._termination_policy.notice_machine()
        self._wake.set()

    def _end_hung(self, why: str) -> None:
        self._termination_policy.end_hung(why)
        self._wake.set()

    def _fetch(self) -> None:
        spec = self._task.spec

        def once() -> None:
            model_definition.fetch(
                self._run,
                sha256=spec.model_definition_sha256,
                chunks=lambda: self._connection.control.model_definition(spec.experiment_id),
                interrupted=self._interrupted,
            )

        self._connection.outage_timeout.retry(once, stop=threading.Event(), purpose="fetching the code")
        model_definition.link(self._run.work, self._task.order.links)
        if self._interrupted():
            raise InterruptedError

    def _fetch_secrets(self) -> None:
        if not self._task.secrets:
            return
        values = self._connection.outage_timeout.retry(
            self._connection.control.run_secrets, stop=threading.Event(), purpose="fetching the secrets"
        )
        for value in values.values():
            self._secrets.add_printed(value)
        self._run.write_secrets(values)

    def _wait_for_tokens(self) -> None:
        """Waits until the first renewal of the lease has brought the token that scripts sign in with."""
        while not self._lease.wait_for_first_renewal(_TICK_SECONDS):
            if self._interrupted():
                raise InterruptedError

    def _interrupted(self) -> bool:
        self._termination_policy.check()
        return self._observations.start_cancelled

    def _task_environment(self) -> dict[str, str]:
        rendezvous = single_container_rendezvous(self._task.order) if self._task.single_container else None
        info = cluster_info(self._task, rendezvous=rendezvous)
        info.write(self._run.info)
        environment = task_environment(
            self._environ, task=self._task, info=info, scratch=create_scratch_directory(self._run)
        )
        pipes = name_pipes(self._output.stdout.writer, self._output.stderr.writer)
        return {**environment, VARIABLE: pipes}

    def _start_child(
        self, argv: Sequence[str], environment: Mapping[str, str], *, for_shell: Mapping[str, str]
    ) -> EntrypointProcess:
        stdout, stderr = self._output.stdout.writer, self._output.stderr.writer
        forked = self._warm_start.fork(argv, environment=environment, stdout=stdout, stderr=stderr)
        started = forked or Shell.start(self._run, environment=for_shell, stdout=stdout, stderr=stderr)
        child = EntrypointProcess(started, self._run)
        self._output.start()
        return child

    def _wait_for_end(self, child: EntrypointProcess, argv: Sequence[str]) -> None:
        waiter = threading.Thread(target=self._wait_for, args=(child,), name="child-wait", daemon=True)
        waiter.start()
        while not self._ended.is_set():
            self._termination_policy.check()
            if self._start_barrier.hook_has_finished():
                self._finish_hook()
            if self._start_barrier.try_release(child, argv):
                self._lease.entrypoint_runs(child.pid)
                self._monitors.entrypoint_runs(child.tree)
                self._phases.begin("entrypoint")
            self._shut_down(child)
            self._wait(min(_TICK_SECONDS, self._shutdown_sequence.seconds_until_due()))
        waiter.join()
        self._observations.stood_still = self._monitors.entrypoint_ended()

    def _wait(self, seconds: float) -> None:
        self._wake.wait(seconds)
        self._wake.clear()

    def _finish_hook(self) -> None:
        """Keeps and reports what there is, before the entrypoint can change it."""
        self._startup_hook.finish()
        if not self._task.order.container_rank:
            self._environment.start(python=self._startup_hook.python, packages=self._startup_hook.packages)

    def _wait_for(self, child: EntrypointProcess) -> None:
        child.wait_without_reaping()
        self._ended.set()
        self._wake.set()

    def _shut_down(self, child: EntrypointProcess) -> None:
        if self._observations.start_failure:
            self._shutdown_sequence.kill_in(0)
        step = self._shutdown_sequence.due()
        if step is ShutdownStep.NONE or self._ended.is_set():
            return
        if self._observations.released:
            self._observations.force(
                "its processes missed the deadline after they were asked to exit, and were terminated"
            )
        child.signal_group(signal.SIGTERM if step is ShutdownStep.TERMINATE else signal.SIGKILL)

    def _clean_up(self, child: EntrypointProcess) -> ExitRecord:
        if self._observations.released:
            self._phases.add("imports", until=self._run.read_ready())
        self._phases.begin("end")
        # Processes started with `>(...)` get a moment to write their last lines.
        self._output.finish(_LINGER_SECONDS)
        child.kill_process_tree()
        self._output.finish(_PIPE_SECONDS)
        self._output.stop()
        # The signal that ended the processes may have been seen here a moment after it.
        self._observations.preempted |= self._signal_handlers.count > 0
        return exit_summary.after_start(
            child.reap(),
            self._observations,
            run=self._run,
            flags=self._flags,
            words=self._output.output_tail,
            secrets=self._secrets,
            clock=self._clock,
        )

    def _with_left_out(self, record: ExitRecord) -> ExitRecord:
        return replace(record, left_out=read_left_out(self._run.spool))

    def _write_exit_record(self, record: ExitRecord) -> None:
        """Writes the exit record before the exit is reported; a full disk must not prevent the report."""
        try:
            record.write(self._run.exit_file)
            self._writer.close()
        except (ResoluteError, OSError) as failure:
            _log.error("the exit record could not be written: %s", failure)

    def _drain(self) -> None:
        """Waits until what the run left has arrived: long for reports, for a short time for lines."""
        limit = DRAIN_SECONDS if self._signal_handlers.count else self._connection.outage_timeout.seconds
        deadline = self._clock.monotonic() + limit

        def give_up() -> bool:
            return self._connection.outage_timeout.exhausted or self._clock.monotonic() >= deadline

        self._shipping.drain_reports(give_up=give_up)
        self._environment.wait(_REPORT_SECONDS)
        self._late_lines.wait(give_up=give_up)


def _allow_core_files(config: Mapping[str, Any]) -> None:
    """Lets the processes of the run leave core files, where the config holds what they leave."""
    on_failure = config.get("on_failure")
    if on_failure:
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        most = int(on_failure["hold_size"])
        resource.setrlimit(
            resource.RLIMIT_CORE, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )
