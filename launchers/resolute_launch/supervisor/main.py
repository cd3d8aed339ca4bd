"""The process beside a trial: starts it, renews its lease, sends its reports and lines, and reports its exit.

It runs as ``python -m resolute_launch.supervisor RUN_DIR``, and holds the lock of the run directory for as
long as it lives. During an outage of the control plane the trial continues, until the outage timeout.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.files.atomic_files import read_json, write_atomically, write_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.lock import RunLock
from resolute.contracts.run.open_files import restore_limit
from resolute.errors import (
    AbortedError,
    ConflictError,
    NotFoundError,
    ResoluteError,
    UnauthenticatedError,
)
from resolute.rpc.channel import open_channel
from resolute_launch.container.entrypoint_process import END_SECONDS, process_tree_of
from resolute_launch.container.task import Task
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.control_plane.connection import ControlPlaneConnection
from resolute_launch.control_plane.outage_timeout import OutageTimeout
from resolute_launch.installation import compat_path
from resolute_launch.processes.signal_handlers import SignalHandlers
from resolute_launch.supervisor.bounded_log import BoundedLogHandler
from resolute_launch.supervisor.executor import RunExecutor
from resolute_launch.supervisor.exit_summary import Observations, before_start

EXIT_REFUSED = 75
"""Exit code when the run has a supervisor already, or has ended."""
SPEC_FILE = "launch_spec.pb"
"""File of the run directory with the launch spec, for the upload of what a lost supervisor left."""
_log = logging.getLogger("resolute.supervisor")


class Supervisor:
    """The work for one run directory.

    Args:
        run: The run directory; its lock is held.
        order: The launch order of the engine.
        environ: The environment of this process.
        clock: Tells the time.
    """

    def __init__(
        self, run: RunDirectory, order: LaunchOrder, *, environ: Mapping[str, str], clock: Clock
    ) -> None:
        self._run = run
        self._order = order
        self._environ = environ
        self._clock = clock
        self._stop = threading.Event()
        self._outage_timeout = OutageTimeout(order.lease_patience_seconds, clock=clock)

    def supervise(self) -> None:
        """Executes the run to its end and reports its exit."""
        signal_handlers = SignalHandlers()
        signal_handlers.subscribe(self._stop.set)
        try:
            with self._connection(trace_id="") as connection:
                spec = self._ask_for_spec(connection, signal_handlers)
            if spec is not None:
                with self._connection(trace_id=spec.trace_id) as connection:
                    self._execute(spec, connection, signal_handlers)
        finally:
            signal_handlers.close()

    @contextmanager
    def _connection(self, *, trace_id: str) -> Iterator[ControlPlaneConnection]:
        channel = open_channel(
            self._order.master,
            token=self._run.read_token,
            tls=ClientTls.from_json(self._order.tls),
            trace_id=trace_id,
        )
        try:
            yield ControlPlaneConnection(channel, ControlPlane(channel, self._order), self._outage_timeout)
        finally:
            channel.close()

    def _ask_for_spec(
        self, connection: ControlPlaneConnection, signal_handlers: SignalHandlers
    ) -> LaunchSpec | None:
        """Returns the launch spec; None if there is none, and the run has ended therefore."""
        try:
            spec = connection.outage_timeout.retry(
                lambda: self._launch_spec(connection.control), stop=self._stop, purpose="asking for work"
            )
        except ResoluteError as failure:
            _log.error("the launch spec could not be fetched: %s", failure)
            observations = Observations(preempted=signal_handlers.count > 0)
            if not observations.preempted:
                observations.start_failure = f"the run could not be started: {failure}"
            record = before_start(observations, clock=self._clock)
            record.write(self._run.exit_file)
            self._report(connection, record)
            return None
        write_atomically(self._run.path / SPEC_FILE, spec.SerializeToString(), mode=0o600)
        return spec

    def _launch_spec(self, control: ControlPlane) -> LaunchSpec:
        try:
            return control.launch_spec()
        except UnauthenticatedError:
            # A clock was set, or the machine suspended, before there was a lease: the caller asks again.
            token = control.renew_lease(pid=0).bearer_token
            write_atomically(self._run.token_file, token, mode=0o600)
            raise

    def _execute(
        self, spec: LaunchSpec, connection: ControlPlaneConnection, signal_handlers: SignalHandlers
    ) -> None:
        live = RunExecutor(
            Task(spec, self._order, self._run),
            connection,
            signal_handlers=signal_handlers,
            environ=self._environ,
            clock=self._clock,
        )
        try:
            # After an outage the control plane must not hear of the end before the last lines.
            self._report(connection, live.execute(), before_retry=live.wait_for_lines)
        finally:
            live.close()

    def _report(
        self,
        connection: ControlPlaneConnection,
        record: ExitRecord,
        *,
        before_retry: Callable[[], None] = lambda: None,
    ) -> None:
        _log.info("the run ended: %s", record)
        attempts = itertools.count()

        def report() -> None:
            if next(attempts):
                before_retry()
            connection.control.report_exit(record)

        try:
            connection.outage_timeout.retry(report, stop=self._stop, purpose="reporting the exit")
        except (AbortedError, NotFoundError) as failure:
            _log.info("the exit was not reported, the allocation is gone: %s", failure)
        except ResoluteError as failure:
            _log.warning(
                "the exit could not be reported, it is recorded in %s: %s", self._run.exit_file, failure
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one supervisor to its end.

    Returns:
        0, or ``EXIT_REFUSED`` when this run is not to be started.
    """
    parser = argparse.ArgumentParser(prog="resolute_launch.supervisor", description=__doc__)
    parser.add_argument("run_dir", help="directory with launch.json")
    parser.add_argument("--lock-fd", type=int, help="descriptor that holds the lock of the directory already")
    options = parser.parse_args(arguments)
    restore_limit(os.environ)
    run = RunDirectory(os.path.abspath(options.run_dir))  # noqa: PTH100  # resolves no links, unlike pathlib
    try:
        lock = _take_lock(run, options.lock_fd)
    except ConflictError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return EXIT_REFUSED
    try:
        _run_once(run)
    finally:
        lock.release()
    return 0


def _take_lock(run: RunDirectory, descriptor: int | None) -> RunLock:
    if descriptor is None:
        lock = RunLock.acquire(run.lock_file)
    else:
        lock = RunLock.inherit(descriptor, run.lock_file)
    if run.exit_file.exists() or run.child_file.exists():
        lock.release()
        raise ConflictError(f"the run of {run.path} was started before; a run is started once")
    return lock


def _run_once(run: RunDirectory) -> None:
    order = LaunchOrder.read(run.launch_file)
    order = replace(
        order,
        compat_path=order.compat_path or str(compat_path()),
        python=order.python or sys.executable,
    )
    start_log(order.log_level, run)
    run.prepare()
    identity = ProcessIdentity.of(os.getpid())
    write_json(run.supervisor_file, identity.to_json() if identity else {"pid": os.getpid()}, sync=True)
    if not run.read_token():
        write_atomically(run.token_file, order.token, mode=0o600)
    try:
        Supervisor(run, order, environ=os.environ, clock=SYSTEM_CLOCK).supervise()
    except Exception as failure:
        _log.exception("the supervisor failed")
        process_tree_of(run, ProcessIdentity.from_json(read_json(run.child_file))).end(timeout=END_SECONDS)
        if not run.exit_file.exists():
            text = f"the supervisor of the run failed ({failure}); {run.path} holds its log"
            ExitRecord(exit_code=1, failure=text, end_time=SYSTEM_CLOCK.time()).write(run.exit_file)
        raise


def start_log(level: str, run: RunDirectory) -> None:
    """Writes the log of this process to its standard error, which is a file of the run directory."""
    logging.basicConfig(
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s",
        handlers=[BoundedLogHandler(run.log_file)],
    )


if __name__ == "__main__":
    sys.exit(main())
