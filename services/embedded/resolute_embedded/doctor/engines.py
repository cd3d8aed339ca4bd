"""The engines of the settings: whether each is understood, and whether it answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from resolute.errors import ResoluteError, UnavailableError
from resolute_embedded.doctor.findings import Finding, Verdict, fault, good
from resolute_embedded.doctor.nodes import check_nodes
from resolute_embedded.state_directory import StateDirectory
from resolute_experiments.resources.engine_environment import EngineEnvironment
from resolute_experiments.resources.registry import open_engine
from resolute_experiments.resources.settings import LOCAL, EngineSettings, resources_of

_DEADLINE_SECONDS = 45.0
_PAGE = "see its section of docs/engines.md"


def check_engines(state: StateDirectory, *, nodes: bool = False) -> Iterator[Finding]:
    """Opens each engine but this machine's own, and asks it what it has of this cluster.

    Args:
        state: The home.
        nodes: Whether to look from the nodes of engines of Slurm too, which costs a job.
    """
    try:
        settings = resources_of(os.environ, state.home.path)
    except ResoluteError as error:
        yield fault("engines", str(error), remedy="mend the settings, and start the cluster again")
        return
    for engine in settings.engines if settings is not None else ():
        if engine.type != LOCAL:
            found = _look_at(engine, state)
            yield found
            if nodes and engine.type == "slurm" and found.verdict is Verdict.OK:
                yield from check_nodes(engine)


def _look_at(engine: EngineSettings, state: StateDirectory) -> Finding:
    subject = f"engine {engine.name}"
    environment = EngineEnvironment(
        # A home that was never used gets no id from somebody who only looks.
        cluster_id=state.cluster_id() if state.cluster_file.exists() else "none",
        address="",
        tls=None,
        outage_timeout=0.0,
        log_wait=0.0,
        runs_directory=state.runs,
        slots=None,
        nodes=1,
    )
    try:
        runs = asyncio.run(_runs_of(engine, environment))
    except UnavailableError as error:
        return fault(subject, str(error), remedy=f"start it, or mend how it is reached: {_PAGE}")
    except ResoluteError as error:
        return fault(subject, str(error), remedy=_PAGE)
    except asyncio.TimeoutError:
        return fault(subject, f"it did not answer in {_DEADLINE_SECONDS:g} s", remedy=_PAGE)
    return good(subject, f"it answers, and has {runs} runs of this cluster")


async def _runs_of(engine: EngineSettings, environment: EngineEnvironment) -> int:
    manager = open_engine(engine, environment)
    try:
        return len(await asyncio.wait_for(manager.leftovers(), _DEADLINE_SECONDS))
    finally:
        await manager.close()
