"""Runs `det` in processes that are forked from one which has imported it: starting python again costs more.

A command is still a process of its own, with its own environment, directory and output. That the installed
programs start by themselves is seen by the tests of pages and of the wheel.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest


def run_command(
    command: tuple[str, ...], *, cwd: Path | None, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Runs a command line whose first word is the path of `det`.

    Raises:
        subprocess.TimeoutExpired: It took longer, and was killed.
    """
    with tempfile.TemporaryDirectory(prefix="command-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        arguments = (command, str(cwd or Path.cwd()), dict(environment), str(out), str(err))
        process = _context().Process(target=_become, args=arguments, name=" ".join(command[:3]))
        process.start()
        process.join(timeout)
        ended = process.exitcode is not None
        if not ended:
            process.kill()
            process.join()
        code = process.exitcode or 0
        process.close()
        said = [path.read_text() if path.exists() else "" for path in (out, err)]
    if not ended:
        raise subprocess.TimeoutExpired(command, timeout, *said)
    return subprocess.CompletedProcess(command, code, *said)


def _become(*arguments: Any) -> None:
    # Here, and not in the process of the tests: it imports all that commands do.
    from support.processes.forked_command import become

    become(*arguments)


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.processes.forked_command"])
    # The server does not take our path over before it imports that module, before Python 3.12.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        forkserver.ensure_running()
    return context
