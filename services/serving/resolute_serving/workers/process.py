"""One worker process, from its owner's side."""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from resolute.errors import QuotaError, UnavailableError
from resolute_serving.workers.messages import Reply, Task

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Bounds of the tasks of a process.

    Attributes:
        cpu_seconds: Most processor time of one task; None for no limit.
        memory_bytes: Most address space of the process; None for no limit.
        growth_bytes: A task after which the process is larger by more is its last one; None for no limit.
            Python gives back little of what small objects took: a config of 1 MiB left 90 MiB.
    """

    cpu_seconds: int | None = 10
    memory_bytes: int | None = 2048 * _MIB
    growth_bytes: int | None = 64 * _MIB


class WorkerProcess:
    """A process that is started with its first task, and restarted after it has died.

    Args:
        limits: Bounds of its tasks.
    """

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        # Starting and killing exclude each other, so that nothing starts that should have been killed.
        self._lock = threading.Lock()
        self._closed = False

    def run(self, work: Any, arguments: tuple[Any, ...], stopped: threading.Event) -> Any:
        """Runs a function in the process, and waits for it.

        Args:
            work: A function of a module.
            arguments: Its arguments; they and the result can be pickled.
            stopped: Set before the process is killed in the middle of the task.

        Raises:
            QuotaError: The task needs more time or memory than it may have.
            UnavailableError: The process was killed, or died twice.
            Exception: What the function raised.
        """
        task = pickle.dumps(Task(work, arguments, self._limits.cpu_seconds, self._limits.growth_bytes))
        for _ in range(2):
            reply = self._ask(task, stopped)
            if reply is not None:
                try:
                    return self._result(reply)
                finally:
                    # Its error names the frames that it passes, and they would name it: the task would stay
                    # in memory until the collector comes by.
                    del reply
            if self._end() == -signal.SIGXCPU:
                raise QuotaError(
                    f"the call needs more than {self._limits.cpu_seconds} s of a processor; ask for less"
                )
        raise UnavailableError("a worker process died twice, perhaps for lack of memory; try again")

    def kill(self) -> None:
        """Ends the process at once; the next task starts another."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Ends the process for good, and fails the task that is under way. Idempotent."""
        with self._lock:
            self._closed = True
        self.kill()

    def _ask(self, task: bytes, stopped: threading.Event) -> Reply | None:
        try:
            with self._lock:
                if stopped.is_set() or self._closed:
                    raise UnavailableError("the service stops, or the caller gave up; try again")
                connection = self._started()
            connection.send_bytes(task)
            reply: Reply = pickle.loads(connection.recv_bytes())  # noqa: S301 - from this class's own process
        except (EOFError, OSError):
            return None
        return reply

    def _started(self) -> Connection:
        if self._connection is None:
            ours, theirs = socket.socketpair()
            command = [sys.executable, "-m", "resolute_serving.workers.child"]
            with theirs:
                number = theirs.fileno()
                self._process = subprocess.Popen(
                    [*command, str(number), str(self._limits.memory_bytes or 0)],
                    pass_fds=(number,),
                    stdin=subprocess.DEVNULL,
                )
            self._connection = Connection(ours.detach())
            # A process that has had nothing to do ends by itself, and would be a zombie until the next task.
            threading.Thread(target=self._process.wait, name="worker-exit", daemon=True).start()
        return self._connection

    def _result(self, reply: Reply) -> Any:
        if reply.last:
            self._end()
        if reply.out_of_memory:
            most = (self._limits.memory_bytes or 0) // _MIB
            raise QuotaError(f"the call needs more than {most} MiB of memory; ask for less")
        if reply.error is not None:
            try:
                raise reply.error
            finally:
                del reply
        return reply.value

    def wait(self) -> None:
        """Waits until a process that was ended is gone; no task may be under way."""
        self._end()

    def _end(self) -> int | None:
        """Forgets the process once it is gone, and returns its exit code."""
        with self._lock:
            process, connection = self._process, self._connection
            self._process = self._connection = None
        if connection is not None:
            connection.close()
        return process.wait() if process is not None else None
