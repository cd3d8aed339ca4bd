"""The errors of the platform, the same for clients and services.

::

    ResoluteError                         .reason .resource .metadata
    ├── InvalidArgumentError              .violations
    │   └── InvalidConfigError
    ├── NotFoundError
    ├── AlreadyExistsError
    ├── FailedPreconditionError
    │   ├── IllegalTransitionError        .from_state .to_state
    │   └── ClientTooOldError
    ├── AbortedError
    │   ├── RunSupersededError
    │   └── ConflictError
    ├── QuotaError
    ├── AuthError
    │   ├── UnauthenticatedError
    │   └── PermissionDeniedError
    ├── UnavailableError
    │   └── DeadlineError
    ├── DataLossError
    ├── UnimplementedError
    ├── InternalError                     .correlation_id
    ├── ClosedConnectionError             (never crosses the wire)
    └── ForkedProcessError                (never crosses the wire)

A service raises one of these. Its interceptor turns it into a status with an ``ErrorInfo``, and the client's
interceptor turns that back into the same class. Preemption is not an error but a return value, so that a
broad ``except`` in a training script cannot suppress it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

DOMAIN = "resolute"
"""The ``domain`` of every ``ErrorInfo`` that a Resolute service sends."""


@dataclass(frozen=True)
class Violation:
    """One fault of a request."""

    field: str
    """Dotted path of the field, such as ``searcher.max_trials``; empty for the whole."""
    description: str
    """What is wrong and what was expected."""

    def __str__(self) -> str:
        return f"{self.field}: {self.description}" if self.field else self.description


class ResoluteError(Exception):
    """Base of all errors of the platform.

    Args:
        message: Text that names the object, its actual state and the remedy.
        resource: The object, such as ``trial 12``; empty when there is none.
        violations: Single faults of a request, for errors that list several.
        metadata: Further facts for programs.
    """

    reason: ClassVar[str] = ""
    """``ErrorReason`` without its prefix; unique to a class, empty for classes that never cross the wire."""
    status: ClassVar[str] = "UNKNOWN"
    """Name of the gRPC status code."""

    def __init__(
        self,
        message: str = "",
        *,
        resource: str = "",
        violations: Iterable[Violation] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.resource = resource
        self.violations = tuple(violations)
        self.metadata = dict(metadata or {})


class InvalidArgumentError(ResoluteError):
    """A field of the request is wrong; ``violations`` lists each."""

    reason = "INVALID_ARGUMENT"
    status = "INVALID_ARGUMENT"


class InvalidConfigError(InvalidArgumentError):
    """The experiment config is wrong; ``violations`` lists every fault with its path."""

    reason = "INVALID_CONFIG"


class NotFoundError(ResoluteError):
    """The named object does not exist, or the caller may not see it."""

    reason = "NOT_FOUND"
    status = "NOT_FOUND"


class AlreadyExistsError(ResoluteError):
    """The same identifier exists with other content."""

    reason = "ALREADY_EXISTS"
    status = "ALREADY_EXISTS"


class FailedPreconditionError(ResoluteError):
    """A precondition of the call is not met."""

    reason = "FAILED_PRECONDITION"
    status = "FAILED_PRECONDITION"


class IllegalTransitionError(FailedPreconditionError):
    """The object's state does not allow the requested change."""

    reason = "ILLEGAL_TRANSITION"

    @classmethod
    def between(
        cls, resource: str, *, from_state: str, to_state: str, remedy: str = ""
    ) -> IllegalTransitionError:
        """Builds the error for one refused transition.

        Args:
            resource: The object, such as ``experiment 7``.
            from_state: State that it is in.
            to_state: State that was asked for.
            remedy: What the caller can do instead.
        """
        message = f"{resource} is {from_state} and cannot become {to_state}"
        return cls(
            f"{message}; {remedy}" if remedy else message,
            resource=resource,
            metadata={"from_state": from_state, "to_state": to_state},
        )

    @property
    def from_state(self) -> str:
        """State that the object is in."""
        return self.metadata.get("from_state", "")

    @property
    def to_state(self) -> str:
        """State that was asked for."""
        return self.metadata.get("to_state", "")


class ClientTooOldError(FailedPreconditionError):
    """The client speaks a protocol that the server no longer accepts."""

    reason = "CLIENT_TOO_OLD"


class AbortedError(ResoluteError):
    """Another change happened first."""

    status = "ABORTED"


class RunSupersededError(AbortedError):
    """A later run has replaced this one: its decisions are refused, its reports are still accepted."""

    reason = "RUN_SUPERSEDED"


class ConflictError(AbortedError):
    """The object changed in the meantime; read it again."""

    reason = "CONFLICT"


class QuotaError(ResoluteError):
    """A quota or a size limit is reached."""

    reason = "QUOTA_EXCEEDED"
    status = "RESOURCE_EXHAUSTED"


class AuthError(ResoluteError):
    """The caller may not do this."""

    status = "PERMISSION_DENIED"


class UnauthenticatedError(AuthError):
    """There is no token, or it is malformed, expired or of another cluster."""

    reason = "UNAUTHENTICATED"
    status = "UNAUTHENTICATED"


class PermissionDeniedError(AuthError):
    """The token is valid and does not allow this call."""

    reason = "PERMISSION_DENIED"


class UnavailableError(ResoluteError):
    """The service or its storage is down; the same call may succeed later."""

    reason = "UNAVAILABLE"
    status = "UNAVAILABLE"


class DeadlineError(UnavailableError):
    """The work did not end in time."""

    reason = "DEADLINE_EXCEEDED"
    status = "DEADLINE_EXCEEDED"


class DataLossError(ResoluteError):
    """Stored bytes do not match their digest."""

    reason = "DATA_LOSS"
    status = "DATA_LOSS"


class UnimplementedError(ResoluteError):
    """The server is older than the client."""

    reason = "UNIMPLEMENTED"
    status = "UNIMPLEMENTED"


class InternalError(ResoluteError):
    """A defect of the server."""

    reason = "INTERNAL"
    status = "INTERNAL"

    @property
    def correlation_id(self) -> str:
        """Finds the traceback in the server's log."""
        return self.metadata.get("correlation_id", "")


class ClosedConnectionError(ResoluteError):
    """The call was made on a connection that this process has closed."""


class ForkedProcessError(ResoluteError):
    """The call was made in a forked child, which cannot use the connection of its parent."""


def _subclasses(base: type[ResoluteError]) -> Iterable[type[ResoluteError]]:
    for child in base.__subclasses__():
        yield child
        yield from _subclasses(child)


BY_REASON: Mapping[str, type[ResoluteError]] = {
    error.reason: error for error in _subclasses(ResoluteError) if "reason" in vars(error)
}
"""The class of every reason that crosses the wire."""

BY_STATUS: Mapping[str, type[ResoluteError]] = {
    "INVALID_ARGUMENT": InvalidArgumentError,
    "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": AlreadyExistsError,
    "FAILED_PRECONDITION": FailedPreconditionError,
    "OUT_OF_RANGE": InvalidArgumentError,
    "ABORTED": ConflictError,
    "RESOURCE_EXHAUSTED": QuotaError,
    "UNAUTHENTICATED": UnauthenticatedError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "UNAVAILABLE": UnavailableError,
    # A server that stops answers pending calls with CANCELLED; anyone who did not cancel may try again.
    "CANCELLED": UnavailableError,
    "DEADLINE_EXCEEDED": DeadlineError,
    "DATA_LOSS": DataLossError,
    "UNIMPLEMENTED": UnimplementedError,
    "INTERNAL": InternalError,
    "UNKNOWN": InternalError,
}
"""The class of a status that came without a reason: from a proxy, or from gRPC itself."""
