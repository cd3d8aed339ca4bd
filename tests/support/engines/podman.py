"""Docker's API served by a real Podman, an image with Python alone, and an address that containers reach."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.backends import missing
from support.containers import Podman
from support.waiting import wait_until

ROOT = Path(__file__).parents[3]
IMAGE = "localhost/resolute-test-python"
"""Debian with Python 3.11, and nothing of Resolute."""
_NETWORK = f"resolute-test-{os.getpid()}"
_PACKAGES = "python3,ca-certificates,libstdc++6"


@dataclass(frozen=True)
class PodmanService:
    """Podman while it serves Docker's API."""

    podman: Podman
    socket: Path
    host: str
    """Address of this machine that containers reach, and nobody else does."""

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"unix://{self.socket}"

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
    keeper = podman.run("run", "--detach", "--network", _NETWORK, IMAGE, "sleep", "infinity").strip()
    try:
        described = json.loads(podman.run("network", "inspect", _NETWORK))[0]
        yield PodmanService(podman, folder / "podman.sock", described["subnets"][0]["gateway"])
    finally:
        podman.run("rm", "--force", "--time", "0", keeper)
        podman.run("network", "rm", "--force", _NETWORK, check=False)


def _make_image(podman: Podman) -> None:
    if podman.run("image", "exists", IMAGE, check=False) == "" and IMAGE in podman.run("images"):
        return
    if not any(Path(folder, "mmdebstrap").exists() for folder in ("/usr/bin", "/bin")):
        missing("mmdebstrap is not here: tools/install_engines.sh installs it")
    tar = ROOT / ".cache/engines/python.tar"
    if not tar.exists():
        tar.parent.mkdir(parents=True, exist_ok=True)
        made = tar.with_suffix(".part.tar")
        podman.command(
            ["mmdebstrap", "--quiet", "--variant=essential", f"--include={_PACKAGES}", "bookworm", made],
            timeout=1200,
        )
        made.rename(tar)
    podman.run("import", str(tar), IMAGE)
