"""The operations of a custom search method, and the reasons of early exits of trials."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from resolute.api.searcher.v1 import event_pb2, operation_pb2
from resolute.contracts.values import to_value


class ExitedReason(Enum):
    """The reason why a trial exited before the search closed it.

    Examples:
        >>> from resolute import searcher
        >>> searcher.ExitedReason.INVALID_HP.value
        'EXITED_REASON_INVALID_HP'
    """

    ERRORED = "EXITED_REASON_ERRORED"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"
    USER_CANCELED = "EXITED_REASON_USER_CANCELED"
    INVALID_HP = "EXITED_REASON_INVALID_HP"
    INIT_INVALID_HP = "EXITED_REASON_INIT_INVALID_HP"

    @classmethod
    def from_message(cls, reason: event_pb2.ExitReason.ValueType) -> ExitedReason:
        """Reads the reason of an event."""
        return cls[event_pb2.ExitReason.Name(reason).removeprefix("EXIT_REASON_")]


class Operation(ABC):
    """A decision of a search method.

    Examples:
        >>> from resolute import searcher
        >>> isinstance(searcher.Progress(0.5), searcher.Operation)
        True
    """

    @abstractmethod
    def to_message(self) -> operation_pb2.Operation:
        """Writes it for the searcher."""


@dataclass(frozen=True)
class Create(Operation):
    """Create a trial.

    Attributes:
        request_id: Identifier of the trial within the search, such as ``uuid.uuid4()``.
        hparams: Its hyperparameters.
        checkpoint: Checkpoint to start from; None for none.

    Examples:
        >>> import uuid
        >>> from resolute import searcher
        >>> searcher.Create(uuid.uuid4(), {"lr": 0.1}, None).hparams
        {'lr': 0.1}
    """

    request_id: uuid.UUID
    hparams: Mapping[str, Any]
    checkpoint: Any

    def to_message(self) -> operation_pb2.Operation:
        """Writes it for the searcher."""
        source = getattr(self.checkpoint, "uuid", self.checkpoint)
        created = operation_pb2.Operation.Create(
            trial_key=str(self.request_id),
            hparams=to_value(dict(self.hparams)),
            checkpoint_id=str(source) if source else None,
        )
        return operation_pb2.Operation(create=created)


@dataclass(frozen=True)
class ValidateAfter(Operation):
    """Train a trial to an absolute length, then validate.

    Examples:
        >>> import uuid
        >>> from resolute import searcher
        >>> searcher.ValidateAfter(uuid.UUID(int=1), 10).length
        10
    """

    request_id: uuid.UUID
    length: int

    def to_message(self) -> operation_pb2.Operation:
        """Writes it for the searcher."""
        asked = operation_pb2.Operation.ValidateAfter(trial_key=str(self.request_id), length=self.length)
        return operation_pb2.Operation(validate_after=asked)


@dataclass(frozen=True)
class Close(Operation):
    """Close a trial: it gets no more operations once it has completed those it has.

    Examples:
        >>> import uuid
        >>> from resolute import searcher
        >>> searcher.Close(uuid.UUID(int=1))
        Close(request_id=UUID('00000000-0000-0000-0000-000000000001'))
    """

    request_id: uuid.UUID

    def to_message(self) -> operation_pb2.Operation:
        """Writes it for the searcher."""
        return operation_pb2.Operation(close=operation_pb2.Operation.Close(trial_key=str(self.request_id)))


@dataclass(frozen=True)
class Progress(Operation):
    """Report the progress of the search, from 0 to 1.

    Examples:
        >>> from resolute import searcher
        >>> searcher.Progress(0.5)
        Progress(progress=0.5)
    """

    progress: float

    def to_message(self) -> operation_pb2.Operation:
        """Writes it for the searcher."""
        return operation_pb2.Operation(progress=operation_pb2.Operation.Progress(progress=self.progress))


@dataclass(frozen=True)
class Shutdown(Operation):
    """End the search.

    Attributes:
        cancel: Whether the experiment counts as cancelled.
        failure: Whether the experiment counts as failed.

    Examples:
        >>> from resolute import searcher
        >>> searcher.Shutdown(failure=True)
        Shutdown(cancel=False, failure=True)
    """

    cancel: bool = False
    failure: bool = False

    def to_message(self) -> operation_pb2.Operation:
        """Writes it for the searcher."""
        shutdown = operation_pb2.Operation.Shutdown(cancel=self.cancel, failure=self.failure)
        return operation_pb2.Operation(shutdown=shutdown)
