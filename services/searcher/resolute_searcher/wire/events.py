"""Converts events to and from the stored messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resolute.contracts.values import from_value, to_mapping, to_value
from resolute.errors import InvalidArgumentError
from resolute.storage.searcher.v1 import log_pb2 as pb
from resolute_searcher.log.events import (
    Event,
    ExitReason,
    Extended,
    OperationsPosted,
    Retried,
    Started,
    Suggested,
    TrialClosed,
    TrialCreated,
    TrialExited,
    TrialFenced,
    ValidationCompleted,
    ValidationReported,
)
from resolute_searcher.wire.operations import operation_to, posted_from

_REASONS: Mapping[int, ExitReason] = {
    pb.EXIT_REASON_ERRORED: ExitReason.ERRORED,
    pb.EXIT_REASON_USER_REQUESTED_STOP: ExitReason.USER_REQUESTED_STOP,
    pb.EXIT_REASON_USER_CANCELED: ExitReason.USER_CANCELED,
    pb.EXIT_REASON_INVALID_HP: ExitReason.INVALID_HP,
    pb.EXIT_REASON_INIT_INVALID_HP: ExitReason.INIT_INVALID_HP,
}
_REASON_NUMBERS: Mapping[ExitReason, Any] = {reason: number for number, reason in _REASONS.items()}


def event_from(message: pb.Event) -> Event:
    """Converts the message of an event.

    Raises:
        InvalidArgumentError: It is of no kind, or an exit has no reason.
    """
    match message.WhichOneof("kind"):
        case "started":
            return Started()
        case "trial_created":
            return TrialCreated(message.trial_created.request_id)
        case "validation_completed":
            completed = message.validation_completed
            return ValidationCompleted(completed.request_id, completed.metric, completed.length)
        case "validation_reported":
            return _report_from(message.validation_reported)
        case "trial_exited":
            return _exit_from(message.trial_exited)
        case "trial_closed":
            return TrialClosed(message.trial_closed.request_id)
        case "sealed":
            return TrialFenced(message.sealed.request_id, message.sealed.min_run)
    return _external_event_from(message)


def event_to(event: Event) -> pb.Event:
    """Converts an event to its message; the caller sets sequence, identifier and time."""
    match event:
        case Started():
            return pb.Event(started=pb.Event.Started())
        case TrialCreated(request_id):
            return pb.Event(trial_created=pb.Event.TrialCreated(request_id=request_id))
        case ValidationCompleted(request_id, metric, length):
            completed = pb.Event.ValidationCompleted(request_id=request_id, metric=metric, length=length)
            return pb.Event(validation_completed=completed)
        case ValidationReported():
            return pb.Event(validation_reported=_report_to(event))
        case TrialExited(request_id, reason):
            exited = pb.Event.TrialExited(request_id=request_id, reason=_REASON_NUMBERS[reason])
            return pb.Event(trial_exited=exited)
        case TrialClosed(request_id):
            return pb.Event(trial_closed=pb.Event.TrialClosed(request_id=request_id))
        case TrialFenced(request_id, min_run):
            return pb.Event(sealed=pb.Event.Sealed(request_id=request_id, min_run=min_run))
        case _:
            return _external_event_to(event)


def _external_event_from(message: pb.Event) -> Event:
    """Converts the message of an event that was decided outside of the search."""
    match message.WhichOneof("kind"):
        case "operations_posted":
            posted = message.operations_posted
            operations = tuple(posted_from(operation) for operation in posted.operations)
            return OperationsPosted(operations, posted.triggered_by_sequence)
        case "suggested":
            return _suggestion_from(message.suggested)
        case "extended":
            return extension_from(message.extended)
        case "retried":
            return Retried(message.retried.request_id)
    raise InvalidArgumentError(f"event {message.event_id!r} is of no kind that this version knows")


def _external_event_to(event: OperationsPosted | Suggested | Extended | Retried) -> pb.Event:
    """Converts an event that was decided outside of the search to its message."""
    match event:
        case OperationsPosted(operations, answers):
            posted = pb.Event.OperationsPosted(
                operations=[operation_to(operation) for operation in operations],
                triggered_by_sequence=answers,
            )
            return pb.Event(operations_posted=posted)
        case Suggested():
            return pb.Event(suggested=_suggestion_to(event))
        case Extended(max_trials, max_length):
            extension = pb.Event.Extended(max_trials=max_trials, max_length=max_length)
            return pb.Event(extended=extension)
        case Retried(request_id):
            return pb.Event(retried=pb.Event.Retried(request_id=request_id))


def extension_from(message: pb.Event.Extended) -> Extended:
    """Converts the message of an extension."""
    return Extended(
        max_trials=message.max_trials if message.HasField("max_trials") else None,
        max_length=message.max_length if message.HasField("max_length") else None,
    )


def _suggestion_from(message: pb.Event.Suggested) -> Suggested:
    return Suggested(
        message.number,
        to_mapping(message.hparams) if message.HasField("hparams") else None,
        from_value(message.notes) if message.HasField("notes") else None,
        message.failure,
    )


def _suggestion_to(event: Suggested) -> pb.Event.Suggested:
    return pb.Event.Suggested(
        number=event.number,
        hparams=None if event.hparams is None else to_value(event.hparams),
        notes=None if event.notes is None else to_value(event.notes),
        failure=event.failure,
    )


def _report_from(message: pb.Event.ValidationReported) -> ValidationReported:
    return ValidationReported(
        message.request_id,
        message.metric,
        message.time,
        run=message.run,
        source=message.source,
        position=message.source_sequence,
    )


def _report_to(event: ValidationReported) -> pb.Event.ValidationReported:
    return pb.Event.ValidationReported(
        request_id=event.trial_key,
        metric=event.metric,
        time=event.time,
        run=event.run,
        source=event.source,
        source_sequence=event.position,
    )


def _exit_from(message: pb.Event.TrialExited) -> TrialExited:
    reason = _REASONS.get(message.reason)
    if reason is None:
        raise InvalidArgumentError(
            f"trial {message.request_id} exited for reason {message.reason}, which means nothing; "
            "name one of the exit reasons"
        )
    return TrialExited(message.request_id, reason)
