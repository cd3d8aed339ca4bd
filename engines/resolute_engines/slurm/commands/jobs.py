"""Parses the output of Slurm's commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from resolute.errors import DataLossError

JOB_FORMAT = "JobID:|,State:|,Reason:|,Name:|"
"""What ``squeue --Format`` is given so that ``parse_jobs`` can read its lines.

The name comes last: those of other jobs of the user may have any characters.

Not JSON: ``squeue --json`` of Slurm 22.05 prints every job of the cluster, whichever are asked for.
"""
NODE_FORMAT = "NodeList:|,StateLong:|,Gres:|"
"""What ``sinfo --Format`` is given so that ``parse_nodes`` can read its lines."""
_NODE_FIELDS = 3


class JobState(Enum):
    """The state of a job."""

    QUEUED = "QUEUED"
    """It waits for nodes."""
    STARTING = "STARTING"
    """It has nodes, which get ready."""
    RUNNING = "RUNNING"
    """Its processes run, or are being ended."""
    ENDED = "ENDED"
    """It holds nothing any more."""


_STATES = {
    JobState.QUEUED: "PENDING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
    JobState.STARTING: "CONFIGURING",
    JobState.RUNNING: "RUNNING COMPLETING RESIZING SIGNALING STAGE_OUT STOPPED SUSPENDED",
    JobState.ENDED: (
        "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED "
        "RECONFIG_FAIL REVOKED TIMEOUT"
    ),
}
_STATE_OF = {word: state for state, words in _STATES.items() for word in words.split()}
_NO_REASON = frozenset({"", "None"})
_AWAY = ("down", "drain", "fail", "maint", "power", "reboot", "unknown", "blocked", "inval", "perfctrs")
"""How the words begin for states of nodes that take no jobs; a star after a word says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A Slurm job with its state."""

    id: int
    """Slurm's number of it. A requeued job keeps it."""
    name: str
    """Its name."""
    state: JobState
    """How far it is."""
    slurm_state: str
    """Slurm's own word for that, such as ``COMPLETING`` or ``NODE_FAIL``."""
    reason: str
    """Why it waits or ended, in Slurm's word, such as ``Resources``; empty where Slurm gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Slurm node with its state."""

    name: str
    """Its name."""
    state: str
    """Slurm's word for its state."""
    gres: str
    """Its generic resources as Slurm writes them, such as ``gpu:a100:8``; ``(null)`` without any."""

    @property
    def usable(self) -> bool:
        """Whether it takes jobs, now or after those that it has."""
        return not self.state.startswith(_AWAY) and not self.state.endswith("*")


def parse_jobs(output: str, *, named: Callable[[str], bool]) -> tuple[Job, ...]:
    """Reads lines of ``squeue``, by the job's number.

    Args:
        output: The lines.
        named: Whether a job of a name is wanted. Lines of others are not looked at.

    Raises:
        DataLossError: A line is not what ``JOB_FORMAT`` asks for.
    """
    split = (line.strip().removesuffix("|").rpartition("|") for line in output.splitlines())
    jobs = (_job(fields, name) for fields, _, name in split if named(name))
    return tuple(sorted(jobs, key=lambda job: job.id))


def parse_nodes(output: str) -> tuple[Node, ...]:
    """Reads lines of ``sinfo``, by name; a node of several partitions counts once.

    Raises:
        DataLossError: A line is not what ``NODE_FORMAT`` asks for.
    """
    nodes: dict[str, Node] = {}
    for line in filter(str.strip, output.splitlines()):
        fields = [field.strip() for field in line.split("|")]
        # A bar follows each field, the last one too.
        if len(fields) != _NODE_FIELDS + 1:
            raise DataLossError(f"sinfo printed a line that is not {_NODE_FIELDS} fields: {line[:200]!r}")
        name, state, gres, _ = fields
        nodes[name] = Node(name=name, state=state, gres=gres)
    return tuple(nodes[name] for name in sorted(nodes))


def state_of(word: str) -> JobState:
    """How far a job is, by Slurm's word for it."""
    # A word that only newer versions have: of jobs that ended, Slurm soon says nothing any more.
    return _STATE_OF.get(word, JobState.RUNNING)


def _job(fields: str, name: str) -> Job:
    number, _, rest = fields.partition("|")
    word, bar, reason = rest.partition("|")
    if not bar or not number.isdecimal():
        raise DataLossError(f"squeue printed a line that is not a job: {fields[:200]!r}")
    return Job(
        id=int(number),
        name=name,
        state=state_of(word),
        slurm_state=word,
        reason="" if reason in _NO_REASON else reason,
    )
