"""The software and the machine of a run, as plain immutable values."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.api.experiments.v1 import run_environment_pb2
from resolute.contracts.messages import from_message


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecord:
    """The software and the machine of a run, recorded when it started."""

    host_name: str
    platform: str
    python_version: str
    python_path: str
    packages: dict[str, str]
    """Versions by name."""
    gpu_driver: str
    """Empty where there is none."""
    gpus: tuple[str, ...]
    cuda_version: str
    """Of the host; empty for none."""


def environment(message: run_environment_pb2.RunEnvironment) -> EnvironmentRecord:
    """Converts an environment."""
    return from_message(
        EnvironmentRecord,
        message,
        packages={package.name: package.version for package in message.packages},
    )
