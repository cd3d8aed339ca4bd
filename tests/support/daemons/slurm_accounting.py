"""Accounting of a test's Slurm: its daemon, and a MariaDB that listens on no port."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.ports import free_port
from support.waiting import wait_until

PROGRAMS = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db")
_START_SECONDS = 120.0
_END_SECONDS = 30.0
_MARIADB_USER = "mysql"
"""Runs MariaDB where the tests are root: as root it would not start."""
_SETTINGS = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={directory}/munge.socket
MinJobAge=2
"""
_CONF = """\
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
LogFile={directory}/slurmdbd.log
PidFile={directory}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=accounting
"""


class SlurmAccounting:
    """What keeps the ends of jobs that the controller soon forgets.

    Args:
        directory: That of the Slurm.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # Of its own: another user must get into it.
        self._data = Path(tempfile.mkdtemp(prefix="mariadb-"))
        self._environment: Mapping[str, str] = {}
        self._mariadb: subprocess.Popen[bytes] | None = None
        self._slurmdbd: subprocess.Popen[bytes] | None = None
        self._port = free_port()

    @property
    def settings(self) -> str:
        """Lines for ``slurm.conf``."""
        return _SETTINGS.format(port=self._port, directory=self._directory)

    def start(self, environment: Mapping[str, str]) -> None:
        """Makes the database, and starts both daemons; returns once they answer.

        Args:
            environment: That of Slurm's commands.
        """
        # The library that slurmdbd is a client by has no other way to be told.
        self._environment = {**environment, "MYSQL_UNIX_PORT": str(self._data / "socket")}
        conf = self._directory / "slurmdbd.conf"
        conf.touch(mode=0o600)
        conf.write_text(_CONF.format(port=self._port, directory=self._directory, user=getpass.getuser()))
        self._start_mariadb()
        self._start_slurmdbd()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Has the daemon end, and begin again after the block."""
        self._end_slurmdbd()
        try:
            yield
        finally:
            self._start_slurmdbd()

    def stop(self) -> None:
        """Ends both daemons, and removes the database."""
        self._end_slurmdbd()
        if self._mariadb is not None:
            _end(self._mariadb)
        shutil.rmtree(self._data)

    def _start_slurmdbd(self) -> None:
        self._slurmdbd = self._spawn("slurmdbd", "-D")
        wait_until(self._answers, what="slurmdbd", seconds=_START_SECONDS, pause=0.2)

    def _end_slurmdbd(self) -> None:
        if self._slurmdbd is not None:
            _end(self._slurmdbd)
            self._slurmdbd = None

    def _start_mariadb(self) -> None:
        common = ["--no-defaults", f"--datadir={self._data / 'data'}"]
        if os.geteuid() == 0:
            shutil.chown(self._data, _MARIADB_USER)
            common.append(f"--user={_MARIADB_USER}")
        subprocess.run(
            [
                *("mariadb-install-db", *common, "--skip-test-db"),
                # Whoever runs the tests gets in without a password.
                "--auth-root-authentication-method=socket",
                f"--auth-root-socket-user={getpass.getuser()}",
            ],
            env=dict(self._environment),
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=_START_SECONDS,
        )
        socket = self._data / "socket"
        self._mariadb = self._spawn("mariadbd", *common, f"--socket={socket}", "--skip-networking")
        wait_until(socket.exists, what="mariadbd", seconds=_START_SECONDS)

    def _spawn(self, *command: str) -> subprocess.Popen[bytes]:
        with (self._directory / f"{command[0]}.out").open("ab") as output:
            return subprocess.Popen(
                command,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _answers(self) -> bool:
        assert self._slurmdbd is not None
        assert self._slurmdbd.poll() is None, (self._directory / "slurmdbd.out").read_text(errors="replace")
        asked = ["sacctmgr", "--noheader", "show", "cluster"]
        done = subprocess.run(
            asked, env=dict(self._environment), capture_output=True, check=False, timeout=60
        )
        return done.returncode == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(_END_SECONDS)
