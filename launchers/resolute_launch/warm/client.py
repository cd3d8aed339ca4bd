"""Requests a fork from the parked process of an experiment, and starts that process if it is missing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resolute.contracts.files.atomic_files import write_json
from resolute_launch.container.entrypoint_process import barrier_file, shell_command
from resolute_launch.container.startup_hook import HOOK
from resolute_launch.container.task import Task
from resolute_launch.warm import protocol
from resolute_launch.warm.code_changes import changed_variables
from resolute_launch.warm.entrypoints import (
    CannotForkError,
    first_imports,
    interpreter_of,
    python_command,
)
from resolute_launch.warm.environment import digest_of, shared_environment
from resolute_launch.warm.fork.limits import inherited
from resolute_launch.warm.fork.process import ForkedProcess, request_fork
from resolute_launch.warm.process_image import PADDING, placeholder

IDLE_SECONDS = 60.0
"""How long a parked process waits for the next run, unless configured."""
_READY_SECONDS = 120.0
_POLL_SECONDS = 0.02
_NOTED, _STARTING = "noted", "starting"
_AUTO = "auto"
_FORKED = (
    "warm start: this experiment's runs are forks of a process that has imported their modules;"
    " environment.warm_start: false starts each one anew"
)
_SLOT = "slot-"
_ATTEMPTS = 2


class WarmStart:
    """The warm start of one run.

    Args:
        task: The run's task.
        interrupted: Returns whether to stop waiting; once true, waiting ends with ``InterruptedError``.
        log_line: Adds a line to the log of the trial.
        idle_seconds: Seconds for which a parked process waits for the next run.
    """

    def __init__(
        self,
        task: Task,
        *,
        interrupted: Callable[[], bool],
        log_line: Callable[[str], None],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._task, self._interrupted, self._log_line = task, interrupted, log_line
        self._idle_seconds = idle_seconds
        self._automatic = False
        self._directory = Path(task.order.warm_directory) / task.spec.experiment_id

    def fork(
        self, argv: Sequence[str], *, environment: Mapping[str, str], stdout: int, stderr: int
    ) -> ForkedProcess | None:
        """Forks a process for the entrypoint, which waits to be released.

        Args:
            argv: What the entrypoint runs.
            environment: All of its environment.
            stdout: Descriptor that takes its output.
            stderr: Descriptor that takes its errors.

        Returns:
            The process; None if the run starts cold. Why it does, the log of the trial says once if the
            config asks for warm starts; if it leaves the choice, the first run that starts
            warm has a line about it in its log.

        Raises:
            InterruptedError: ``interrupted`` returned True.
        """
        if not self._task.order.warm_directory:
            return None
        # Slots share a parked process unless their runs differ, as by the GPUs that they see.
        hidden = {each.variable for each in self._task.secrets}
        visible = {name: value for name, value in environment.items() if name not in hidden}
        name = f"{self._task.spec.experiment_id}.{digest_of(visible, inherited())}"
        self._directory = Path(self._task.order.warm_directory) / name
        self._retire_others()
        wanted = (self._task.config.get("environment") or {}).get("warm_start")
        if not isinstance(wanted, Mapping) or not wanted.get("enabled", True):
            return None
        self._automatic = wanted.get("enabled") == _AUTO
        if self._automatic and (self._task.distributed or not self._has_siblings()):
            return None
        try:
            return self._fork(wanted, argv, environment, (stdout, stderr))
        except CannotForkError as reason:
            self._say_cold(f"warm start: this experiment's runs start cold: {reason}")
        except OSError as failure:
            if isinstance(failure, InterruptedError):
                raise
            self._say_cold(f"warm start: this run starts cold: {failure}")
        return None

    def _fork(
        self,
        wanted: Mapping[str, Any],
        argv: Sequence[str],
        environment: Mapping[str, str],
        output: tuple[int, int],
    ) -> ForkedProcess | None:
        work = self._task.run.work
        # A parked process outlives the run that was given them.
        if any(each.variable for each in self._task.secrets):
            raise CannotForkError("its secrets are variables; name them alone, and read their files")
        # Its overlay is its own, and a parked process has imported from the environment below.
        if (work / HOOK).exists():
            raise CannotForkError(f"its code has a {HOOK}")
        command = python_command(argv)
        python = interpreter_of(command, python=self._task.order.python, environment=environment, work=work)
        preload = list(wanted.get("preload") or ())
        modules = preload or first_imports(command, work)
        changes = changed_variables(work) if self._automatic else []
        order = {
            "modules": modules,
            "later": not preload,
            # What functions import after they have changed a variable is not known from the run before.
            "learns": not preload and not changes,
            "changes": changes,
            "owner": os.getppid(),
            "idle_seconds": self._idle_seconds,
        }
        process = self._request(python, order, environment, output)
        cold_because = process.prepare(
            {
                "work": str(work),
                "gate": str(barrier_file(self._task.run)),
                "run": str(self._task.run.path),
                "shell": list(shell_command(self._task.run)),
                "words": command.words,
                "script": command.script,
                "module": command.module,
                "arguments": command.arguments,
                "environment": dict(environment),
                "limits": inherited(),
            }
        )
        if cold_because:
            self._say_cold(f"warm start: this run starts cold: {cold_because}")
        elif self._automatic:
            self._say(_FORKED)
        return process

    def _has_siblings(self) -> bool:
        """Whether the experiment has more trials: one alone would import as much, and keep the memory."""
        return (self._task.config.get("searcher") or {}).get("name") != "single"

    def _request(
        self, python: str, order: Mapping[str, Any], environment: Mapping[str, str], output: tuple[int, int]
    ) -> ForkedProcess:
        """Asks for a fork, again if the parked process was about to end, or its directory to be removed."""
        for _ in range(_ATTEMPTS):
            try:
                self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                for number in self._task.order.slot_ids:
                    (self._directory / f"{_SLOT}{number}").touch()
                connection = protocol.connect(self._directory) or self._start(python, order, environment)
            except FileNotFoundError:
                continue
            process = request_fork(connection, output)
            if process is not None:
                return process
        raise OSError("the parked process is ending")

    def _start(self, python: str, order: Mapping[str, Any], environment: Mapping[str, str]) -> socket.socket:
        """Starts the parked process, unless another run does so now, and connects to it when it is ready."""
        deadline = time.monotonic() + _READY_SECONDS
        with self._turn(deadline):
            connection = protocol.connect(self._directory)
            if connection is not None:
                return connection
            write_json(self._directory / protocol.ORDER, order)
            process = self._park(python, environment)
            while connection is None:
                ended = process.poll() is not None
                connection = protocol.connect(self._directory)
                # One that another run has left starting has the lock, and is waited for.
                if connection is None and ended and not _locked(self._directory):
                    raise CannotForkError(self._refusal())
                if connection is None:
                    self._pause(deadline)
        # It outlives this process on purpose, and its object is not to complain about that.
        process.returncode = 0
        return connection

    @contextlib.contextmanager
    def _turn(self, deadline: float) -> Iterator[None]:
        """Holds the lock of the run that starts the parked process; the others wait for it."""
        with _starting(self._directory) as descriptor:
            while not _lock(descriptor):
                self._pause(deadline)
            refused = self._directory / protocol.REFUSED
            if refused.exists():
                raise CannotForkError(refused.read_text())
            yield

    def _pause(self, deadline: float) -> None:
        """Waits a moment for the parked process.

        Raises:
            CannotForkError: The deadline is over.
            InterruptedError: The run is to end.
        """
        if time.monotonic() > deadline:
            raise CannotForkError(f"its imports took more than {_READY_SECONDS:g} s")
        if self._interrupted():
            raise InterruptedError
        time.sleep(_POLL_SECONDS)

    def _park(self, python: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self._directory / protocol.LOG).open("ab") as log:
            return subprocess.Popen(
                [python, "-m", "resolute_launch.warm", str(self._directory), " " * PADDING],
                cwd=self._directory,
                env={**shared_environment(environment), **placeholder()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _refusal(self) -> str:
        refused = self._directory / protocol.REFUSED
        if refused.exists():
            return refused.read_text()
        return f"its parked process ended; {self._directory / protocol.LOG} says why"

    def _say_cold(self, text: str) -> None:
        if not self._automatic:
            self._say(text)

    def _say(self, text: str) -> None:
        """Adds a line to the log of the trial, if no run has written it before."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._directory / _NOTED).touch(exist_ok=False)
        except FileExistsError:
            return
        except OSError:
            # Another run may be removing the directory; then the line is written once more.
            pass
        self._log_line(text)

    def _retire_others(self) -> None:
        """Ends idle parked processes on these slots that are not for this run: it may need their memory."""
        try:
            others = [path for path in self._directory.parent.iterdir() if path != self._directory]
        except OSError:
            return
        mine = {f"{_SLOT}{number}" for number in self._task.order.slot_ids}
        for other in others:
            if mine.isdisjoint(path.name for path in other.glob(f"{_SLOT}*")):
                continue
            connection = protocol.connect(other)
            if connection is not None:
                with connection, contextlib.suppress(OSError):
                    connection.sendall(protocol.QUIT)
                continue
            with contextlib.suppress(OSError), _starting(other) as descriptor:
                if _lock(descriptor) and not _locked(other):
                    shutil.rmtree(other, ignore_errors=True)


def _locked(directory: Path) -> bool:
    """Whether a directory has a parked process, ready or not."""
    try:
        descriptor = os.open(directory / protocol.LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _starting(directory: Path) -> Iterator[int]:
    """Opens the lock for starting the parked process of a directory, or for removing the directory."""
    with (directory / _STARTING).open("wb") as file:
        yield file.fileno()


def _lock(descriptor: int) -> bool:
    """Takes a lock until its file is closed; False if somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
