"""A trial's processes: a shell that runs the startup hook, waits to be released, and becomes the entrypoint.

The shell waits at the start barrier until its identity is on disk and the rendezvous is complete. If the
supervisor dies before that, the shell's pipe closes and the shell ends, so no entrypoint runs unrecorded.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from resolute.contracts.files.atomic_files import write_atomically, write_json
from resolute.contracts.processes import ProcessIdentity, ProcessTree
from resolute.contracts.run.directory import ENVIRONMENT_VARIABLE, RunDirectory
from resolute.contracts.run.external_resources import SCRATCH_PREFIX
from resolute_launch.container.startup_hook import HOOK

_EXPORT = "export "
END_SECONDS = 30.0
"""How long killed processes may take to end."""


def find_shell() -> str:
    """Returns the shell that hooks are written for: bash, or sh where there is none."""
    return shutil.which("bash") or "/bin/sh"


def shell_command(run: RunDirectory) -> tuple[str, ...]:
    """Returns the command of the shell that runs the hook and becomes the entrypoint."""
    shell = find_shell()
    # Else bash takes a socket on its standard input, as forks have, for a remote login and reads ~/.bashrc.
    options = ("--norc",) if shell.endswith("bash") else ()
    return (shell, *options, "-c", _script(run), "entrypoint")


def barrier_file(run: RunDirectory) -> Path:
    """A named pipe that is written to when the startup hook has finished."""
    return run.path / "gate"


def create_scratch_directory(run: RunDirectory) -> Path:
    """Creates the directory for temporary files of a run's processes; it is removed with them.

    It is in this machine's directory for temporary files and has a short name: programs create sockets there,
    whose paths are limited to about a hundred characters, and that of the run directory may be as long.
    """
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
    run.record_external_resource(scratch)
    return scratch


def process_tree_of(run: RunDirectory, leader: ProcessIdentity | None) -> ProcessTree:
    """All processes of a run."""
    return ProcessTree(leader=leader, variable=f"{ENVIRONMENT_VARIABLE}={run.path}".encode())


class StartedProcess(Protocol):
    """A process that waits to be released: a shell, or a fork of a parked process."""

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group and session too."""

    def release(self) -> None:
        """Lets it begin; if it has ended already, the wait for it tells how."""

    def wait_without_reaping(self) -> None:
        """Waits until it has ended, without freeing its process id."""

    def reap(self) -> int:
        """Collects the exit code of the process, which has ended: 128 + n when signal n ended it."""


class Shell:
    """A shell that runs the startup hook, and then becomes the entrypoint.

    Args:
        process: The shell.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    def start(cls, run: RunDirectory, *, environment: Mapping[str, str], stdout: int, stderr: int) -> Shell:
        """Starts the shell, which runs the hook at once.

        Args:
            run: Its run directory.
            environment: All of its environment.
            stdout: Descriptor that takes its output.
            stderr: Descriptor that takes its errors.
        """
        process = subprocess.Popen(
            shell_command(run),
            cwd=run.work,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group and session too."""
        return self._process.pid

    def release(self) -> None:
        """Lets it become the entrypoint."""
        assert self._process.stdin is not None
        # If it has ended already, the wait for it tells how.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"go\n")
            self._process.stdin.close()

    def wait_without_reaping(self) -> None:
        """Waits until the shell has ended, without freeing its process id."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    def reap(self) -> int:
        """Collects the exit code of the shell, which has ended: 128 + n when signal n ended it."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        code = self._process.wait()
        return 128 - code if code < 0 else code


class EntrypointProcess:
    """The entrypoint's processes, in a session of their own, with their identity on disk.

    Args:
        process: The first process.
        run: Its run directory.
    """

    def __init__(self, process: StartedProcess, run: RunDirectory) -> None:
        self._process = process
        self._run = run
        self._identity = ProcessIdentity.of(process.pid)
        identity = self._identity.to_json() if self._identity else {"pid": process.pid}
        write_json(run.child_file, identity | {"pgid": process.pid}, sync=True)

    @property
    def pid(self) -> int:
        """Process id of the shell, and later of the entrypoint; also of its group and session."""
        return self._process.pid

    def release(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Releases the process, which becomes the entrypoint.

        Args:
            argv: Command line of the entrypoint.
            environment: Variables that were not known when the process was started.
        """
        exports = [f"{_EXPORT}{name}={shlex.quote(value)}" for name, value in environment.items()]
        lines = [*exports, f"exec {shlex.join(argv)} </dev/null", ""]
        write_atomically(_release_file(self._run), "\n".join(lines))
        self._process.release()

    def wait_without_reaping(self) -> None:
        """Waits until the process has ended, without freeing its process id."""
        self._process.wait_without_reaping()

    def signal_group(self, number: signal.Signals) -> None:
        """Sends a signal to the process group. Only before ``reap``: later another group may have its id."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    @property
    def tree(self) -> ProcessTree:
        """All processes that descend from the shell."""
        return process_tree_of(self._run, self._identity)

    def kill_process_tree(self) -> None:
        """Kills all processes that descend from the shell."""
        self.tree.end(timeout=END_SECONDS)

    def reap(self) -> int:
        """Collects the exit code of the process, which has ended: 128 + n when signal n ended it."""
        return self._process.reap()


def released_variables(run: RunDirectory) -> dict[str, str]:
    """Reads the variables with which the entrypoint of a run was released; none if it was not."""
    if not _release_file(run).exists():
        return {}
    lines = _release_file(run).read_text().splitlines()
    exports = (shlex.split(line)[1] for line in lines if line.startswith(_EXPORT))
    return dict(export.split("=", 1) for export in exports)


def _release_file(run: RunDirectory) -> Path:
    return run.path / "release.sh"


def _script(run: RunDirectory) -> str:
    gate, release = (shlex.quote(str(path)) for path in (barrier_file(run), _release_file(run)))
    # Opened for both directions, the pipe does not wait for a supervisor that may be dead.
    return f"""set -e
if [ -f ./{HOOK} ]; then . ./{HOOK} </dev/null; fi
echo open 1<>{gate}
IFS= read -r _ || exit 1
. {release}
"""
