"""Stops a command when a worker dies: ``python -m resolute_launch.ranks.pid_server ADDR NUM_WORKERS CMD...``.

It is for the user's own launchers that do not detect this. Each worker is started through ``pid_client
ADDR``. The layers of this package do this by themselves.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Sequence

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.processes import ProcessIdentity, ProcessTree
from resolute_launch.processes.child_process import SignalForwarder, start_child
from resolute_launch.processes.shutdown_sequence import ShutdownSequence, ShutdownStep
from resolute_launch.ranks.pid_address import PidAddress
from resolute_launch.ranks.pid_client import GOODBYE

FAILED_AFTER_SIGNAL = 78
"""Exit code where the command ended well although a worker failed and it was signalled."""
FAILED = 79
"""Exit code where the command ended well although a worker failed."""
MARK_VARIABLE = "RESOLUTE_PID_SERVER"
"""Marks every process of the command."""
_END_SECONDS = 30.0
_POLL_SECONDS = 0.1


def parse_signal(text: str) -> signal.Signals | None:
    """Reads ``SIGTERM``, ``TERM`` or another name of a signal; None stands for ``WAIT``.

    Raises:
        ArgumentTypeError: There is no such signal.
    """
    if text == "WAIT":
        return None
    try:
        return signal.Signals[text if text.startswith("SIG") else f"SIG{text}"]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither WAIT nor the name of a signal") from None


class Workers:
    """The workers by their connections. The kernel closes a connection however its worker ends.

    Args:
        listener: Socket to which they connect.
        expected: Number of workers.
    """

    def __init__(self, listener: socket.socket, expected: int) -> None:
        self._expected = expected
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._received: dict[socket.socket, bytes] = {}
        self._finished = 0
        self.failed = False
        """Whether one of them ended without reporting success."""

    @property
    def all_finished(self) -> bool:
        """Whether every one of them has ended well."""
        return self._finished >= self._expected

    def poll(self, seconds: float) -> None:
        """Handles their connections and messages; waits at most this long for one."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listener:
                connection, _ = self._listener.accept()
                self._received[connection] = b""
                self._selector.register(connection, selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                self._receive(key.fileobj)

    def _receive(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(64)
        except ConnectionError:
            data = b""
        if data:
            self._received[connection] += data
            return
        self._selector.unregister(connection)
        connection.close()
        if self._received.pop(connection).endswith(GOODBYE):
            self._finished += 1
        else:
            self.failed = True


class Watch:
    """The command, until it has ended.

    Args:
        process: The command.
        workers: Its workers.
        family: The command's descendants.
        options: The command line.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        workers: Workers,
        *,
        family: ProcessTree,
        options: argparse.Namespace,
    ) -> None:
        self._process, self._workers, self._family, self._options = process, workers, family, options
        self._shutdown_sequence = ShutdownSequence(SYSTEM_CLOCK, grace=options.grace_period)
        self._decided = False
        self._signalled = False

    def wait(self) -> int:
        """Waits for the end of the command; returns the exit code."""
        while self._process.poll() is None:
            self._workers.poll(_POLL_SECONDS)
            if self._workers.failed or self._workers.all_finished:
                self._decide(self._options.on_fail if self._workers.failed else self._options.on_exit)
            if self._shutdown_sequence.due() is ShutdownStep.KILL:
                self._family.end(timeout=_END_SECONDS)
        # A worker may have ended with it.
        self._workers.poll(0)
        if self._workers.failed:
            self._family.end(timeout=_END_SECONDS)
        code = self._process.returncode
        if not code and self._workers.failed:
            return FAILED_AFTER_SIGNAL if self._signalled else FAILED
        return 128 - code if code < 0 else code

    def _decide(self, number: signal.Signals | None) -> None:
        if self._decided:
            return
        self._decided = True
        if number is None:
            return
        self._signalled = True
        if self._options.signal_children:
            for member in self._family.members():
                member.send(number)
        else:
            self._process.send_signal(number)
        self._shutdown_sequence.kill_in(self._options.grace_period)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parse(arguments)
    try:
        listener = options.address.listen()
    except OSError as failure:
        sys.stderr.write(f"pid_server cannot listen at {options.address.text}: {failure.strerror}\n")
        return 1
    mark = uuid.uuid4().hex
    environ = {**os.environ, MARK_VARIABLE: mark}
    with listener:
        forwarder = SignalForwarder()
        try:
            process = start_child(options.command, environ=environ, parent_death_signal=signal.SIGTERM)
        except OSError as failure:
            sys.stderr.write(f"cannot run {options.command[0]!r}: {failure.strerror}\n")
            return 127
        forwarder.attach(process)
        family = ProcessTree(
            leader=ProcessIdentity.of(process.pid), variable=f"{MARK_VARIABLE}={mark}".encode()
        )
        workers = Workers(listener, options.workers)
        return Watch(process, workers, family=family, options=options).wait()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="determined.exec.pid_server", description=__doc__)
    on = "what the command gets when {}: the name of a signal, or WAIT"
    parser.add_argument(
        *("-x", "--on-fail"), type=parse_signal, default="SIGTERM", help=on.format("a worker has failed")
    )
    parser.add_argument(
        *("-e", "--on-exit"), type=parse_signal, default="WAIT", help=on.format("all workers have ended well")
    )
    parser.add_argument(
        "--grace-period", type=float, default=3.0, metavar="SECONDS", help="then it is killed (3)"
    )
    parser.add_argument(
        "--signal-children", action="store_true", help="send the signal to all that came of the command"
    )
    parser.add_argument("address", metavar="ADDR", type=PidAddress, help="where workers connect")
    parser.add_argument("workers", metavar="NUM_WORKERS", type=int, help="how many there are")
    parser.add_argument("command", metavar="CMD...", nargs=argparse.REMAINDER, help="what to run")
    options = parser.parse_args(arguments)
    options.command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not options.command:
        parser.error("empty command is not allowed")
    return options


if __name__ == "__main__":
    sys.exit(main())
