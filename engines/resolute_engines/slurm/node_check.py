"""Checks that the nodes of a pool have Resolute and see the directory of the run directories."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.calls.deadlines import in_time
from resolute.contracts.distribution import version
from resolute.errors import ResoluteError
from resolute_engines.kit.installation import CHECK, missing_on
from resolute_engines.protocol import NodeCheck
from resolute_engines.slurm.client import JobSpec, SlurmClient
from resolute_engines.slurm.commands.jobs import Job, JobState
from resolute_engines.slurm.request import SlurmNodes
from resolute_engines.slurm.settings import SlurmPoolOptions

_DEADLINE_SECONDS = 120.0
_PAGE = "see docs/slurm.md"
_POLL_SECONDS = 0.5
_CALL_SECONDS = 30.0
"""How long the job's removal may take, once the deadline is over."""
_ARRIVE_SECONDS = 10.0
"""How long after the job's end files may take to be seen here."""
_GIVEN = "given"
"""File that this machine writes."""
# What a node says is in files of its name: what it has read, and what the code's command printed.
_SCRIPT = """\
#!/bin/sh
srun --kill-on-bad-exit=0 --input=none sh -c '
cd "$1" || exit 1
shift
cat given > "$SLURMD_NODENAME.seen"
"$@" > "$SLURMD_NODENAME.printed" 2>&1 && touch "$SLURMD_NODENAME.sound"
touch "$SLURMD_NODENAME.done"
' look {folder} {code}
exit 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """The result of a check on the nodes of a pool."""

    nodes: tuple[str, ...]
    """Those that take jobs."""
    blind: tuple[str, ...]
    """Those of them that do not see the directory, as far as can be seen here."""
    broken: Mapping[str, str]
    """What the code's command printed on the nodes where it failed."""
    waits: str
    """Why the job did not begin in time, in Slurm's words; empty if it began."""


async def check_pool(
    client: SlurmClient, *, name: str, pool: SlurmPoolOptions, directory: Path, nodes: SlurmNodes
) -> NodeCheck:
    """Checks the nodes of a pool, by one job that lasts seconds.

    Args:
        client: Submits the job.
        name: Name of the pool.
        pool: The pool.
        directory: What this machine and the nodes share.
        nodes: What the nodes have.
    """
    place = nodes.python
    code: tuple[str, ...] = (nodes.python, "-c", CHECK, version())
    if pool.container is not None:
        place = f"{nodes.runtime}/start.sh"
        code = ("test", "-r", place)
    try:
        view = await look_from_nodes(
            client, pool=pool, directory=directory, code=code, deadline_seconds=_DEADLINE_SECONDS
        )
    except ResoluteError as error:
        return NodeCheck(pool=name, usable=False, detail=str(error), remedy=_PAGE)
    except OSError as error:
        return NodeCheck(
            pool=name,
            usable=False,
            detail=f"this machine cannot write to {directory}: {error.strerror}",
            remedy="mount it here as on the nodes, and let the user of the services write to it",
        )
    return _check_of(view, name=name, directory=directory, place=place)


def _check_of(view: NodeView, *, name: str, directory: Path, place: str) -> NodeCheck:
    if not view.nodes:
        remedy = "`sinfo --list-reasons` says why"
        return NodeCheck(pool=name, usable=None, detail="none takes jobs", remedy=remedy)
    if view.waits:
        return NodeCheck(
            pool=name,
            usable=None,
            detail=f"a job on all {len(view.nodes)} of them did not begin in {_DEADLINE_SECONDS:g} s "
            f"({view.waits}), so it is unknown what they see",
            remedy="repeat it when they are less busy",
        )
    if view.blind:
        return NodeCheck(
            pool=name,
            usable=False,
            detail=f"{directory} has other files on {', '.join(view.blind)} than here",
            remedy=f"mount the same storage at {directory} here and on all nodes, for the same user",
        )
    if view.broken:
        return missing_on(view.broken, nodes=len(view.nodes), place=place, page=_PAGE, pool=name)
    detail = f"all {len(view.nodes)} see {directory}, and Resolute at {place}"
    return NodeCheck(pool=name, usable=True, detail=detail)


async def look_from_nodes(
    client: SlurmClient,
    *,
    pool: SlurmPoolOptions,
    directory: Path,
    code: tuple[str, ...],
    deadline_seconds: float,
) -> NodeView:
    """Has every usable node of a pool read and write in the directory, by one job that lasts seconds.

    Args:
        client: Submits the job.
        pool: The pool.
        directory: What this machine and the nodes share.
        code: Command that exits with zero where Resolute can be used.
        deadline_seconds: How long the job may wait and run. It is ended then.

    Raises:
        FailedPreconditionError: Slurm refuses the job.
        UnavailableError: Slurm does not answer.
        OSError: This machine cannot write to the directory.
    """
    nodes = tuple(node.name for node in await client.nodes(partition=pool.partition) if node.usable)
    name = f"resolute-doctor-{uuid.uuid4().hex[:12]}"
    folder = directory / name
    await asyncio.to_thread(_prepare, folder)
    try:
        spec = _spec(name, folder, pool=pool, code=code, nodes=len(nodes))
        job = await _job_over(client, spec, folder=folder, nodes=nodes, deadline_seconds=deadline_seconds)
        return await asyncio.to_thread(_read, folder, nodes, job)
    finally:
        try:
            await in_time(client.cancel(name), _CALL_SECONDS, "the end of the job")
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    (folder / _GIVEN).write_text(folder.name)


def _spec(name: str, folder: Path, *, pool: SlurmPoolOptions, code: tuple[str, ...], nodes: int) -> JobSpec:
    options = [*pool.sbatch_args, *([f"--partition={pool.partition}"] if pool.partition else [])]
    return JobSpec(
        name=name,
        script=_SCRIPT.format(folder=shlex.quote(str(folder)), code=shlex.join(code)),
        nodes=nodes,
        # A node that does not see the directory could not begin a script whose output is there.
        output="/dev/null",
        options=(*options, "--no-requeue", "--time=2"),
    )


async def _job_over(
    client: SlurmClient, spec: JobSpec, *, folder: Path, nodes: tuple[str, ...], deadline_seconds: float
) -> Job | None:
    """Submits a job and waits for its end, and for what it wrote; returns it as it was seen last."""
    if not nodes:
        return None
    clock = asyncio.get_running_loop().time
    deadline = clock() + deadline_seconds
    job: Job | None = await client.submit(spec)
    while job is not None and job.state is not JobState.ENDED and clock() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
        job = await client.find(spec.name)
    deadline = min(deadline, clock() + _ARRIVE_SECONDS)
    while clock() < deadline and not await asyncio.to_thread(_have_all_written, folder, nodes):  # noqa: ASYNC110 - files send no events
        await asyncio.sleep(_POLL_SECONDS)
    return job


def _have_all_written(folder: Path, nodes: tuple[str, ...]) -> bool:
    # A list of names: network file systems remember for long that a single one was not there.
    return {f"{node}.done" for node in nodes} <= set(os.listdir(folder))  # noqa: PTH208 - names alone are wanted


def _read(folder: Path, nodes: tuple[str, ...], job: Job | None) -> NodeView:
    if job is not None and job.state is JobState.QUEUED:
        return NodeView(nodes=nodes, blind=(), broken={}, waits=job.reason or job.slurm_state)
    blind = tuple(node for node in nodes if _text(folder / f"{node}.seen") != folder.name)
    broken = {
        node: _text(folder / f"{node}.printed").strip()[-500:]
        or ("it is not there" if (folder / f"{node}.done").exists() else "it did not end in time")
        for node in nodes
        if node not in blind and not (folder / f"{node}.sound").exists()
    }
    return NodeView(nodes=nodes, blind=blind, broken=broken, waits="")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
