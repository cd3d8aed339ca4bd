"""`resolute doctor`.

It checks the machine, the home directory, the databases, the running cluster and its engines. Each finding
has a remedy.
"""

from __future__ import annotations

from collections.abc import Iterator

from resolute_embedded.doctor.databases import check_databases
from resolute_embedded.doctor.engines import check_engines
from resolute_embedded.doctor.findings import Finding, Status
from resolute_embedded.doctor.home import check_home
from resolute_embedded.doctor.machine import check_machine
from resolute_embedded.doctor.serving import check_services
from resolute_embedded.home.state_directory import StateDirectory

__all__ = ["Finding", "Status", "run_checks"]


def run_checks(state: StateDirectory, *, nodes: bool = False) -> Iterator[Finding]:
    """Looks at everything that a cluster of this machine lives on; changes nothing that lasts.

    Args:
        state: The home.
        nodes: Whether to look from the nodes of engines of Slurm and Ray too, by jobs of seconds.

    Yields:
        What was found, good and bad, each as soon as it is known.
    """
    yield from check_machine(state)
    yield from check_home(state)
    yield from check_databases(state)
    yield from check_services(state)
    yield from check_engines(state, nodes=nodes)
