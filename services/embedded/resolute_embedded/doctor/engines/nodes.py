"""Checks on nodes, for engines that can run checks there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from resolute_embedded.doctor.engines.contact import opened
from resolute_embedded.doctor.findings import Finding, Status
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.protocol import ChecksNodes, NodeCheck
from resolute_engines.settings import EngineSettings

_STATUSES = {True: Status.OK, None: Status.WARNING, False: Status.FAULT}


def check_nodes(engine: EngineSettings, state: StateDirectory) -> Iterator[Finding]:
    """Has an engine look from its nodes, which costs a job of seconds; nothing where it cannot."""
    for check in asyncio.run(_checks(engine, state)):
        yield Finding(
            subject=f"nodes of pool {check.pool}" if check.pool else f"nodes of engine {engine.name}",
            status=_STATUSES[check.usable],
            detail=check.detail,
            remedy=check.remedy,
        )


async def _checks(engine: EngineSettings, state: StateDirectory) -> Sequence[NodeCheck]:
    checker = opened(engine, state)
    try:
        return await checker.check_nodes() if isinstance(checker, ChecksNodes) else ()
    finally:
        await checker.close()
