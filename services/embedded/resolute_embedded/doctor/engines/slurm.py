"""Checks of Slurm: nodes in the partition of each pool, with GPUs if slots are GPUs.

They also check for accounting, which is optional.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from resolute.errors import ResoluteError, UnavailableError
from resolute_embedded.doctor.engines.contact import page_of
from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_engines.settings import EngineSettings, parse_options
from resolute_engines.slurm.client import SlurmClient
from resolute_engines.slurm.factory import commands_of, pools_of
from resolute_engines.slurm.settings import SlurmEngineOptions, SlurmPoolOptions


def check_slurm(settings: EngineSettings) -> Iterator[Finding]:
    """Looks at the partition of each pool, and whether accounting tells how jobs ended."""
    engine = parse_options(SlurmEngineOptions, settings.options, at=settings.where)
    client = SlurmClient(commands_of(engine, os.environ))
    for name, pool in pools_of(settings, engine).items():
        try:
            yield asyncio.run(_partition(f"partition of pool {name}", client, pool))
        except ResoluteError as error:
            yield fault(f"partition of pool {name}", str(error), remedy=page_of(settings))
    yield asyncio.run(_accounting(f"accounting of engine {settings.name}", client))


async def _partition(subject: str, client: SlurmClient, pool: SlurmPoolOptions) -> Finding:
    nodes = await client.nodes(partition=pool.partition)
    named = f"partition {pool.partition}" if pool.partition else "the cluster"
    if not nodes:
        return fault(
            subject,
            f"{named} has no nodes, or Slurm does not know it",
            remedy="`sinfo` lists the partitions; name one of them by `partition` of the pool",
        )
    usable = [node for node in nodes if node.usable]
    if not usable:
        return warning(
            subject,
            f"none of the {len(nodes)} nodes of {named} takes jobs",
            remedy="`sinfo --list-reasons` says why; `scontrol update nodename=NODE state=resume`",
        )
    if pool.slot_type == "gpu" and not any("gpu" in node.gres for node in usable):
        return fault(
            subject,
            f"no node of {named} has GPUs (GresTypes=gpu), and the slots of the pool are GPUs",
            remedy="slot_type: cpu for slots that are processors, or declare the GPUs in gres.conf",
        )
    return good(subject, f"{len(usable)} of {len(nodes)} nodes of {named} take jobs")


async def _accounting(subject: str, client: SlurmClient) -> Finding:
    try:
        kept = await client.accounting.kept()
    except UnavailableError as failure:
        return warning(
            subject,
            f"it cannot tell how jobs ended that Slurm's controller has forgotten: {failure}",
            remedy="start slurmdbd, if the cluster keeps accounting; `sacct` must answer where `squeue` does",
        )
    if kept:
        return good(subject, "`sacct` answers")
    return good(subject, "there is none: how a job ended is known until MinJobAge is over")
