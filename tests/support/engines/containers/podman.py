"""Docker's API served by a real Podman, and an address that containers reach."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.daemons.containers import Podman
from support.engines.containers.image import IMAGE, root_file_system
from support.waiting import wait_until

_NETWORK = f"resolute-test-{os.getpid()}"


@dataclass(frozen=True)
class PodmanService:
    """Podman while it serves Docker's API."""

    podman: Podman
    socket: Path
    host: str
    """Address of this machine that containers reach, and nobody else does."""
    apart: tuple[str, ...] = ("--opt=isolate=true",)

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"unix://{self.socket}"

    def run(self, *arguments: str, check: bool = True) -> str:
        """Runs ``podman ARGUMENTS``; returns its standard output."""
        return self.podman.run(*arguments, check=check)

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[bytes]]:
        """Serves for a while."""
        self.socket.unlink(missing_ok=True)
        process = subprocess.Popen(
            ["podman", "system", "service", "--time=0", self.url], env=self.podman.environment
        )
        try:
            wait_until(self.socket.exists, what="Podman to serve")
            yield process
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def podman_service(folder: Path) -> Iterator[PodmanService]:
    """Podman with an image and a bridge; skips the test where it is not installed."""
    podman = Podman.found(folder)
    _make_image(podman)
    # A bridge is there while a container is on it.
    podman.run("network", "create", _NETWORK)
    holder = podman.run("run", "--detach", "--network", _NETWORK, IMAGE, "sleep", "infinity").strip()
    try:
        described = json.loads(podman.run("network", "inspect", _NETWORK))[0]
        yield PodmanService(podman, folder / "podman.sock", described["subnets"][0]["gateway"])
    finally:
        podman.run("rm", "--force", "--time", "0", holder)
        podman.run("network", "rm", "--force", _NETWORK, check=False)


def _make_image(podman: Podman) -> None:
    if podman.run("image", "exists", IMAGE, check=False) == "" and IMAGE in podman.run("images"):
        return
    podman.run("import", str(root_file_system()), IMAGE)
