"""The nodes of engines of Slurm: whether they see the directory of the runs, and Resolute."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from resolute.contracts.distribution import version
from resolute.errors import ResoluteError
from resolute_embedded.doctor.engines.installation import CODE, broken
from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_engines.settings import EngineSettings, parse_options
from resolute_engines.slurm.client import SlurmClient
from resolute_engines.slurm.factory import commands_of, pools_of
from resolute_engines.slurm.node_check import NodeView, look_from_nodes
from resolute_engines.slurm.settings import SlurmEngineOptions, SlurmPoolOptions

_DEADLINE_SECONDS = 120.0
_PAGE = "see docs/slurm.md"


def check_nodes(settings: EngineSettings) -> Iterator[Finding]:
    """Runs a job of seconds on the nodes of each pool of an engine of Slurm."""
    try:
        engine = parse_options(SlurmEngineOptions, settings.options, at=settings.where)
        pools = pools_of(settings, engine)
    except ResoluteError:
        # The look at the engine itself has told it.
        return
    for name, pool in pools.items():
        yield _look_from(f"nodes of pool {name}", engine, pool)


def _look_from(subject: str, engine: SlurmEngineOptions, pool: SlurmPoolOptions) -> Finding:
    python = engine.python or sys.executable
    code: tuple[str, ...] = (python, "-c", CODE, version())
    place = python
    if pool.container is not None:
        place = f"{engine.runtime}/start.sh"
        code = ("test", "-r", place)
    try:
        sight = asyncio.run(
            look_from_nodes(
                SlurmClient(commands_of(engine, os.environ)),
                pool=pool,
                directory=Path(engine.directory),
                code=code,
                deadline_seconds=_DEADLINE_SECONDS,
            )
        )
    except ResoluteError as error:
        return fault(subject, str(error), remedy=_PAGE)
    except OSError as error:
        return fault(
            subject,
            f"this machine cannot write to {engine.directory}: {error.strerror}",
            remedy="mount it here as on the nodes, and let the user of the services write to it",
        )
    return _finding(subject, sight, directory=engine.directory, place=place)


def _finding(subject: str, sight: NodeView, *, directory: str, place: str) -> Finding:
    if not sight.nodes:
        return warning(subject, "none takes jobs", remedy="`sinfo --list-reasons` says why")
    if sight.waits:
        return warning(
            subject,
            f"a job on all {len(sight.nodes)} of them did not begin in {_DEADLINE_SECONDS:g} s "
            f"({sight.waits}), so nothing is known of what they see",
            remedy="repeat it when they are less busy",
        )
    if sight.blind:
        return fault(
            subject,
            f"what is written to {directory} here and on {', '.join(sight.blind)} is not the same",
            remedy=f"mount the same storage at {directory} here and on all nodes, for the same user",
        )
    if sight.broken:
        remedy = f"install version {version()} there, at a path that all nodes share: {_PAGE}"
        return broken(subject, sight.broken, nodes=len(sight.nodes), place=place, remedy=remedy)
    return good(subject, f"all {len(sight.nodes)} see {directory}, and Resolute at {place}")
