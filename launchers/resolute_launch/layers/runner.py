"""Runs a plan: starts the launcher, forwards signals, kills leftover processes, reports the first failure."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.processes import ProcessIdentity, ProcessTree
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.external_resources import remove
from resolute_launch.layers.plan import LaunchPlan
from resolute_launch.processes.child_process import start_child
from resolute_launch.processes.shutdown_sequence import ShutdownSequence, ShutdownStep
from resolute_launch.ranks.environment_file import environment_file
from resolute_launch.ranks.failures import RankEnd, clear_rank_ends, describe_exit, first_rank_failure

MARK_VARIABLE = "RESOLUTE_LAUNCH"
"""Marks every process of one launch, wherever its launcher may have put it."""
STRAGGLER_SECONDS = 60.0
"""Seconds a launcher has to stop the other ranks after one has failed."""
END_SECONDS = 30.0
"""Seconds until killed processes must be gone."""
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_POLL_SECONDS = 0.2


def run(plan: LaunchPlan, *, environ: Mapping[str, str], clock: Clock = SYSTEM_CLOCK) -> int:
    """Carries out a plan, in the main thread.

    Args:
        plan: What is to be done.
        environ: What the layer was started with.
        clock: Measures how long the launcher may take.

    Returns:
        0 when the launcher succeeded; else the exit code of the rank that failed first, or the launcher's own
        if no rank wrote anything; 128 + n where signal n ended it; 127 when the program does not exist.
    """
    for path, content in plan.files.items():
        write_atomically(path, content)
    variables = plan.environ(environ)
    if plan.replaces_process:
        return _become(plan, variables)
    handed = environment_file(variables) if plan.environment_by_file else contextlib.nullcontext(variables)
    try:
        with handed as visible:
            return _Launch(plan, environ=visible, clock=clock).execute()
    except OSError as failure:
        return _cannot_run(plan, failure)


def _become(plan: LaunchPlan, environ: Mapping[str, str]) -> int:
    sys.stdout.flush()
    try:
        os.execvpe(plan.argv[0], plan.argv, environ)  # noqa: S606  # the point of a launcher
    except OSError as failure:
        return _cannot_run(plan, failure)


def _cannot_run(plan: LaunchPlan, failure: OSError) -> int:
    sys.stderr.write(f"cannot run {plan.argv[0]!r}: {failure.strerror}\n")
    return 127


class _Launch:
    """One launcher's process and all its descendants."""

    def __init__(self, plan: LaunchPlan, *, environ: Mapping[str, str], clock: Clock) -> None:
        self._plan = plan
        mark = uuid.uuid4().hex
        self._environ = {**environ, MARK_VARIABLE: mark}
        self._mark = f"{MARK_VARIABLE}={mark}".encode()
        self._clock = clock
        self._shutdown_sequence = ShutdownSequence(clock, grace=plan.grace_seconds)
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[signal.Signals] = []
        self._asked_to_end = False
        run_directory = environ.get("RESOLUTE_RUN_DIR")
        self._run_directory = RunDirectory(run_directory) if run_directory else None
        self._failure: RankEnd | None = None

    def execute(self) -> int:
        with self._passing_signals_on():
            self._clear_failures()
            self._record_external_resources()
            process = start_child(self._plan.argv, environ=self._environ, parent_death_signal=signal.SIGTERM)
            identity = ProcessIdentity.of(process.pid)
            family = ProcessTree(leader=identity, variable=self._mark)
            self._process = process
            for number in self._early:
                self._forward_signal(number)
            code = self._wait_for_end(process, family)
            self._wait_for_group(family)
            self._remove_external_resources()
        return self._exit_code(128 - code if code < 0 else code)

    @contextmanager
    def _passing_signals_on(self) -> Iterator[None]:
        def take(number: int, _frame: object) -> None:
            self._take(signal.Signals(number))

        # A dump of stacks, asked for with SIGUSR1, is for ranks; their launchers would die of it.
        previous = {number: signal.signal(number, take) for number in _ENDING}
        previous |= {
            number: signal.signal(number, lambda *_: None) for number in (signal.SIGUSR1, signal.SIGUSR2)
        }
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _take(self, number: signal.Signals) -> None:
        self._asked_to_end = True
        self._shutdown_sequence.kill_in(self._plan.grace_seconds)
        if self._process is None:
            self._early.append(number)
        else:
            self._forward_signal(number)

    def _forward_signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        # It is not reaped yet, so its process ID cannot have been reused.
        with contextlib.suppress(ProcessLookupError):
            if self._plan.signals_process_group:
                os.killpg(process.pid, number)
            else:
                os.kill(process.pid, number)

    def _wait_for_end(self, process: subprocess.Popen[bytes], family: ProcessTree) -> int:
        killed = False
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                # A launcher whose ranks are killed before it may end with 0 in between.
                return process.wait(_POLL_SECONDS) or (-signal.SIGKILL if killed else 0)
            if self._failure is None:
                self._failure = self._first_rank_failure()
                if self._failure is not None and not self._asked_to_end and not self._plan.restarts_ranks:
                    self._shutdown_sequence.terminate_in(STRAGGLER_SECONDS)
            step = self._shutdown_sequence.due()
            if step is ShutdownStep.TERMINATE:
                self._write_line("a rank has failed and its launcher does not end the others: ending them")
                self._forward_signal(signal.SIGTERM)
            elif step is ShutdownStep.KILL:
                killed = True
                family.end(timeout=END_SECONDS)

    def _wait_for_group(self, family: ProcessTree) -> None:
        """Waits for ranks that were asked to stop and outlived their launcher; kills all others."""
        while self._asked_to_end and not self._shutdown_sequence.exhausted and family.members():
            time.sleep(_POLL_SECONDS)
            self._shutdown_sequence.due()
        family.end(timeout=END_SECONDS)

    def _record_external_resources(self) -> None:
        """Records the files for the clean-up of the run, in case this process is killed."""
        if self._run_directory is not None:
            for path in self._plan.external_resources:
                self._run_directory.record_external_resource(path)

    def _remove_external_resources(self) -> None:
        for path in self._plan.external_resources:
            remove(path)

    def _clear_failures(self) -> None:
        if self._run_directory is not None:
            clear_rank_ends(self._run_directory)

    def _first_rank_failure(self) -> RankEnd | None:
        if self._run_directory is None:
            return None
        return first_rank_failure(self._run_directory)

    def _exit_code(self, code: int) -> int:
        if not code:
            # Ranks that failed were started again, or were not needed.
            self._clear_failures()
            return 0
        first = self._first_rank_failure()
        if first is None:
            return code
        output = f":\n{first.stderr_tail}" if first.stderr_tail else ""
        self._write_line(f"rank {first.rank} failed first; it {describe_exit(first.exit_code)}{output}")
        return first.exit_code

    @staticmethod
    def _write_line(text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
