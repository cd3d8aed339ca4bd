"""Podman with settings of its own, and Docker's API served by it for as long as the demonstration lasts."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from image_build.commands import run

_SETTINGS = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
events_logger = "file"
cgroup_manager = "cgroupfs"
[network]
network_backend = "netavark"
"""
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0
_PAUSE_SECONDS = 0.1


def use_own_settings(folder: Path) -> None:
    """Points this process and its children at settings that any Linux with Podman can run.

    Args:
        folder: Where to write them.
    """
    settings = folder / "containers.conf"
    settings.write_text(_SETTINGS)
    os.environ["CONTAINERS_CONF"] = str(settings)
    os.environ["BUILDAH_ISOLATION"] = "chroot"
    if not Path("/run/systemd/system").is_dir():
        # Podman has systemd run health checks; without that it would start no container that has one.
        os.environ["DISABLE_HC_SYSTEMD"] = "true"


@contextmanager
def bridge(name: str, image: str) -> Iterator[str]:
    """Makes a network of this machine and its containers alone; gives the machine's address there.

    Args:
        name: Name of the network and of the container that keeps it.
        image: Any image with ``sleep``.
    """
    remove_bridge(name)
    try:
        run(["podman", "network", "create", name])
        # Podman has the address as long as a container is on the network.
        run(
            [
                "podman",
                "run",
                "--detach",
                f"--name={name}",
                f"--network={name}",
                "--entrypoint=sleep",
                image,
                "infinity",
            ]
        )
        yield str(json.loads(run(["podman", "network", "inspect", name]))[0]["subnets"][0]["gateway"])
    finally:
        remove_bridge(name)


def remove_bridge(name: str) -> None:
    """Removes what a demonstration left that was killed outright, or that ends."""
    run(["podman", "rm", "--force", "--time=0", "--ignore", name], check=False)
    run(["podman", "network", "rm", "--force", name], check=False)


@contextmanager
def serving(folder: Path) -> Iterator[Path]:
    """Serves Docker's API on a socket in a folder; gives the socket.

    Raises:
        SystemExit: Podman does not serve.
    """
    socket, log = folder / "engine.sock", folder / "engine.log"
    socket.unlink(missing_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["podman", "system", "service", "--time=0", f"unix://{socket}"], stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"podman does not serve Docker's API on {socket}; {log} says why")
            time.sleep(_PAUSE_SECONDS)
        # The experiments service is in the group of root, and no other process is.
        socket.chmod(0o660)
        yield socket
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        socket.unlink(missing_ok=True)


def remove_runs(label: str) -> None:
    """Removes containers, volumes and networks that have a label.

    Args:
        label: ``NAME=VALUE``.
    """
    for kind, listing in (
        ("container", ["ps", "--all"]),
        ("volume", ["volume", "ls"]),
        ("network", ["network", "ls"]),
    ):
        ids = run(["podman", *listing, "--quiet", f"--filter=label={label}"]).split()
        if ids:
            run(["podman", kind, "rm", "--force", *ids], check=False)
