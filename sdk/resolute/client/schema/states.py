"""The lives of experiments, trials, runs and checkpoints, as people and programs read them."""

from __future__ import annotations

from enum import Enum


class ExperimentState(Enum):
    """Life of an experiment.

    Examples:
        >>> from resolute import client
        >>> client.ExperimentState.COMPLETED.is_terminal
        True
    """

    UNSPECIFIED = "UNSPECIFIED"
    """A state that this client is too old to know."""
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPING_COMPLETED = "STOPPING_COMPLETED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    STOPPING_KILLED = "STOPPING_KILLED"
    STOPPING_ERROR = "STOPPING_ERROR"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"
    DELETING = "DELETING"
    DELETED = "DELETED"
    DELETE_FAILED = "DELETE_FAILED"
    QUEUED = "QUEUED"
    """Active; its trials wait for slots."""
    PULLING = "PULLING"
    """Active; what its trials need is being fetched."""
    STARTING = "STARTING"
    """Active; its first processes are starting."""
    RUNNING = "RUNNING"
    """Active; trials run."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing will run any more."""
        return self in _ENDED


class ExperimentKind(Enum):
    """What an experiment is for.

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
    """Life of a trial.

    Examples:
        >>> from resolute import client
        >>> client.TrialState.RUNNING.holds_slots
        True
    """

    UNSPECIFIED = "UNSPECIFIED"
    """A state that this client is too old to know."""
    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    PAUSED = "PAUSED"
    WAITING = "WAITING"
    """It completed its operation and waits for the search."""
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"
    # Older names: the platform does not tell these apart.
    ACTIVE = "RUNNING"  # noqa: PIE796 - an alias
    PULLING = "STARTING"  # noqa: PIE796 - an alias
    STOPPING_COMPLETED = "STOPPING"  # noqa: PIE796 - an alias
    STOPPING_CANCELED = "STOPPING"  # noqa: PIE796 - an alias
    STOPPING_KILLED = "STOPPING"  # noqa: PIE796 - an alias
    STOPPING_ERROR = "STOPPING"  # noqa: PIE796 - an alias

    @property
    def is_terminal(self) -> bool:
        """Whether the trial will not run again."""
        return self in {TrialState.COMPLETED, TrialState.CANCELED, TrialState.ERROR}

    @property
    def holds_slots(self) -> bool:
        """Whether its processes have slots."""
        return self in {TrialState.STARTING, TrialState.RUNNING, TrialState.STOPPING}


class RunOutcome(Enum):
    """How a run ended."""

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
    """Life of a checkpoint.

    Examples:
        >>> from resolute import client
        >>> client.CheckpointState("COMPLETED")
        <CheckpointState.COMPLETED: 'COMPLETED'>
    """

    UNSPECIFIED = "UNSPECIFIED"
    """A state that this client is too old to know."""
    UPLOADING = "UPLOADING"
    COMPLETED = "COMPLETED"
    PARTIALLY_DELETED = "PARTIALLY_DELETED"
    DELETING = "DELETING"
    DELETED = "DELETED"
    ABORTED = "ABORTED"
    # Older names.
    ACTIVE = "UPLOADING"  # noqa: PIE796 - an alias
    ERROR = "ABORTED"  # noqa: PIE796 - an alias


class LogLevel(Enum):
    """Severity of a line.

    Examples:
        >>> from resolute import client
        >>> client.LogLevel["ERROR"].value
        'ERROR'
    """

    UNSPECIFIED = "UNSPECIFIED"
    """The line says nothing of its severity."""
    TRACE = "TRACE"
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"
