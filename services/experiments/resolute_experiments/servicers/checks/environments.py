"""Bounds of the environment reports of runs."""

from __future__ import annotations

from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment
from resolute_serving.validation import invalid

MAX_PACKAGES = 5000
_MAX_GPUS = 100
_MAX_BYTES = 256 * 1024


def check_environment(environment: RunEnvironment) -> None:
    """Checks the size of an environment.

    Raises:
        InvalidArgumentError: It has too much of something.
    """
    if len(environment.packages) > MAX_PACKAGES:
        raise invalid(
            "environment.packages",
            f"environment.packages has {len(environment.packages)} entries; at most {MAX_PACKAGES} are kept",
        )
    if len(environment.gpus) > _MAX_GPUS:
        raise invalid(
            "environment.gpus",
            f"environment.gpus has {len(environment.gpus)} entries; at most {_MAX_GPUS} are kept",
        )
    if environment.ByteSize() > _MAX_BYTES:
        raise invalid(
            "environment", f"environment has {environment.ByteSize()} bytes; at most {_MAX_BYTES} are kept"
        )
