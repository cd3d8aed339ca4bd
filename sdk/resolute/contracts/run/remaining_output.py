"""Output of a run that its supervisor had not read when it was lost.

The output of a run goes through two named pipes. Its processes hold both ends, so the output stays in the
pipes when the supervisor dies. The code that ends the processes first saves this output::

    stdout.rest stderr.rest   bytes that were not read
    lost.json                 the supervisor was lost; renamed once the log says so

The process that then sends the run's remaining data turns these files into log lines.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from resolute.contracts.files.atomic_files import write_json

PIPES = ("stdout", "stderr")
"""Names of the pipes in a run directory."""
_REST_SUFFIX = ".rest"
_READ_BYTES = 1 << 16


def rest_file(run: Path, pipe: str) -> Path:
    """The file with what was left in a pipe of a run."""
    return run / f"{pipe}{_REST_SUFFIX}"


def lost_file(run: Path) -> Path:
    """Is there from the loss of a run's supervisor until its log says so."""
    return run / "lost.json"


def note_loss(run: Path, *, now: float) -> None:
    """Notes that the supervisor of a run was lost, for its log to say so once.

    Args:
        run: The run directory.
        now: Unix time.

    Raises:
        OSError: The disk is full, for example.
    """
    if not lost_file(run).exists() and not _delivered_file(run).exists():
        write_json(lost_file(run), {"time": now}, sync=True)


def mark_delivered(run: Path) -> None:
    """Notes that what was saved, and the loss, have become lines of the log. Idempotent."""
    for pipe in PIPES:
        rest_file(run, pipe).unlink(missing_ok=True)
    if lost_file(run).exists():
        lost_file(run).replace(_delivered_file(run))


@contextmanager
def saved_output(run: Path) -> Iterator[None]:
    """Saves what is in the pipes of a run whose supervisor was lost while the caller ends its processes.

    The pipes are opened before: what is in a pipe is gone as soon as no process has it open.

    Args:
        run: The run directory.
    """
    with ExitStack() as stack:
        # Two who read at the same time would mix up the order.
        turn = os.open(run / "rest.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, turn)
        fcntl.flock(turn, fcntl.LOCK_EX)
        pipes = {name: pipe for name in PIPES if (pipe := _open(run / name)) is not None}
        for pipe in pipes.values():
            stack.callback(os.close, pipe)
        yield
        for name, pipe in pipes.items():
            _save(pipe, rest_file(run, name))


def _delivered_file(run: Path) -> Path:
    return run / "lost.told"


def _open(pipe: Path) -> int | None:
    try:
        return os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _save(pipe: int, rest: Path) -> None:
    with ExitStack() as stack:
        file: int | None = None
        while data := _read(pipe):
            if file is None:
                file = os.open(rest, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                stack.callback(os.close, file)
            os.write(file, data)
        if file is not None:
            os.fsync(file)


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, _READ_BYTES)
    except BlockingIOError:
        # A process that could not be ended still has the pipe open.
        return b""
