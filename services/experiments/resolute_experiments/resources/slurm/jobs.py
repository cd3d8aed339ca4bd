"""What Slurm's commands print, as values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from resolute.errors import DataLossError

_COLUMNS = ("JobID", "Name", "State", "Reason", "exit_code", "RestartCnt", "NodeList")
JOB_FORMAT = ",".join(f"{column}:|" for column in _COLUMNS)
"""What ``squeue --Format`` is given so that ``parse_jobs`` can read its lines.

Not JSON: ``squeue --json`` of Slurm 22.05 prints every job of the cluster, whichever are asked for.
"""
NODE_FORMAT = "NodeList:|,StateLong:|,CPUs:|,Gres:|"
"""What ``sinfo --Format`` is given so that ``parse_nodes`` can read its lines."""


class JobState(Enum):
    """How far a job is."""

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
    """A job as Slurm sees it."""

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
    exit_code: int
    """Of one that ended, the code of its script; negative for the signal that ended it."""
    restarts: int
    """How often Slurm has requeued it."""
    nodes: str
    """Its nodes as Slurm writes them, such as ``node[0-1]``; empty while it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as Slurm sees it."""

    name: str
    """Its name."""
    state: str
    """Slurm's word for its state."""
    cpus: int
    """Its processor cores."""
    gres: str
    """Its generic resources as Slurm writes them, such as ``gpu:a100:8``; empty without any."""

    @property
    def usable(self) -> bool:
        """Whether it takes jobs, now or after those that it has."""
        return not self.state.startswith(_AWAY) and not self.state.endswith("*")


def parse_jobs(output: str) -> tuple[Job, ...]:
    """Reads lines of ``squeue``, by the job's number.

    Raises:
        DataLossError: A line is not what ``JOB_FORMAT`` asks for.
    """
    jobs = (_job(line) for line in output.splitlines() if line.strip())
    return tuple(sorted(jobs, key=lambda job: job.id))


def parse_nodes(output: str) -> tuple[Node, ...]:
    """Reads lines of ``sinfo``, by name; a node of several partitions counts once.

    Raises:
        DataLossError: A line is not what ``NODE_FORMAT`` asks for.
    """
    nodes: dict[str, Node] = {}
    for line in filter(str.strip, output.splitlines()):
        name, state, cpus, gres = _fields(line, command="sinfo", count=4)
        nodes[name] = Node(
            name=name, state=state, cpus=_number(cpus, line), gres="" if gres == "(null)" else gres
        )
    return tuple(nodes[name] for name in sorted(nodes))


def _job(line: str) -> Job:
    number, name, word, reason, status, restarts, nodes = _fields(line, command="squeue", count=len(_COLUMNS))
    state = _STATE_OF.get(word)
    if state is None:
        raise DataLossError(f"job {number} is in a state that is not known of Slurm: {word}")
    return Job(
        id=_number(number, line),
        name=name,
        state=state,
        slurm_state=word,
        reason="" if reason in _NO_REASON else reason,
        exit_code=os.waitstatus_to_exitcode(_number(status, line)),
        restarts=_number(restarts, line),
        nodes=nodes,
    )


def _fields(line: str, *, command: str, count: int) -> Sequence[str]:
    fields = [field.strip() for field in line.split("|")]
    # A bar follows each field, the last one too.
    if len(fields) != count + 1 or fields[-1]:
        raise DataLossError(f"{command} printed a line that is not {count} fields: {line[:200]!r}")
    return fields[:-1]


def _number(field: str, line: str) -> int:
    if not field.isdecimal() or len(field) > 18:
        raise DataLossError(f"Slurm printed {field[:40]!r} where a number belongs: {line[:200]!r}")
    return int(field)
