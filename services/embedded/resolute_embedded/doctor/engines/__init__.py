"""Checks of the configured engines: their settings, their answers, and the needs of trials."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from resolute.errors import ResoluteError
from resolute_embedded.doctor.engines.address import check_address
from resolute_embedded.doctor.engines.contact import check_contact
from resolute_embedded.doctor.engines.nodes import check_nodes
from resolute_embedded.doctor.engines.slurm import check_slurm
from resolute_embedded.doctor.findings import Finding, Status, fault
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.settings import LOCAL, EngineSettings, resources_of

Steps: TypeAlias = Callable[[EngineSettings], Iterator[Finding]]
"""Looks at what trials want of an engine that answers."""


def check_engines(state: StateDirectory, *, nodes: bool = False) -> Iterator[Finding]:
    """Looks at each engine but this machine's own, step by step.

    Args:
        state: The home.
        nodes: Whether engines that can are to look from their nodes too, which costs a job.
    """
    try:
        settings = resources_of(os.environ, state.home.path)
    except ResoluteError as error:
        yield fault("engines", str(error), remedy="mend the settings, and start the cluster again")
        return
    for engine in settings.engines if settings is not None else ():
        if engine.type != LOCAL:
            yield from _check(engine, state, nodes=nodes)


def _check(engine: EngineSettings, state: StateDirectory, *, nodes: bool) -> Iterator[Finding]:
    contact = check_contact(engine, state)
    yield contact
    if contact.status is not Status.OK:
        # All else would fail of the same.
        return
    yield from check_address(engine, state)
    steps = _STEPS.get(engine.type)
    if steps is not None:
        yield from steps(engine)
    if nodes:
        yield from check_nodes(engine, state)


def _containers(engine: EngineSettings) -> Iterator[Finding]:
    # Its library is an extra, and is there: the engine has answered.
    from resolute_embedded.doctor.engines.containers import check_containers

    yield from check_containers(engine)


def _kubernetes(engine: EngineSettings) -> Iterator[Finding]:
    from resolute_embedded.doctor.engines.kubernetes import check_kubernetes

    yield from check_kubernetes(engine)


_STEPS: Mapping[str, Steps] = {"container": _containers, "kubernetes": _kubernetes, "slurm": check_slurm}
