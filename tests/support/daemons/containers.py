"""Podman as tests use it: with settings of their own, so that those of the machine do not matter."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.backends import missing

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


@dataclass(frozen=True)
class Podman:
    """Runs commands of Podman, and of the tools that use it."""

    settings: Path
    registries: Path | None = None
    """What is said of registries; None for what the machine says."""

    @classmethod
    def found(cls, folder: Path) -> Podman:
        """Returns it, or skips the test where it is not installed."""
        if shutil.which("podman") is None or shutil.which("buildah") is None or os.geteuid() != 0:
            missing("podman and buildah are not here, or not as root: tools/install_images.sh installs them")
        settings = folder / "containers.conf"
        settings.write_text(_SETTINGS)
        return cls(settings)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that its commands want."""
        variables = {**os.environ, "CONTAINERS_CONF": str(self.settings), "BUILDAH_ISOLATION": "chroot"}
        if self.registries is not None:
            variables["CONTAINERS_REGISTRIES_CONF"] = str(self.registries)
        return variables

    def run(self, *arguments: str, check: bool = True, timeout: float = 300.0) -> str:
        """Runs ``podman ARGUMENTS``; returns its standard output."""
        return self.command(["podman", *arguments], check=check, timeout=timeout)

    def command(self, command: Sequence[str | Path], *, check: bool = True, timeout: float = 600.0) -> str:
        """Runs a program; returns its standard output. One that fails fails the test."""
        done = subprocess.run(
            [str(part) for part in command],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return done.stdout
