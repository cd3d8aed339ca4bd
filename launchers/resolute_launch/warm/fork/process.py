"""The supervisor's view of a fork of a parked process."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resolute.contracts.processes import ProcessIdentity
from resolute_launch.warm import protocol

_POLL_SECONDS = 0.02


@dataclass(slots=True)
class ForkedProcess:
    """A fork of a parked process. The parked process is its parent, and reports its exit."""

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
        answer = None
        with contextlib.suppress(ConnectionError):
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


def request_fork(connection: socket.socket, output: tuple[int, int]) -> ForkedProcess | None:
    """Asks for a fork.

    Args:
        connection: To the parked process.
        output: Descriptors that take the fork's output and its errors.

    Returns:
        The fork, which waits for what to run; None if the parked process is ending.
    """
    ours, theirs = socket.socketpair()
    ours.settimeout(protocol.ANSWER_SECONDS)
    with contextlib.ExitStack() as unless_forked:
        unless_forked.callback(connection.close)
        unless_forked.callback(ours.close)
        answer = None
        # A parked process that ends before it reads the request resets the connection.
        with theirs, contextlib.suppress(ConnectionError):
            socket.send_fds(connection, [protocol.FORK], [*output, theirs.fileno()])
            theirs.close()
            answer = protocol.receive_message(connection)
        if answer is None:
            return None
        unless_forked.pop_all()
    return ForkedProcess(int(answer["pid"]), connection, ours)


def _wait_for_end(pid: int) -> None:
    identity = ProcessIdentity.of(pid)
    while identity is not None and identity.is_alive():
        time.sleep(_POLL_SECONDS)
