"""Asks the parked process of an experiment for a fork, and starts that process first."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolute.contracts.files.atomic_files import write_json
from resolute.contracts.processes import ProcessIdentity
from resolute_launch.container.entrypoint_process import HOOK, barrier_file, shell_command
from resolute_launch.container.task import Task
from resolute_launch.warm import protocol
from resolute_launch.warm.entrypoints import (
    CannotForkError,
    first_imports,
    interpreter_of,
    python_command,
)
from resolute_launch.warm.environment import digest_of, shared_environment
from resolute_launch.warm.limits import inherited
from resolute_launch.warm.process_image import PADDING, placeholder

IDLE_SECONDS = 60.0
"""How long a parked process waits for the next run."""
_READY_SECONDS = 120.0
_POLL_SECONDS = 0.02
_SAID, _STARTING = "said", "starting"
_SLOT = "slot-"
_ATTEMPTS = 2


class WarmStart:
    """The warm start of one run.

    Args:
        task: The run's task.
        interrupted: Asked while this waits; once true, waiting ends with ``InterruptedError``.
        log_line: Adds a line to the log of the trial.
    """

    def __init__(
        self, task: Task, *, interrupted: Callable[[], bool], log_line: Callable[[str], None]
    ) -> None:
        self._task, self._interrupted, self._log_line = task, interrupted, log_line
        self._all = Path(task.order.warm_directory)
        self._experiment = f"{task.spec.experiment_id}."
        self._directory = self._all / self._experiment

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
            The process; None if the run starts cold. Why it does, the log of the trial says once.

        Raises:
            InterruptedError: ``interrupted`` said so.
        """
        if not self._task.order.warm_directory:
            return None
        # Slots share a parked process unless their runs differ, as by the GPUs that they see.
        self._directory = self._all / f"{self._experiment}{digest_of(environment, inherited())}"
        self._retire_others()
        wanted = (self._task.config.get("environment") or {}).get("warm_start")
        if not isinstance(wanted, Mapping) or not wanted.get("enabled", True):
            return None
        try:
            return self._fork(wanted, argv, environment, (stdout, stderr))
        except CannotForkError as reason:
            self._say(f"warm start: this experiment's runs start cold: {reason}")
        except OSError as failure:
            if isinstance(failure, InterruptedError):
                raise
            self._say(f"warm start: this run starts cold: {failure}")
        return None

    def _fork(
        self,
        wanted: Mapping[str, Any],
        argv: Sequence[str],
        environment: Mapping[str, str],
        output: tuple[int, int],
    ) -> ForkedProcess | None:
        work = self._task.run.work
        command = python_command(argv)
        python = interpreter_of(command, python=self._task.order.python, environment=environment, work=work)
        if (work / HOOK).exists():
            raise CannotForkError(f"its code has a {HOOK}")
        preload = list(wanted.get("preload") or ())
        modules = preload or first_imports(command, work)
        order = {
            "modules": modules,
            "learns": not preload,
            "owner": os.getppid(),
            "idle_seconds": IDLE_SECONDS,
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
            self._say(f"warm start: this run starts cold: {cold_because}")
        return process

    def _request(
        self, python: str, order: Mapping[str, Any], environment: Mapping[str, str], output: tuple[int, int]
    ) -> ForkedProcess:
        """Asks for a fork, a second time if the parked process was about to end."""
        for number in self._task.order.slot_ids:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._directory / f"{_SLOT}{number}").touch()
        for _ in range(_ATTEMPTS):
            connection = protocol.connect(self._directory) or self._start(python, order, environment)
            process = _request(connection, output)
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
                if connection is None and ended:
                    raise CannotForkError(self._refusal())
                if connection is None:
                    self._pause(deadline)
        # It outlives this process on purpose, and its object is not to complain about that.
        process.returncode = 0
        return connection

    @contextlib.contextmanager
    def _turn(self, deadline: float) -> Iterator[None]:
        """Holds the lock of whoever starts the parked process; the others wait for it."""
        with (self._directory / _STARTING).open("wb") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
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

    def _say(self, text: str) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            (self._directory / _SAID).touch(exist_ok=False)
            self._log_line(text)

    def _retire_others(self) -> None:
        """Ends idle parked processes of other experiments on these slots: their memory is this run's now."""
        try:
            others = [one for one in self._all.iterdir() if not one.name.startswith(self._experiment)]
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
            elif not _locked(other):
                shutil.rmtree(other, ignore_errors=True)


@dataclass(slots=True)
class ForkedProcess:
    """A fork of a parked process, which is its parent and tells how it ended."""

    pid: int
    """Process id of the fork; also of its group and session."""
    _connection: socket.socket
    _control: socket.socket
    _exit_code: int | None = None

    def prepare(self, start: Mapping[str, Any]) -> str:
        """Tells the fork what to run.

        Returns:
            Why it starts cold; empty if it does not.

        Raises:
            OSError: It has ended.
        """
        protocol.send_message(self._control, start)
        answer = protocol.receive_message(self._control)
        if answer is None:
            self.reap()
            raise OSError("the fork of the parked process ended before it began")
        return str(answer["cold"])

    def release(self) -> None:
        """Lets it begin; if it has ended already, the wait for it tells how."""
        with contextlib.suppress(OSError):
            self._control.sendall(b"go\n")
        self._control.close()

    def wait_without_reaping(self) -> None:
        """Waits until it has ended; its process id stays taken."""
        self._connection.settimeout(None)
        answer = None
        with contextlib.suppress(OSError):
            answer = protocol.receive_message(self._connection)
        if answer is None:
            # The parked process is gone, and the kernel ends its forks with it.
            _wait_for_end(self.pid)
            answer = {"exit_code": 137}
        self._exit_code = int(answer["exit_code"])

    def reap(self) -> int:
        """Frees its process id.

        Returns:
            Its exit code; 128 + n when signal n ended it.
        """
        self._control.close()
        if self._exit_code is None:
            self.wait_without_reaping()
        with contextlib.suppress(OSError):
            self._connection.sendall(protocol.DONE)
        self._connection.close()
        assert self._exit_code is not None
        return self._exit_code


def _request(connection: socket.socket, output: tuple[int, int]) -> ForkedProcess | None:
    """Asks for a fork; None if the parked process is ending."""
    ours, theirs = socket.socketpair()
    ours.settimeout(protocol.ANSWER_SECONDS)
    with theirs:
        socket.send_fds(connection, [protocol.FORK], [*output, theirs.fileno()])
    answer = protocol.receive_message(connection)
    if answer is None:
        connection.close()
        ours.close()
        return None
    return ForkedProcess(int(answer["pid"]), connection, ours)


def _wait_for_end(pid: int) -> None:
    identity = ProcessIdentity.of(pid)
    while identity is not None and identity.is_alive():
        time.sleep(_POLL_SECONDS)


def _locked(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / protocol.LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
