"""A real sshd on loopback, with keys and settings of its own: a login node that is this machine."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from support.backends import missing
from support.ports import free_port
from support.waiting import wait_until

_SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_SERVER = """\
ListenAddress 127.0.0.1:{port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/own.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
Banner {directory}/banner
"""
_CLIENT = """\
Host login
  HostName 127.0.0.1
  User {user}
  IdentityFile {directory}/own
  IdentitiesOnly yes
  UserKnownHostsFile {directory}/known_hosts
  StrictHostKeyChecking yes
  # Options before it win: this file, too, is what a test of a port where nobody listens uses.
  Port {port}
"""


class LoginServer:
    """A running sshd.

    Args:
        directory: Holds all of it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()

    @property
    def config(self) -> Path:
        """Settings of `ssh` in which the host ``login`` is this server."""
        return self.directory / "config"

    def configure(self) -> None:
        """Makes the keys and the settings."""
        for name in ("host", "own"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.directory / name)]
            subprocess.run(command, check=True, timeout=60)
        public = (self.directory / "host.pub").read_text()
        (self.directory / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")
        (self.directory / "banner").write_text("A banner of the site\n")
        filled = {"directory": self.directory, "port": self.port, "user": getpass.getuser()}
        (self.directory / "sshd_config").write_text(_SERVER.format(**filled))
        self.config.write_text(_CLIENT.format(**filled))

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the server, and waits until it listens."""
        if os.geteuid() == 0:
            # Debian makes it at each start of the machine.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        program = shutil.which("sshd", path=_SEARCH_PATH)
        assert program is not None
        with (self.directory / "output").open("wb") as output:
            # By its whole path: it starts itself anew for each connection.
            server = subprocess.Popen(
                [program, "-D", "-e", "-f", str(self.directory / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

        def listens() -> bool:
            assert server.poll() is None, (self.directory / "output").read_text(errors="replace")
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return True
            return False

        wait_until(listens, what="sshd", seconds=60)
        return server


@contextmanager
def running_login() -> Iterator[LoginServer]:
    """A login node of its own; skips where OpenSSH is not installed."""
    for program in ("sshd", "ssh", "ssh-keygen"):
        if shutil.which(program, path=_SEARCH_PATH) is None:
            missing(f"OpenSSH is missing: no {program}; tools/install_engines.sh installs it")
    with tempfile.TemporaryDirectory(prefix="ssh-") as directory:
        login = LoginServer(Path(directory))
        login.configure()
        server = login.start()
        try:
            yield login
        finally:
            sessions = psutil.Process(server.pid).children(recursive=True)
            server.terminate()
            server.wait(30)
            for session in sessions:
                with suppress(psutil.NoSuchProcess):
                    session.kill()
