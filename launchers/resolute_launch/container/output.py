"""Collects the output of a trial's processes, line by line, in the spool of logs."""

from __future__ import annotations

import fcntl
import logging
import os
import selectors
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.remaining_output import PIPES
from resolute.contracts.spool.format import Line, Stdtype
from resolute.errors import ResoluteError
from resolute.runtime.redaction import Secrets, StreamRedactor
from resolute.spool.line_splitter import LineSplitter
from resolute.spool.line_writer import LineWriter
from resolute_launch.ranks.failures import OutputTail

STATE_SECONDS = 10.0
"""How often a progress bar that lasts is shown."""
_READ_BYTES = 1 << 16
_PIPE_BYTES = 1 << 20
_POLL_SECONDS = 0.5
_log = logging.getLogger("resolute.supervisor")


def stdout_pipe(run: RunDirectory) -> Path:
    """The named pipe that takes the output of a run."""
    return run.path / PIPES[0]


def stderr_pipe(run: RunDirectory) -> Path:
    """The named pipe that takes the errors of a run."""
    return run.path / PIPES[1]


class Stream:
    """A named pipe that the trial writes to. Its processes may open it again by name."""

    def __init__(self, path: Path, stdtype: Stdtype, secrets: Secrets) -> None:
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
        self.path = path
        self.stdtype = stdtype
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # The trial's processes have the reading end open too: when the supervisor dies, what they wrote stays
        # in the pipe until it is saved, see `remaining_output`.
        self.writer = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._masking = StreamRedactor(secrets)
        self._splitter = LineSplitter()
        _enlarge(self.reader)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Takes the next bytes and yields the lines that they complete."""
        return self._splitter.feed(self._masking.feed(data))

    def states(self) -> Iterator[bytes]:
        """Yields what progress bars show now, as far as it is new."""
        return self._splitter.states()

    def finish(self) -> Iterator[bytes]:
        """Yields what is left when the stream has ended."""
        yield from self._splitter.feed(self._masking.finish())
        yield from self._splitter.finish()

    def close_writer(self) -> None:
        """Lets the pipe end once the last process of the trial has closed it."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def close(self) -> None:
        """Closes both ends."""
        self.close_writer()
        os.close(self.reader)


class OutputCollector:
    """A thread that reads both streams and the barrier until they end.

    Args:
        run: The run directory; the pipes are in it.
        writer: Receives the lines.
        clock: Clock for the times of lines.
        barrier: Named pipe to which the shell writes when the startup hook has finished.
        secrets: The secrets to redact in the log.
        hook_finished: Called in the collector's thread when the startup hook has finished.
    """

    def __init__(
        self,
        run: RunDirectory,
        writer: LineWriter,
        *,
        clock: Clock,
        barrier: Path,
        secrets: Secrets,
        hook_finished: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._hook_finished = hook_finished
        self.output_tail = OutputTail()
        self.stdout = Stream(stdout_pipe(run), Stdtype.STDOUT, secrets)
        self.stderr = Stream(stderr_pipe(run), Stdtype.STDERR, secrets)
        barrier.unlink(missing_ok=True)
        os.mkfifo(barrier, 0o600)
        self._barrier = os.open(barrier, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._losing = False
        self.count = 0
        """How many bytes the processes have written so far."""
        self._stop = threading.Event()
        self._states_at = clock.monotonic() + STATE_SECONDS
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)

    def start(self) -> None:
        """Begins to read. The caller has given the writing ends to the trial's processes."""
        self.stdout.close_writer()
        self.stderr.close_writer()
        self._thread.start()

    def log_line(self, text: str) -> None:
        """Adds a line of the platform's own to the log."""
        _log.info("%s", text)
        self._append([Line(self._clock.time(), Stdtype.PLATFORM, text.encode())])

    def finish(self, timeout: float) -> bool:
        """Waits until all writers have closed the streams and everything was read.

        Returns:
            Whether that was so in time.
        """
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Takes what is in the pipes now and ends the thread, anyone who may still hold them open."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        for stream in (self.stdout, self.stderr):
            stream.close()
        os.close(self._barrier)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for stream in (self.stdout, self.stderr):
                selector.register(stream.reader, selectors.EVENT_READ, stream)
            selector.register(self._barrier, selectors.EVENT_READ, None)
            waiting = {self.stdout.reader, self.stderr.reader}
            while waiting:
                # Asked before reading: what was written before the stop is read before the end.
                stopping = self._stop.is_set()
                events = selector.select(0 if stopping else _POLL_SECONDS)
                for key, _ in events:
                    if key.data is None:
                        selector.unregister(self._barrier)
                        self._hook_finished()
                    elif not self._read(key.data):
                        selector.unregister(key.fd)
                        waiting.discard(key.fd)
                self._show_states()
                if stopping and not events:
                    break
        for stream in (self.stdout, self.stderr):
            self._take(stream, stream.finish())

    def _read(self, stream: Stream) -> bool:
        """Reads what is there; False at the end of the stream."""
        try:
            data = os.read(stream.reader, _READ_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        self.count += len(data)
        self._take(stream, stream.feed(data))
        return True

    def _show_states(self) -> None:
        now = self._clock.monotonic()
        if now >= self._states_at:
            self._states_at = now + STATE_SECONDS
            for stream in (self.stdout, self.stderr):
                self._take(stream, stream.states())

    def _take(self, stream: Stream, texts: Iterable[bytes]) -> None:
        now = self._clock.time()
        lines = [Line(now, stream.stdtype, text) for text in texts]
        if lines:
            self.output_tail.add(lines)
            self._append(lines)

    def _append(self, lines: list[Line]) -> None:
        try:
            self._writer.append_lines(lines)
        except (ResoluteError, OSError) as failure:
            # Training must not stand still because its log cannot be kept; the log says how many are missing.
            if not self._losing:
                _log.error("lines of the log are lost: %s", failure)
            self._losing = True
        else:
            self._losing = False


def _enlarge(pipe: int) -> None:
    """Lets a burst wait in the pipe rather than stop the trial."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (AttributeError, OSError):
        # An older Python has no name for it, and the kernel may not allow as much.
        return
