"""systemd units, read and run without systemd: what they say is executed as a unit's processes would be."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_STOP_SECONDS = 60.0


@dataclass
class UnitProcess:
    """A unit that can be started, killed and stopped.

    Args:
        name: Name of the unit, with its instance.
        settings: What the section ``[Service]`` says, in order.
        log: Takes what its processes say.
    """

    name: str
    settings: Sequence[tuple[str, str]]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Runs what comes before the start, then starts its process."""
        environment = self._environment()
        with self.log.open("ab") as log:
            for command in self._all("ExecStartPre"):
                subprocess.run(shlex.split(command), env=environment, stdout=log, stderr=log, check=True)
            (command,) = self._all("ExecStart")
            self.process = subprocess.Popen(shlex.split(command), env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kills its process, and nothing that this has started."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stops its process as systemd does."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _all(self, key: str) -> list[str]:
        return [value for name, value in self.settings if name == key]

    def _environment(self) -> dict[str, str]:
        base = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_"))}
        for path in self._all("EnvironmentFile"):
            base |= variables_of(Path(path))
        return base


def variables_of(path: Path) -> dict[str, str]:
    """Reads an environment file."""
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def read_unit(path: Path, *, instance: str, replaced: Mapping[str, str], log: Path) -> UnitProcess:
    """Reads a unit.

    Args:
        path: The file.
        instance: What ``%i`` stands for.
        replaced: Paths of a real machine, and what stands for them here.
        log: Takes what its processes say.
    """
    text = replace_all(path.read_text().replace("%i", instance), replaced)
    settings, section = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            settings.append((name, value))
    return UnitProcess(path.name.replace("@", f"@{instance}"), settings, log)


def replace_all(text: str, replaced: Mapping[str, str]) -> str:
    """Replaces every text."""
    for before, after in replaced.items():
        text = text.replace(before, after)
    return text
