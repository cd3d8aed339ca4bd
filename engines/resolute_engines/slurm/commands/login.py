"""Runs Slurm's commands on a login node, by the `ssh` of this machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from resolute.errors import UnavailableError

SSH_FAILED = 255
"""Exit code of `ssh` when the fault is its own: Slurm's commands have others."""
_OPTIONS = (
    # There is no terminal to answer questions at.
    "BatchMode=yes",
    "ConnectTimeout=15",
    # Banners of sites are no complaints.
    "LogLevel=ERROR",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginNode:
    """The machine that has Slurm's commands."""

    destination: str
    """Destination of `ssh`: ``user@host``, or a host of its settings."""
    config: str = ""
    """File with settings of `ssh`; empty for the user's own."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that the commands have there beyond those of the session, such as ``SLURM_CONF``."""

    def words(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """The command of this machine that runs one there, quoted for the shell that reads it there."""
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        command = shlex.join([*(["env", *variables] if variables else []), *arguments])
        return (
            "ssh",
            *(["-F", self.config] if self.config else ()),
            *(word for option in _OPTIONS for word in ("-o", option)),
            *("-T", "-x", self.destination, "--", command),
        )

    def failure(self, complaint: str) -> UnavailableError:
        """What `ssh` could not do."""
        return UnavailableError(
            f"login node {self.destination} cannot be reached: {complaint}; see that "
            f"`ssh -o BatchMode=yes {self.destination} true` works for the user of the services"
        )
