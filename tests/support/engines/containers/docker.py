"""Docker's API served by a real Docker, in a network namespace of its own.

Docker changes the rules of the firewall where it runs, and Podman's networks have theirs. A pair of
interfaces joins the namespace and this machine, whose end is the address that containers reach.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.backends import missing
from support.engines.containers.image import IMAGE, root_file_system
from support.waiting import wait_until

_SETTINGS = {
    # Containers outlive the daemon, as Podman's do.
    "live-restore": True,
    "bip": "172.28.0.1/24",
    "exec-opts": ["native.cgroupdriver=cgroupfs"],
}
_CONTAINERD = """
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
"""
_SECONDS = 60.0


class DockerService:
    """Docker, whose daemon may be ended and started again.

    Args:
        folder: For all that it keeps; sockets have short paths.
        subnets: Where its networks have theirs, of 256 addresses each.
    """

    apart: tuple[str, ...] = ()

    def __init__(self, folder: Path, *, subnets: str) -> None:
        self._folder = folder
        self._settings = {**_SETTINGS, "default-address-pools": [{"base": subnets, "size": 24}]}
        self._daemon: subprocess.Popen[bytes] | None = None
        self._containerd: subprocess.Popen[bytes] | None = None
        number = random.randrange(1, 255)
        self._namespace = f"docker-{os.getpid()}-{number}"
        self._link = f"dk{os.getpid()}-{number}"
        self._subnet = f"10.213.{number}"

    @property
    def host(self) -> str:
        """This machine's end of the pair."""
        return f"{self._subnet}.1"

    @property
    def url(self) -> str:
        """A socket."""
        return f"unix://{self._folder / 'docker.sock'}"

    def run(self, *arguments: str, check: bool = True) -> str:
        """Runs ``docker ARGUMENTS``; returns its standard output."""
        return _run("docker", "--host", self.url, *arguments, check=check)

    def start(self) -> None:
        """Starts the daemon; returns once it serves."""
        at, sock = self._folder, self._folder / "containerd.sock"
        if self._containerd is None:
            # By itself, as distributions have it: the daemon's own stays behind when the daemon is killed.
            (at / "containerd.toml").write_text(_CONTAINERD)
            self._containerd = self._begin(
                *("containerd", f"--config={at / 'containerd.toml'}", f"--address={sock}"),
                *(f"--root={at / 'containerd'}", f"--state={at / 'state'}"),
            )
            wait_until(sock.exists, what="containerd", seconds=_SECONDS)
        (at / "daemon.json").write_text(json.dumps(self._settings))
        self._daemon = self._begin(
            *("nsenter", f"--net=/run/netns/{self._namespace}", "dockerd", f"--host={self.url}"),
            *(f"--containerd={sock}", f"--data-root={at / 'data'}", f"--exec-root={at / 'exec'}"),
            *(f"--pidfile={at / 'pid'}", f"--config-file={at / 'daemon.json'}"),
        )
        wait_until(lambda: "Server Version" in self.run("info", check=False), what="Docker", seconds=_SECONDS)

    def _begin(self, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end_containers_with_daemon(self) -> None:
        """Has containers end with the daemon, which goes on: so it is where nobody has set anything."""
        self._settings["live-restore"] = False
        (self._folder / "daemon.json").write_text(json.dumps(self._settings))
        assert self._daemon is not None
        self._daemon.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """Kills the daemon; containers go on."""
        daemon, self._daemon = self._daemon, None
        if daemon is not None:
            daemon.kill()
            daemon.wait(_SECONDS)

    def stop(self) -> None:
        """Ends containers and the daemon."""
        if left := self.run("ps", "--all", "--quiet", check=False).split():
            self.run("rm", "--force", *left, check=False)
        for process in (self._daemon, self._containerd):
            if process is not None:
                process.terminate()
                process.wait(_SECONDS)

    def join(self) -> None:
        """Makes its network namespace, from which this machine is reached."""
        inside = ("ip", "-n", self._namespace)
        _run("ip", "netns", "add", self._namespace)
        pair = ("type", "veth", "peer", "name", "eth0", "netns", self._namespace)
        _run("ip", "link", "add", self._link, *pair)
        _run("ip", "address", "add", f"{self.host}/30", "dev", self._link)
        _run("ip", "link", "set", self._link, "up")
        _run(*inside, "address", "add", f"{self._subnet}.2/30", "dev", "eth0")
        for name in ("lo", "eth0"):
            _run(*inside, "link", "set", name, "up")
        _run(*inside, "route", "add", "default", "via", self.host)

    def leave(self) -> None:
        """Removes the namespace, and what is mounted in the folder."""
        _run("ip", "netns", "delete", self._namespace, check=False)
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed([one for one in mounted if one.startswith(f"{self._folder}/")]):
            _run("umount", "--lazy", place, check=False)


@contextmanager
def running_docker(*, subnets: str = "172.29.0.0/16") -> Iterator[DockerService]:
    """Docker with the image of the tests; skips the test where it is not installed."""
    if any(shutil.which(program) is None for program in ("dockerd", "docker", "ip")) or os.geteuid() != 0:
        missing("dockerd, docker and ip are not here, or not as root: tools/install_engines.sh installs them")
    folder = Path(tempfile.mkdtemp(prefix="docker-", dir="/tmp"))
    service = DockerService(folder, subnets=subnets)
    try:
        service.join()
        service.start()
        service.run("import", str(root_file_system()), IMAGE)
        yield service
    finally:
        service.stop()
        service.leave()
        shutil.rmtree(folder)


def _run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS * 5)
    assert not check or done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
    return done.stdout
