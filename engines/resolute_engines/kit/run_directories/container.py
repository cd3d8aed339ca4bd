"""A container of a run with a run directory: its supervisor and its data.

The directory alone determines its state: a held lock means alive, an exit record means exited, neither means
lost. All calls block for a short time, so call them in a thread.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from resolute.contracts.files.atomic_files import read_json, write_atomically, write_json
from resolute.contracts.processes import ProcessIdentity, ProcessTree
from resolute.contracts.run.directory import ENVIRONMENT_VARIABLE, RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.lock import RunLock, is_locked
from resolute.contracts.run.remaining_output import note_loss, saved_output
from resolute.errors import ConflictError, ResoluteError
from resolute_engines.kit.reports import report_of
from resolute_engines.kit.run_directories.environment import supervisor_environment
from resolute_engines.kit.run_directories.spools import RunSpools
from resolute_engines.protocol import ContainerReport, ContainerState

ORPHAN_SECONDS = 30.0
"""How long one attempt to end orphans lasts."""
_ORPHAN_UPLOAD = "resolute_launch.supervisor.orphan_upload"
_LOG_TAIL = 2000
_POLL_SECONDS = 0.02
_log = structlog.get_logger("local")


class RunContainer:
    """A container, identified by allocation and rank.

    Args:
        runs: The directory with the run directories.
        allocation_id: The allocation.
        rank: Rank of the container within the allocation.
    """

    def __init__(self, runs: Path, allocation_id: str, rank: int) -> None:
        self.allocation_id = allocation_id
        self.rank = rank
        self.run = RunDirectory(runs / allocation_id / str(rank))

    def __repr__(self) -> str:
        return f"{self.allocation_id}/{self.rank}"

    @property
    def locked(self) -> bool:
        """Whether its supervisor lives, or is about to."""
        return is_locked(self.run.lock_file)

    @property
    def _started_file(self) -> Path:
        """Who was started here, for the moments before the supervisor itself says who it is."""
        return self.run.path / "started.json"

    @property
    def supervisor(self) -> ProcessIdentity | None:
        """Its supervisor, dead or alive; None if none ever wrote down its identity."""
        return _identity(self.run.supervisor_file)

    def start(self, order: LaunchOrder, start_supervisor: Callable[[RunDirectory, int], int]) -> None:
        """Starts its supervisor on this machine; one that was started before is left alone.

        The lock is taken here and handed on, so that at no instant a started container looks like one
        that was not.

        Args:
            order: What it is to launch.
            start_supervisor: Starts ``python -m resolute_launch.supervisor`` for a run directory, in its own
                session, with the open descriptor of the lock, and returns its process id.

        Raises:
            OSError: It cannot be started, because the disk is full for example.
        """
        self.run.prepare()
        try:
            lock = RunLock.acquire(self.run.lock_file)
        except ConflictError:
            return
        try:
            if self.run.supervisor_file.exists() or self.run.exit_file.exists():
                return
            order.write(self.run.launch_file)
            self._note_start(start_supervisor(self.run, lock.descriptor))
        finally:
            lock.release()

    def _note_start(self, pid: int) -> None:
        identity = ProcessIdentity.of(pid)
        # It runs already, so a disk that is full must not make it look as if it did not.
        with contextlib.suppress(OSError):
            write_json(self._started_file, identity.to_json() if identity else {})

    def upload_orphans(
        self, token: str = "", *, address: str = "", note_late_lines: bool = False
    ) -> subprocess.Popen[bytes]:
        """Starts a process that sends what the run left undelivered.

        Args:
            token: A fresh token, if there is one.
            address: ``host:port`` of the services; empty for where they were when the run began.
            note_late_lines: Whether it writes into the log when lines do not arrive in time.
        """
        if token:
            write_atomically(self.run.token_file, token, mode=0o600)
        options = ["--master", address] if address else []
        notes = ["--note-late-lines"] if note_late_lines else []
        with self.run.log_file.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", _ORPHAN_UPLOAD, str(self.run.path), *options, *notes],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.run.path,
                env=supervisor_environment(os.environ),
                start_new_session=True,
            )

    def inspect(self) -> ContainerReport:
        """Tells its state, and ends what a lost supervisor left running."""
        if self.locked:
            return report_of(self, ContainerState.RUNNING)
        record = self.exit_record()
        if record is not None:
            return report_of(self, ContainerState.ENDED, record)
        if not self.run.supervisor_file.exists() and not self.run.child_file.exists():
            return report_of(self, ContainerState.UNKNOWN)
        # Its slots are given away when it is reported as lost, so nothing of it may run any more.
        ended = self.end_orphans()
        self.note_loss()
        return report_of(self, ContainerState.ENDED if ended else ContainerState.RUNNING)

    def never_started(self) -> ContainerReport:
        """The report of a container that was launched and whose supervisor left no trace."""
        log = self.run.log_file
        tail = log.read_text(errors="replace")[-_LOG_TAIL:].strip() if log.exists() else ""
        failure = f"the supervisor of the run did not start:\n{tail}"
        record = ExitRecord(exit_code=1, failure=failure, failed_before_entrypoint=True)
        return report_of(self, ContainerState.ENDED, record)

    def end_orphans(self) -> bool:
        """Ends what a dead supervisor left running.

        Returns:
            Whether all of it has ended.
        """
        family = ProcessTree(
            leader=_identity(self.run.child_file), variable=f"{ENVIRONMENT_VARIABLE}={self.run.path}".encode()
        )
        try:
            with saved_output(self.run.path):
                left = family.end(timeout=ORPHAN_SECONDS)
        except FileNotFoundError:
            if self.run.path.exists():
                raise
            return True  # it was released meanwhile, which its end comes before
        if left:
            _log.error("orphans do not end", run=str(self.run.path), pids=[process.pid for process in left])
        else:
            self.run.remove_external_resources()
        return not left

    def note_loss(self) -> None:
        """Notes that its supervisor was lost, for its log to say so once."""
        try:
            note_loss(self.run.path, now=time.time())
        except OSError as failure:
            # The loss is reported all the same; its log cannot be written to a full disk.
            _log.error("the loss of a run cannot be noted", run=str(self.run.path), error=str(failure))

    def terminate(self) -> None:
        """Asks its supervisor to have the run checkpoint and exit."""
        supervisor = self.supervisor or _identity(self._started_file)
        if self.locked and supervisor is not None:
            supervisor.send(signal.SIGTERM)

    def kill(self) -> None:
        """Ends its supervisor and everything else of it at once."""
        deadline = time.monotonic() + ORPHAN_SECONDS
        # The lock goes with the last thread of the supervisor, a moment after the signal.
        while self.locked and time.monotonic() < deadline:
            supervisor = self.supervisor or _identity(self._started_file)
            if supervisor is not None:
                supervisor.send(signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
        self.end_orphans()

    @property
    def spools(self) -> RunSpools:
        """The files of its reports and lines."""
        return RunSpools(self.run)

    def disown(self) -> None:
        """Forgets processes and resources that a copy of this directory names: they are the original's."""
        for path in (
            self.run.supervisor_file,
            self.run.child_file,
            self._started_file,
            self.run.token_file,
            self.run.user_token_file,
        ):
            path.unlink(missing_ok=True)
        self.run.remove_secrets()
        # The links alone: what they lead to may be in use.
        shutil.rmtree(self.run.external_resources, ignore_errors=True)

    def remove(self) -> None:
        """Removes everything that it left on disk."""
        self.run.remove_external_resources()
        # Half a directory would look like one whose spools were never sent: it goes by another name first.
        gone = self.run.path.with_name(f"{self.rank}.removed")
        with contextlib.suppress(FileNotFoundError):
            self.run.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def exit_record(self) -> ExitRecord | None:
        """How it ended by its supervisor's own word; None if that is not there, or cannot be read."""
        try:
            return ExitRecord.read(self.run.exit_file)
        except (ValueError, ResoluteError, IsADirectoryError, PermissionError) as error:
            # The file is the trial's own to spoil.
            _log.warning("exit record cannot be read", run=str(self.run.path), error=str(error))
            return None


def containers_in(runs: Path, allocation_id: str) -> list[RunContainer]:
    """Returns the containers of an allocation that have a run directory, by rank."""
    folder = runs / allocation_id
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208  # names alone are wanted
    ranks = sorted(int(name) for name in names if name.isdecimal())
    return [RunContainer(runs, allocation_id, rank) for rank in ranks]


def _identity(path: Path) -> ProcessIdentity | None:
    try:
        return ProcessIdentity.from_json(read_json(path))
    except ValueError:
        return None
