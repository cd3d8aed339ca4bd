"""The parked process: imports modules, then forks on request. It has one thread and no event loop.

It ends after an idle time, when its owner has ended, or on request. It never ends before its last fork,
because only it can read the exit status of its forks.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from resolute_launch.warm import protocol
from resolute_launch.warm.fork.script import AT_EXIT, ForkedRun, Origin
from resolute_launch.warm.preloading import import_for_forks

_POLL_SECONDS = 1.0
_ENDING_SECONDS, _LOCK_POLL_SECONDS = 5.0, 0.02
_HANDLED = (signal.SIGTERM, signal.SIGINT)


def park(folder: str) -> None:
    """Runs the parked process of a directory to its end; in a fork, runs its script."""
    directory = Path(folder)
    lock = os.open(directory / protocol.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _hold(lock, directory)
    atexit.register(_call_last)
    order = json.loads((directory / protocol.ORDER).read_text())
    path, environment = tuple(sys.path), dict(os.environ)
    refusal = import_for_forks(order["modules"], changed=order["changes"], with_later=bool(order["later"]))
    if refusal:
        (directory / protocol.REFUSED).write_text(refusal)
        sys.exit(refusal)
    descriptors = frozenset(int(name) for name in os.listdir("/proc/self/fd")) - {lock}  # noqa: PTH208
    origin = Origin(
        directory=directory,
        environment=environment,
        path=path,
        descriptors=descriptors,
        modules=frozenset(sys.modules),
        pid=os.getpid(),
        learns=bool(order["learns"]),
        signal_handlers={number: signal.getsignal(number) for number in _HANDLED},
    )
    forked = _Parked(directory, origin, order=order, lock=lock).serve()
    if forked is not None:
        forked.run()


def _hold(lock: int, directory: Path) -> None:
    """Takes the lock of a directory; one that had it before may be about to end."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"{directory} has a parked process already")
            time.sleep(_LOCK_POLL_SECONDS)


def _call_last() -> None:
    for call in AT_EXIT:
        call()


class _Parked:
    """Serves the socket of a directory."""

    def __init__(self, directory: Path, origin: Origin, *, order: dict[str, Any], lock: int) -> None:
        self._directory = directory
        self._lock: int | None = lock
        self._origin = origin
        self._idle_seconds = float(order["idle_seconds"])
        self._forks: dict[int, tuple[int, socket.socket]] = {}
        self._ended_forks: dict[int, tuple[int, socket.socket]] = {}
        self._used_at = time.monotonic()
        self._leaving = False
        self._learning = origin.learns
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._owner = _pidfd(int(order["owner"]))

    def serve(self) -> ForkedRun | None:
        """Serves until it is time to leave; returns the run in each fork, and None in the parked process."""
        for number in _HANDLED:
            signal.signal(number, self._leave)
        with protocol.address(self._directory) as path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108 - a short path, not one to keep
            self._listener.bind(f"{path}.new")
            self._listener.listen(16)
            os.rename(f"{path}.new", path)  # noqa: PTH104 - likewise
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        if self._owner is None:
            self._leaving = True
        else:
            self._selector.register(self._owner, selectors.EVENT_READ, self._leave)
        while not self._over():
            if self._leaving:
                self._release_directory()
            events = self._selector.select(_POLL_SECONDS)
            # New requests last: what the run before has taught is imported first.
            for key, _ in sorted(events, key=lambda event: event[0].fileobj is self._listener):
                forked: ForkedRun | None = key.data(key.fd)
                if forked is not None:
                    return forked
        self._release_directory()
        return None

    def _release_directory(self) -> None:
        """Lets a successor have the directory, even while the last forks of this process run."""
        if self._lock is None:
            return
        with contextlib.suppress(FileNotFoundError):
            (self._directory / protocol.SOCKET).unlink()
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        self._lock = None

    def _over(self) -> bool:
        if self._forks or self._ended_forks:
            self._used_at = time.monotonic()
            return False
        return self._leaving or time.monotonic() - self._used_at > self._idle_seconds

    def _leave(self, *_: object) -> None:
        self._leaving = True
        if self._owner is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self._owner)

    def _accept(self, _: int) -> ForkedRun | None:
        connection, _address = self._listener.accept()
        connection.settimeout(protocol.ANSWER_SECONDS)
        try:
            request, descriptors, _flags, _from = socket.recv_fds(connection, 64, 3)
        except OSError:
            request, descriptors = b"", []
        if request != protocol.FORK or len(descriptors) != 3 or self._leaving:
            # Its forks on other slots need it still.
            self._leaving = self._leaving or (request == protocol.QUIT and not self._forks)
            if self._leaving:
                # First, because a client that is refused asks again at once.
                self._release_directory()
            connection.close()
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        return self._fork(connection, descriptors)

    def _fork(self, connection: socket.socket, descriptors: list[int]) -> ForkedRun | None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            self._close(connection)
            return ForkedRun(
                self._origin, output=descriptors[0], errors=descriptors[1], control=descriptors[2]
            )
        for descriptor in descriptors:
            os.close(descriptor)
        process = _pidfd(pid)
        assert process is not None  # its process id is taken until it is waited for
        self._forks[process] = (pid, connection)
        self._selector.register(process, selectors.EVENT_READ, self._ended)
        with contextlib.suppress(OSError):
            protocol.send_message(connection, {"pid": pid})
        return None

    def _close(self, connection: socket.socket) -> None:
        """Closes in a fork what is the parked process's alone."""
        self._selector.close()
        others = [*self._forks.values(), *self._ended_forks.values()]
        for descriptor in (self._listener, connection, *(other for _, other in others)):
            descriptor.close()

    def _ended(self, process: int) -> None:
        """Tells how a fork ended; its process id stays taken until the supervisor is done with it."""
        pid, connection = self._forks.pop(process)
        self._selector.unregister(process)
        os.close(process)
        result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert result is not None  # it has ended
        code = result.si_status if result.si_code == os.CLD_EXITED else 128 + result.si_status
        with contextlib.suppress(OSError):
            protocol.send_message(connection, {"exit_code": code})
        self._ended_forks[connection.fileno()] = (pid, connection)
        self._selector.register(connection, selectors.EVENT_READ, self._done)

    def _done(self, descriptor: int) -> None:
        """Frees the process id of a fork: its supervisor has allowed it, or is gone."""
        pid, connection = self._ended_forks.pop(descriptor)
        self._selector.unregister(connection)
        os.waitpid(pid, 0)
        connection.close()
        self._learn()

    def _learn(self) -> None:
        """Imports what the first run imported beside what was known, once no fork is alive.

        An import may end this process, and the kernel would end its forks with it.
        """
        learned = self._directory / protocol.LEARNED
        if not self._learning or self._forks or self._leaving or not learned.exists():
            return
        self._learning = False
        names = learned.read_text()
        # The next parked process does without what cannot be imported before a fork.
        learned.write_text("[]")
        if import_for_forks(json.loads(names)):
            self._leaving = True
            return
        learned.write_text(names)
        self._origin = self._origin.with_modules(frozenset(sys.modules))


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
