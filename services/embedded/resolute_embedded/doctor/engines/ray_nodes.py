"""The nodes of engines of Ray: whether they have Resolute. They share no storage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from resolute.contracts.distribution import version
from resolute.errors import ResoluteError
from resolute_embedded.doctor.engines.installation import CODE, broken
from resolute_embedded.doctor.findings import Finding, fault, good
from resolute_engines.ray.client import Driver
from resolute_engines.ray.settings import RayEngineOptions
from resolute_engines.settings import EngineSettings, parse_options

_NODES_SECONDS = 60.0
_CALL_SECONDS = 120.0
"""How long the driver may take, its start and the wait for nodes included."""
_PAGE = "see docs/ray.md"


def check_ray_nodes(settings: EngineSettings) -> Iterator[Finding]:
    """Runs a task of seconds on every node of an engine of Ray."""
    subject = f"nodes of engine {settings.name}"
    try:
        engine = parse_options(RayEngineOptions, settings.options, at=settings.where)
        said = asyncio.run(_said_by_nodes(engine))
    except ResoluteError as error:
        yield fault(subject, str(error), remedy=_PAGE)
        return
    place = engine.python or "the interpreter of Ray's workers"
    if complaints := {node: words for node, words in said.items() if words}:
        remedy = f"install version {version()} there: {_PAGE}"
        yield broken(subject, complaints, nodes=len(said), place=place, remedy=remedy)
    else:
        yield good(subject, f"all {len(said)} have Resolute at {place}")


async def _said_by_nodes(engine: RayEngineOptions) -> dict[str, str]:
    driver = Driver(engine.address, prefix="", python=engine.driver_python, deadline_seconds=_CALL_SECONDS)
    try:
        arguments = ["-c", CODE, version()]
        said: dict[str, str] = await driver.call(
            "complaints", python=engine.python, arguments=arguments, seconds=_NODES_SECONDS
        )
        return said
    finally:
        await driver.close()
