"""The engine ``local``: processes of this machine."""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from faults.harness.cluster_processes import Role, processes_of
from faults.harness.engines.engine import Kill, Place


class LocalEngine:
    """Supervisors are found with the processes of the home, and the control plane is the engine's daemon."""

    host = ""
    variables: Mapping[str, str] = {}
    fallen: Collection[str] = ()

    def settings(self, place: Place) -> Mapping[str, Any]:
        """None: it is there without."""
        return {}

    def config(self, place: Place) -> Mapping[str, Any]:
        """Nothing: trials see what the harness sees."""
        return {}

    def victims(self, home: Path) -> Mapping[Role, Sequence[Kill]]:
        """The machine, which takes everything with it at once."""
        return {Role.NODE: [partial(_kill_all, home)]}

    def left_over(self, home: Path) -> Sequence[str]:
        """Processes and run directories."""
        processes = [one for one in processes_of(home) if one.role is not Role.CONTROL_PLANE]
        return [
            *(f"{one.role.value} {one.identity.pid} still runs" for one in processes),
            *(f"the directory of run {path.name} is still there" for path in (home / "runs").iterdir()),
        ]


def _kill_all(home: Path) -> bool:
    # Whoever keeps the cluster up starts the control plane again.
    return sum(one.identity.send(signal.SIGKILL) for one in processes_of(home)) > 0
