"""Converts operations to and from the stored messages."""

from __future__ import annotations

from resolute.contracts.values import to_mapping, to_value
from resolute.errors import InvalidArgumentError
from resolute.storage.searcher.v1 import log_pb2 as pb
from resolute_searcher.log.operations import (
    Close,
    Create,
    Operation,
    PostedOperation,
    Progress,
    Promote,
    Shutdown,
    Stop,
    ValidateAfter,
)
from resolute_searcher.wire.reasons import reason_from, set_reason


def operation_from(message: pb.Operation) -> Operation:
    """Converts the message of an operation.

    Raises:
        InvalidArgumentError: It is of no kind.
    """
    why = reason_from(message)
    match message.WhichOneof("kind"):
        case "create":
            made = message.create
            return Create(
                made.request_id,
                to_mapping(made.hparams),
                made.trial_seed,
                bracket=made.bracket,
                checkpoint_id=made.checkpoint_id,
                reason=why,
            )
        case "validate_after":
            return ValidateAfter(message.validate_after.request_id, message.validate_after.length, why)
        case "close":
            return Close(message.close.request_id, why)
        case "stop":
            return Stop(message.stop.request_id, why)
        case "promote":
            return Promote(message.promote.request_id, message.promote.rung, why)
        case "shutdown":
            return Shutdown(cancel=message.shutdown.cancel, failure=message.shutdown.failure, reason=why)
        case "progress":
            return Progress(message.progress.progress, why)
    raise InvalidArgumentError("an operation is of no kind that this version knows")


def posted_from(message: pb.Operation) -> PostedOperation:
    """Converts an operation that the client of a custom search posted.

    Raises:
        InvalidArgumentError: Clients cannot post this kind.
    """
    operation = operation_from(message)
    if not isinstance(operation, Create | ValidateAfter | Close | Progress | Shutdown):
        kind = type(operation).__name__.lower()
        raise InvalidArgumentError(
            f"{kind} operations cannot be posted; post create, validate_after, close, progress or shutdown"
        )
    return operation


def operation_to(operation: Operation) -> pb.Operation:
    """Converts an operation to its message."""
    message = _bare_operation(operation)
    set_reason(message, operation.reason)
    return message


def _bare_operation(operation: Operation) -> pb.Operation:
    match operation:
        case Create(request_id, hparams, trial_seed, bracket, checkpoint_id):
            created = pb.Operation.Create(
                request_id=request_id,
                hparams=to_value(hparams),
                trial_seed=trial_seed,
                bracket=bracket,
                checkpoint_id=checkpoint_id,
            )
            return pb.Operation(create=created)
        case ValidateAfter(request_id, length):
            return pb.Operation(
                validate_after=pb.Operation.ValidateAfter(request_id=request_id, length=length)
            )
        case Close(request_id):
            return pb.Operation(close=pb.Operation.Close(request_id=request_id))
        case Stop(request_id):
            return pb.Operation(stop=pb.Operation.Stop(request_id=request_id))
        case Promote(request_id, rung):
            return pb.Operation(promote=pb.Operation.Promote(request_id=request_id, rung=rung))
        case Shutdown(cancel, failure):
            return pb.Operation(shutdown=pb.Operation.Shutdown(cancel=cancel, failure=failure))
        case Progress(progress):
            return pb.Operation(progress=pb.Operation.Progress(progress=progress))
