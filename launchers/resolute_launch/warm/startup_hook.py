"""Runs the startup hook of a run that may start warm, and reads the environment that it leaves."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute_launch.container.entrypoint_process import (
    EntrypointProcess,
    Shell,
    ignored_file,
    process_tree_of,
)

_POLL_SECONDS = 0.02
_STANDARD = 2
"""The last of the descriptors that every process has."""
_RESET = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that this interpreter ignores, and new processes do not."""


class StartupHook:
    """The shell that runs the hook. It becomes the entrypoint if the run starts cold after all.

    Args:
        shell: The shell.
        run: Its run directory.
    """

    def __init__(self, shell: Shell, run: RunDirectory) -> None:
        self.shell = shell
        self._run = run
        # So that its processes are found if this supervisor is lost.
        self._process = EntrypointProcess(shell, run)

    @classmethod
    def start(
        cls, run: RunDirectory, *, environment: Mapping[str, str], stdout: int, stderr: int
    ) -> StartupHook:
        """Starts the hook.

        Args:
            run: The run directory, with the code.
            environment: All of its environment.
            stdout: Descriptor that takes its output.
            stderr: Descriptor that takes its errors.
        """
        shell = Shell.start(
            run, environment=environment, stdout=stdout, stderr=stderr, reports=_environment_file(run)
        )
        return cls(shell, run)

    def wait(self, interrupted: Callable[[], bool]) -> dict[str, str] | None:
        """Waits until the hook has finished.

        Args:
            interrupted: Asked meanwhile; once true, waiting ends with ``InterruptedError``.

        Returns:
            The environment that it leaves; None if the shell has ended, because the hook failed.
        """
        reported = _environment_file(self._run)
        while not reported.exists():
            if self.shell.has_ended():
                return None
            if interrupted():
                raise InterruptedError
            time.sleep(_POLL_SECONDS)
        entries = (entry.partition("=") for entry in os.fsdecode(reported.read_bytes()).split("\0"))
        return {name: value for name, equals, value in entries if equals}

    def obstacle(self) -> str:
        """Says what the hook has changed that only this shell can pass on; empty for nothing."""
        process = Path(f"/proc/{self.shell.pid}")
        if process.joinpath("cwd").resolve() != self._run.work.resolve():
            return "its startup hook changes its directory"
        if any(int(entry.name) > _STANDARD for entry in process.joinpath("fd").iterdir()):
            return "its startup hook keeps files open"
        members = process_tree_of(self._run, ProcessIdentity.of(self.shell.pid)).members()
        if any(member.pid != self.shell.pid for member in members):
            return "its startup hook leaves processes"
        theirs = _ignored(ignored_file(_environment_file(self._run)))
        if theirs != _ignored(Path("/proc/self/status"), without=_RESET):
            return "its startup hook changes which signals are ignored"
        return ""

    def end(self) -> None:
        """Ends the shell and all processes of the hook."""
        self._process.kill_process_tree()
        self._process.reap()


def _environment_file(run: RunDirectory) -> Path:
    return run.path / "environment-of-hook"


def _ignored(status: Path, *, without: tuple[signal.Signals, ...] = ()) -> int:
    lines = status.read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    return mask & ~sum(1 << (number - 1) for number in without)
