"""Keeps the order of a process's output to stdout and stderr.

The streams are separate pipes, and a reader that finds bytes in both cannot tell which were written first. So
a process that changes from one stream to the other first waits until the first pipe has been read. The folder
of this module is on ``PYTHONPATH`` of every run, and the interpreter may have any version. So the module
imports only the standard library, and nothing in processes with other streams.
"""

import os
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

VARIABLE = "RESOLUTE_OUTPUT_PIPES"
"""Names the two pipes, by device and inode, whose readers take what is there at once."""
_MOST_SECONDS, _SHARE = 1.0, 0.05
_FIRST_PAUSE, _LONGEST_PAUSE = 20e-6, 1e-3
_NOTHING = bytes(4)


def name_pipes(stdout: int, stderr: int) -> str:
    """Returns the value of the variable for processes with these two streams."""
    return " ".join("{0.st_dev}:{0.st_ino}".format(os.fstat(pipe)) for pipe in (stdout, stderr))


class WaitBudget:
    """The time for which the writes of a process may wait: one second, plus a twentieth of the elapsed time.

    So the waiting hardly slows a process that changes streams all the time, or whose reader is gone.
    """

    def __init__(self) -> None:
        from fcntl import ioctl
        from termios import FIONREAD

        self._left, self._since = _MOST_SECONDS, time.monotonic()
        self._ioctl, self._request = ioctl, FIONREAD

    def wait_until_read(self, pipe: int) -> None:
        """Waits until nothing is left in a pipe, or for as long as the budget lasts."""
        if self._is_read(pipe):
            return
        began = now = time.monotonic()
        most = min(_MOST_SECONDS, self._left + _SHARE * (began - self._since))
        pause = _FIRST_PAUSE
        while now - began < most and not self._is_read(pipe):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            now = time.monotonic()
        self._left, self._since = most - (now - began), now

    def _is_read(self, pipe: int) -> bool:
        try:
            # The script may have closed it, or have put something else in its place.
            return self._ioctl(pipe, self._request, _NOTHING) == _NOTHING or not stat.S_ISFIFO(
                os.fstat(pipe).st_mode
            )
        except OSError:
            return True


def _flush(stream: "TextIO") -> None:
    try:  # noqa: SIM105 - contextlib would be loaded for it in every process
        stream.flush()
    except (OSError, ValueError):
        pass  # the script has closed it, or what it led to


def install() -> None:
    """Orders the streams of this process from now on, if they are those of its run."""
    try:
        if os.environ.get(VARIABLE) != name_pipes(1, 2):
            return
    except OSError:
        return
    import io

    if type(sys.stdout) is not io.TextIOWrapper or type(sys.stderr) is not io.TextIOWrapper:
        return
    budget = WaitBudget()

    class Output(io.FileIO):
        """One of the two streams. A write to it waits if the other stream was written to last."""

        other: "Output"

        def take_turns(self) -> None:
            self.__dict__["write"] = self._write_next

        def _write_next(self, data: "bytes") -> "int | None":
            budget.wait_until_read(self.other.fileno())
            # Until the turn of the other, this costs nothing.
            self.__dict__.pop("write", None)
            self.other.take_turns()
            return self.write(data)

    def replaced(stream: io.TextIOWrapper) -> Output:
        raw = Output(stream.fileno(), "wb", closefd=False)
        raw.name = stream.name
        buffered = isinstance(stream.buffer, io.BufferedWriter)
        # The same object as before: libraries that a parked process has imported hold it already.
        stream.__init__(  # type: ignore[misc]
            io.BufferedWriter(raw) if buffered else raw,
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        return raw

    import atexit

    # The interpreter flushes what the names lead to at the end; a script may have put other streams there.
    for stream in (sys.stdout, sys.stderr):
        atexit.register(_flush, stream)
    stdout, stderr = replaced(sys.stdout), replaced(sys.stderr)
    stdout.other, stderr.other = stderr, stdout
    stdout.take_turns()
    stderr.take_turns()
