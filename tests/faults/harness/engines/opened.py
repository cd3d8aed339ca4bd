"""Starts an engine by its name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.harness.engines.engine import FaultEngine
from faults.harness.engines.local import LocalEngine

LOCAL = "local"
ENGINES = (LOCAL, "container", "slurm", "kubernetes", "ray")


@contextmanager
def opened(name: str, folder: Path, *, dice: random.Random) -> Iterator[FaultEngine]:
    """An engine whose daemons run until the block ends; skips where they are not installed.

    Args:
        name: One of ``ENGINES``.
        folder: For what it keeps.
        dice: Decides how it is hit.
    """
    # Each wants packages that the others do without.
    if name == "container":
        from faults.harness.engines.container import running_podman

        with running_podman(folder, dice=dice) as podman:
            yield podman
    elif name == "slurm":
        from faults.harness.engines.slurm import attacked_slurm

        with attacked_slurm(folder, dice=dice) as slurm:
            yield slurm
    elif name == "kubernetes":
        from faults.harness.engines.kubernetes import attacked_kubernetes

        with attacked_kubernetes(dice=dice) as kubernetes:
            yield kubernetes
    elif name == "ray":
        from faults.harness.engines.ray import attacked_ray

        with attacked_ray(dice=dice) as ray:
            yield ray
    else:
        yield LocalEngine()
