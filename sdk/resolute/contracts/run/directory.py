"""The directory that a trial's processes share with their supervisor: the paths in it and its small files.

::

    launch.json     what the supervisor needs to start (0600)
    lock            held by the supervisor for as long as it lives
    supervisor.json child.json    process identities, to find and end orphans
    token           the current token of the trial (0600), replaced with every lease renewal
    user-token      the current token of the SDK in the scripts (0600), replaced with every lease renewal
    secrets/        values of the secrets that the config names (0600), until the run has ended
    info/           what ``get_cluster_info`` reads
    flags           the signal and its acknowledgement, mapped into memory by both sides
    ready.json      when the script had initialized the Core API, written by its first rank
    early_exit.json why the trial's own code ended early, written by the trial
    movement/       signs of life of the scripts, mapped into memory by both sides
    stacks          what the processes answered when the supervisor asked where they are
    flight/         what NCCL wrote of its last collectives
    spool/          reports and lines on their way to the services
    work/           the model definition; the entrypoint's working directory
    overlay/        what the startup hook has installed for this run
    remains/        links to resources elsewhere, which are removed when all processes have ended
    exit.json       how the entrypoint ended, written by the supervisor
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json, write_atomically, write_json
from resolute.contracts.run import external_resources
from resolute.contracts.run.early_exit import EarlyExit
from resolute.contracts.run.shared_memory.flags import Flags

ENVIRONMENT_VARIABLE = "RESOLUTE_RUN_DIR"
"""Names the run directory in the environment of the entrypoint."""
LATEST_TIME = 2.5e11
"""Seconds since 1970: a timestamp of the contract ends with the year 9999."""


class RunDirectory:
    """Paths and small files of one run directory.

    Args:
        path: The directory. It must exist before anything is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.launch_file = self.path / "launch.json"
        self.lock_file = self.path / "lock"
        self.supervisor_file = self.path / "supervisor.json"
        self.child_file = self.path / "child.json"
        self.log_file = self.path / "supervisor.log"
        self.token_file = self.path / "token"
        self.user_token_file = self.path / "user-token"
        self.secrets = self.path / "secrets"
        self.info = self.path / "info"
        self.flags_file = self.path / "flags"
        self.ready_file = self.path / "ready.json"
        self.early_exit_file = self.path / "early_exit.json"
        self.movement = self.path / "movement"
        self.stacks_file = self.path / "stacks"
        self.flight = self.path / "flight"
        self.spool = self.path / "spool"
        self.work = self.path / "work"
        self.external_resources = self.path / "remains"
        self.exit_file = self.path / "exit.json"

    def __repr__(self) -> str:
        return f"RunDirectory({str(self.path)!r})"

    @classmethod
    def from_environment(cls) -> RunDirectory | None:
        """Returns the run directory of this process, or None outside of a run."""
        path = os.environ.get(ENVIRONMENT_VARIABLE)
        return cls(path) if path else None

    def prepare(self) -> None:
        """Creates the directories and the flags file. Idempotent.

        Raises:
            QuotaError: The disk is full.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for directory in (self.info, self.spool, self.work, self.flight):
            directory.mkdir(exist_ok=True, mode=0o700)
        Flags.create(self.flags_file)

    def write_ready(self, time: float) -> None:
        """Writes when the script had initialized the Core API, unless it did before."""
        if not self.ready_file.exists():
            write_json(self.ready_file, {"time": time})

    def read_ready(self) -> float:
        """Returns when the script had initialized the Core API; zero if it never did."""
        try:
            content = read_json(self.ready_file)
            time = float(content["time"]) if content else 0.0
        except (OSError, OverflowError, KeyError, TypeError, ValueError):
            # Scripts can write to the directory, and nothing depends on it.
            return 0.0
        return time if 0 <= time <= LATEST_TIME else 0.0

    def write_early_exit(self, early_exit: EarlyExit) -> bool:
        """Writes why the trial's code ends early for the supervisor, unless that was written before.

        Returns:
            Whether it was the first.
        """
        if self.early_exit_file.exists():
            return False
        early_exit.write(self.early_exit_file)
        return True

    def record_external_resource(self, path: Path) -> None:
        """Records a path elsewhere that is to be removed when the run's processes have ended. Idempotent.

        Args:
            path: Its absolute path; it need not exist yet.
        """
        external_resources.record(self.external_resources, path)

    def remove_external_resources(self) -> None:
        """Removes what was recorded, as far as a run may have created it there. Idempotent."""
        external_resources.remove_all(self.external_resources)

    def write_secrets(self, values: Mapping[str, str]) -> None:
        """Writes secrets, each into a file of its name that only the owner reads."""
        self.secrets.mkdir(exist_ok=True, mode=0o700)
        for name, value in values.items():
            write_atomically(self.secrets / name, value, mode=0o600)

    def read_secrets(self) -> tuple[str, ...]:
        """Returns the values of the secrets; none once they are removed."""
        values = []
        # Scripts can write to the directory too: what is no secret neither hides one nor keeps the reader.
        for path in filter(Path.is_file, self.secrets.glob("*")):
            with suppress(OSError, UnicodeDecodeError):
                values.append(self.read_secret(path.name))
        return tuple(values)

    def read_secret(self, name: str) -> str:
        """Returns the value of a secret as it was set, with its ends of lines, whatever the locale.

        Raises:
            OSError: It cannot be read.
            UnicodeDecodeError: The file is none of a secret.
        """
        return (self.secrets / name).read_bytes().decode()

    def remove_secrets(self) -> None:
        """Removes the files of the secrets. Idempotent."""
        shutil.rmtree(self.secrets, ignore_errors=True)

    def read_token(self) -> str:
        """Returns the current token, or an empty text if there is none."""
        return read_token(self.token_file)


def read_token(path: Path) -> str:
    """Returns the token in a file, or an empty text if the file is not there."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""
