"""Submits, lists and ends jobs by name. A name stands for one job, even if it is submitted several times."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_engines.slurm.commands.accounting import Accounting
from resolute_engines.slurm.commands.jobs import (
    JOB_FORMAT,
    NODE_FORMAT,
    Job,
    JobState,
    Node,
    parse_jobs,
    parse_nodes,
)
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.commands.sbatch_errors import refusal

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Names of jobs: no comma, which separates them in the commands, and no bar, which separates columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """The specification of a job."""

    name: str
    """Names the job: letters, digits, dots, underscores and hyphens."""
    script: str
    """The script that runs on the first node, in the environment that Slurm's commands have where they run.

    It may hold secrets: Slurm shows it to its owner only.
    """
    nodes: int = 1
    """Number of nodes; on each of them ``srun`` starts one process."""
    output: str
    """File of the script's output, as ``sbatch --output`` takes it; the nodes must reach it."""
    options: tuple[str, ...] = ()
    """Further options of ``sbatch``."""


class SlurmClient:
    """The Slurm jobs of this user.

    Args:
        commands: Runs Slurm's commands.
    """

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self.accounting = Accounting(commands)
        """What the cluster keeps of jobs that its controller has forgotten."""

    async def submit(self, spec: JobSpec) -> Job:
        """Submits a job, unless one of its name is known already; returns it.

        A submission of which the answer was lost may arrive after the next one. Slurm then holds back the
        later job until the first has ended (``singleton``), and ``cancel`` ends both.

        Raises:
            InvalidArgumentError: The name is not one.
            FailedPreconditionError: Slurm refuses it; the message has the reason.
            QuotaError: Slurm takes no more jobs now; the message has the reason.
            UnavailableError: Slurm does not answer: submit it again.
        """
        if job := await self.find(spec.name):
            return job
        await self._commands.run(
            [
                "sbatch",
                *spec.options,
                "--parsable",
                f"--job-name={spec.name}",
                f"--nodes={spec.nodes}",
                "--ntasks-per-node=1",
                f"--output={spec.output}",
                "--dependency=singleton",
                # Without an environment to begin with, Slurm has a login shell on the node make one, and
                # sleeps for a second until that is gone.
                "--export=ALL",
            ],
            stdin=spec.script.encode(),
            refusal=refusal,
        )
        submitted = await self.find(spec.name)
        if submitted is None:
            raise FailedPreconditionError(
                f"Slurm accepted job {spec.name} and does not know it: raise MinJobAge in slurm.conf"
            )
        return submitted

    async def find(self, name: str) -> Job | None:
        """Returns the job of a name; of several, the first that was submitted.

        Slurm's controller forgets jobs some minutes after their end (``MinJobAge``), and then there is none:
        ``accounting`` may have it.

        Raises:
            InvalidArgumentError: The name is not one.
            UnavailableError: Slurm does not answer.
        """
        _check(name)
        jobs = await self._jobs(f"--name={name}", "--states=all", named=lambda other: other == name)
        return jobs[0] if jobs else None

    async def live(self, *, prefix: str) -> tuple[Job, ...]:
        """Returns every job that has not ended and whose name begins so.

        Raises:
            UnavailableError: Slurm does not answer.
        """
        jobs = await self._jobs(named=lambda name: name.startswith(prefix))
        return tuple(job for job in jobs if job.state is not JobState.ENDED)

    async def cancel(self, name: str) -> None:
        """Ends every job of a name, or takes it from the queue; one that ended stays as it is.

        Raises:
            InvalidArgumentError: The name is not one.
            UnavailableError: Slurm does not answer.
        """
        _check(name)
        await self._commands.run(["scancel", "--me", f"--name={name}"])

    async def nodes(self, *, partition: str | None = None) -> tuple[Node, ...]:
        """Returns the nodes of a partition, or of the cluster.

        Raises:
            UnavailableError: Slurm does not answer.
        """
        return parse_nodes(
            await self._commands.run(
                [
                    *("sinfo", "--noheader", "--Node", "--Format", NODE_FORMAT),
                    *([f"--partition={partition}"] if partition else []),
                ]
            )
        )

    async def _jobs(self, *filters: str, named: Callable[[str], bool]) -> tuple[Job, ...]:
        printed = await self._commands.run(["squeue", "--me", "--noheader", *filters, "--Format", JOB_FORMAT])
        return parse_jobs(printed, named=named)


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"{name[:80]!r} cannot name a job: letters, digits, dots, underscores and hyphens can"
        )
