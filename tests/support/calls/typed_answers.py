"""Commands at a terminal that ask, and get what a person would type."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_CHUNK = 65536


def run_at_terminal(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    answers: Mapping[str, str],
    timeout: float,
) -> tuple[int, str]:
    """Runs a command whose terminal is one of its own.

    Args:
        command: The program and its arguments.
        folder: Where it runs.
        environment: Its environment.
        answers: What is typed, by the end of the question that it answers.
        timeout: Seconds.

    Returns:
        The exit status, and all that the terminal showed.

    Raises:
        TimeoutError: It went on for longer, and was killed.
    """
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        # `setsid --ctty` makes the terminal the one that `/dev/tty` leads to, where passwords are asked for.
        ["setsid", "--ctty", "--wait", *command],
        cwd=folder,
        env=environment,
        stdin=end,
        stdout=end,
        stderr=end,
    )
    os.close(end)
    try:
        said = _converse(terminal, answers, deadline=time.monotonic() + timeout)
        return process.wait(timeout=60), said
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(terminal)


def _converse(terminal: int, answers: Mapping[str, str], *, deadline: float) -> str:
    said, answered = bytearray(), 0
    while select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
        try:
            chunk = os.read(terminal, _CHUNK)
        except OSError:  # how a terminal says that nobody holds its other end
            chunk = b""
        if not chunk:
            return said.decode(errors="replace").replace("\r\n", "\n")
        said += chunk
        for question, answer in answers.items():
            if said[answered:].endswith(question.encode()):
                os.write(terminal, f"{answer}\n".encode())
                answered = len(said)
    raise TimeoutError(said.decode(errors="replace")[-6000:])
