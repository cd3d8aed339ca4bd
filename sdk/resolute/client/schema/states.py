"""The states of experiments, trials, runs and checkpoints.

The values of members are those of Determined's JSON, such as ``STATE_COMPLETED``; their names are ours.
"""

from __future__ import annotations

from enum import Enum


class ExperimentState(Enum):
    """The state of an experiment.

    Examples:
        >>> from resolute import client
        >>> client.ExperimentState.COMPLETED.is_terminal
        True
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    """A state that this client is too old to know."""
    ACTIVE = "STATE_ACTIVE"
    PAUSED = "STATE_PAUSED"
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED"
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"
    STOPPING_KILLED = "STATE_STOPPING_KILLED"
    STOPPING_ERROR = "STATE_STOPPING_ERROR"
    COMPLETED = "STATE_COMPLETED"
    CANCELED = "STATE_CANCELED"
    ERROR = "STATE_ERROR"
    DELETING = "STATE_DELETING"
    DELETED = "STATE_DELETED"
    DELETE_FAILED = "STATE_DELETE_FAILED"
    QUEUED = "STATE_QUEUED"
    """Active; its trials wait for slots."""
    PULLING = "STATE_PULLING"
    """Active; what its trials need is being fetched."""
    STARTING = "STATE_STARTING"
    """Active; its first processes are starting."""
    RUNNING = "STATE_RUNNING"
    """Active; trials run."""

    @classmethod
    def _missing_(cls, value: object) -> ExperimentState | None:
        return cls.__members__.get(str(value).removeprefix("STATE_"))

    @property
    def is_terminal(self) -> bool:
        """Whether nothing will run any more."""
        return self in _ENDED


class ExperimentKind(Enum):
    """The kind of an experiment.

    Examples:
        >>> from resolute.client.schema.states import ExperimentKind
        >>> ExperimentKind.COMMAND.value
        'COMMAND'
    """

    UNSPECIFIED = "UNSPECIFIED"
    """A kind that this client is too old to know."""
    SEARCH = "SEARCH"
    """Training: its search decides which trials there are."""
    COMMAND = "COMMAND"
    """One command, as one trial."""
    TENSORBOARD = "TENSORBOARD"
    """TensorBoard, as one trial."""


_ENDED = frozenset(
    {
        ExperimentState.COMPLETED,
        ExperimentState.CANCELED,
        ExperimentState.ERROR,
        ExperimentState.DELETING,
        ExperimentState.DELETED,
        ExperimentState.DELETE_FAILED,
    }
)


class TrialState(Enum):
    """The state of a trial.

    Examples:
        >>> from resolute import client
        >>> client.TrialState.RUNNING.holds_slots
        True
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    """A state that this client is too old to know."""
    QUEUED = "STATE_QUEUED"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"
    STOPPING = "STATE_STOPPING_CANCELED"
    PAUSED = "STATE_PAUSED"
    WAITING = "STATE_WAITING"
    """It completed its operation and waits for the search."""
    COMPLETED = "STATE_COMPLETED"
    CANCELED = "STATE_CANCELED"
    ERROR = "STATE_ERROR"
    # Older names: the platform does not tell these apart.
    ACTIVE = "STATE_RUNNING"  # noqa: PIE796 - an alias
    PULLING = "STATE_STARTING"  # noqa: PIE796 - an alias
    STOPPING_COMPLETED = "STATE_STOPPING_CANCELED"  # noqa: PIE796 - an alias
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"  # noqa: PIE796 - an alias
    STOPPING_KILLED = "STATE_STOPPING_CANCELED"  # noqa: PIE796 - an alias
    STOPPING_ERROR = "STATE_STOPPING_CANCELED"  # noqa: PIE796 - an alias

    @classmethod
    def _missing_(cls, value: object) -> TrialState | None:
        return cls.__members__.get(str(value).removeprefix("STATE_"))

    @property
    def is_terminal(self) -> bool:
        """Whether the trial will not run again."""
        return self in {TrialState.COMPLETED, TrialState.CANCELED, TrialState.ERROR}

    @property
    def holds_slots(self) -> bool:
        """Whether its processes have slots."""
        return self in {TrialState.STARTING, TrialState.RUNNING, TrialState.STOPPING}


class RunOutcome(Enum):
    """The outcome of a run."""

    UNSPECIFIED = "UNSPECIFIED"
    """It has not ended."""
    COMPLETED = "COMPLETED"
    PREEMPTED = "PREEMPTED"
    FAILED = "FAILED"
    LOST = "LOST"
    """Its machine or supervisor was lost; this is no restart."""
    KILLED = "KILLED"
    INVALID_HP = "INVALID_HP"


class CheckpointState(Enum):
    """The state of a checkpoint.

    Examples:
        >>> from resolute import client
        >>> client.CheckpointState("COMPLETED")
        <CheckpointState.COMPLETED: 'STATE_COMPLETED'>
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    """A state that this client is too old to know."""
    UPLOADING = "STATE_ACTIVE"
    COMPLETED = "STATE_COMPLETED"
    PARTIALLY_DELETED = "STATE_PARTIALLY_DELETED"
    DELETING = "STATE_DELETING"
    DELETED = "STATE_DELETED"
    ABORTED = "STATE_ERROR"
    # Older names.
    ACTIVE = "STATE_ACTIVE"  # noqa: PIE796 - an alias
    ERROR = "STATE_ERROR"  # noqa: PIE796 - an alias

    @classmethod
    def _missing_(cls, value: object) -> CheckpointState | None:
        return cls.__members__.get(str(value).removeprefix("STATE_"))


class LogLevel(Enum):
    """Severity of a line.

    Examples:
        >>> from resolute import client
        >>> client.LogLevel["ERROR"].value
        'LOG_LEVEL_ERROR'
    """

    UNSPECIFIED = "LOG_LEVEL_UNSPECIFIED"
    """The line says nothing of its severity."""
    TRACE = "LOG_LEVEL_TRACE"
    DEBUG = "LOG_LEVEL_DEBUG"
    INFO = "LOG_LEVEL_INFO"
    WARNING = "LOG_LEVEL_WARNING"
    ERROR = "LOG_LEVEL_ERROR"
    CRITICAL = "LOG_LEVEL_CRITICAL"

    @classmethod
    def _missing_(cls, value: object) -> LogLevel | None:
        return cls.__members__.get(str(value).removeprefix("LOG_LEVEL_"))


def word(member: Enum) -> str:
    """Writes a member of any enumeration as our output does."""
    named = isinstance(member, (ExperimentState, TrialState, CheckpointState, LogLevel))
    return member.name if named else str(member.value)
