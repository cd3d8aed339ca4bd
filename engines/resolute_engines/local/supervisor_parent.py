"""Starts supervisors as forks of one process that has imported their modules.

That process starts with the engine, so that its imports are done before the first supervisor. If it has
ended, the next supervisor starts it again. It ends with this process; supervisors outlive both.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from resolute.contracts.run.directory import RunDirectory
from resolute_engines.kit.run_directories.environment import supervisor_environment

_MODULE = "resolute_launch.supervisor_parent"
_ANSWER_SECONDS = 60.0
"""How long an answer may take: the first waits for the imports, on a machine that may be busy."""
_END_SECONDS = 5.0
_ROOM_FOR_COMMANDS = 4096
_MAX_ANSWER_BYTES = 4096
_LOG_TAIL = 2000


class SupervisorParent:
    """The process of which supervisors are forks. Its methods may be called from any thread.

    Args:
        log: File for the output of the process. It is truncated when the process starts.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._mutex = threading.Lock()
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._closed = False

    def start(self) -> None:
        """Starts the process, unless it was started; its imports go on after the return."""
        # A failure is reported when the first supervisor is started, which tries again.
        with self._mutex, contextlib.suppress(OSError):
            self._running = self._running or self._start()

    def fork(self, run: RunDirectory, lock: int) -> int:
        """Starts the supervisor of a run, in a session of its own.

        Args:
            run: Its run directory; its output is appended to the log there.
            lock: Descriptor that holds the lock of the directory.

        Returns:
            Its process id.

        Raises:
            OSError: It cannot be started.
        """
        with self._mutex, run.log_file.open("ab") as log:
            descriptors = [lock, log.fileno()]
            try:
                if not self._send(run, descriptors):
                    # It has ended. Nothing reached it, so nothing was started.
                    self._stop()
                    self._send(run, descriptors)
                return self._receive()
            except OSError:
                # An answer that comes later must not be taken for that to the next request.
                self._stop()
                raise

    def close(self) -> None:
        """Ends the process; its supervisors continue. Later calls of ``fork`` fail."""
        with self._mutex:
            self._closed = True
            self._stop()

    def _send(self, run: RunDirectory, descriptors: list[int]) -> bool:
        """Sends a request; returns False if the process has ended."""
        if self._running is None:
            self._running = self._start()
        process, connection = self._running
        if process.poll() is not None:
            return False
        try:
            socket.send_fds(connection, [os.fsencode(run.path)], descriptors)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._closed:
            raise OSError("the engine was closed")
        self._log.parent.mkdir(parents=True, exist_ok=True)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_ANSWER_SECONDS)
        with theirs, self._log.open("wb") as log:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", _MODULE, str(theirs.fileno()), " " * _ROOM_FOR_COMMANDS],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=supervisor_environment(os.environ),
                    start_new_session=True,
                    pass_fds=(theirs.fileno(),),
                )
            except OSError:
                ours.close()
                raise
        return process, ours

    def _receive(self) -> int:
        assert self._running is not None
        _process, connection = self._running
        answer = b""
        with contextlib.suppress(ConnectionResetError):  # it ended before it read the request
            answer = connection.recv(_MAX_ANSWER_BYTES)
        if not answer:
            output = self._log.read_text(errors="replace")[-_LOG_TAIL:].strip()
            raise OSError(f"the process that forks supervisors ended; {self._log} says:\n{output}")
        content = json.loads(answer)
        if "pid" not in content:
            raise OSError(f"no supervisor could be forked: {content.get('error')}")
        return int(content["pid"])

    def _stop(self) -> None:
        if self._running is None:
            return
        process, connection = self._running
        self._running = None
        connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
            return
        process.kill()
        process.wait()
