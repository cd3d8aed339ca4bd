"""`resolute doctor`: what is wrong with the cluster of this machine, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from resolute_embedded.doctor.databases import examine_databases
from resolute_embedded.doctor.findings import Finding, Verdict
from resolute_embedded.doctor.home import examine_home
from resolute_embedded.doctor.machine import examine_machine
from resolute_embedded.doctor.serving import examine_serving
from resolute_embedded.state import State

__all__ = ["Finding", "Verdict", "examine"]


def examine(state: State) -> Iterator[Finding]:
    """Looks at everything that a cluster of this machine lives on; changes nothing that lasts.

    Args:
        state: The home.

    Yields:
        What was found, good and bad, each as soon as it is known.
    """
    yield from examine_machine(state)
    yield from examine_home(state)
    yield from examine_databases(state)
    yield from examine_serving(state)
