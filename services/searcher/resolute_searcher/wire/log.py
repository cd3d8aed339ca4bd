"""The log of a search to and from the messages of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.contracts.values import from_value, to_mapping, to_value
from resolute.errors import InvalidArgumentError
from resolute_searcher.identifiers import trial_id
from resolute_searcher.log.actions import Action, CloseTrial, CreateTrial, EndSearch, RunTrial, StopTrial
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import (
    Event,
    ExitReason,
    Extended,
    OperationsPosted,
    Retried,
    Sealed,
    Started,
    Suggested,
    TrialClosed,
    TrialCreated,
    TrialExited,
    ValidationCompleted,
    ValidationReported,
)
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

_REASONS: Mapping[int, ExitReason] = {
    pb.EXIT_REASON_ERRORED: ExitReason.ERRORED,
    pb.EXIT_REASON_USER_REQUESTED_STOP: ExitReason.USER_REQUESTED_STOP,
    pb.EXIT_REASON_USER_CANCELED: ExitReason.USER_CANCELED,
    pb.EXIT_REASON_INVALID_HP: ExitReason.INVALID_HP,
    pb.EXIT_REASON_INIT_INVALID_HP: ExitReason.INIT_INVALID_HP,
}
_REASON_NUMBERS: Mapping[ExitReason, Any] = {reason: number for number, reason in _REASONS.items()}


def event_from(message: pb.Event) -> Event:
    """Reads an event.

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
            return Sealed(message.sealed.request_id, message.sealed.min_run)
    return _external_event_from(message)


def event_to(event: Event) -> pb.Event:
    """Writes an event; its sequence, identifier and time are left to the caller."""
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
        case Sealed(request_id, min_run):
            return pb.Event(sealed=pb.Event.Sealed(request_id=request_id, min_run=min_run))
        case _:
            return _external_event_to(event)


def operation_from(message: pb.Operation) -> Operation:
    """Reads an operation.

    Raises:
        InvalidArgumentError: It is of no kind.
    """
    match message.WhichOneof("kind"):
        case "create":
            made = message.create
            return Create(
                made.request_id,
                to_mapping(made.hparams),
                made.trial_seed,
                bracket=made.bracket,
                checkpoint_id=made.checkpoint_id,
            )
        case "validate_after":
            return ValidateAfter(message.validate_after.request_id, message.validate_after.length)
        case "close":
            return Close(message.close.request_id)
        case "stop":
            return Stop(message.stop.request_id)
        case "promote":
            return Promote(message.promote.request_id, message.promote.rung)
        case "shutdown":
            return Shutdown(cancel=message.shutdown.cancel, failure=message.shutdown.failure)
        case "progress":
            return Progress(message.progress.progress)
    raise InvalidArgumentError("an operation is of no kind that this version knows")


def operation_to(operation: Operation) -> pb.Operation:
    """Writes an operation."""
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


def action_to(action: Action, *, search_id: str) -> pb.Action:
    """Writes an action; its sequence and its event are left to the caller."""
    match action:
        case CreateTrial(request_id, hparams, trial_seed, checkpoint_id):
            created = pb.Action.CreateTrial(
                request_id=request_id,
                trial_id=trial_id(search_id, request_id),
                hparams=to_value(hparams),
                trial_seed=trial_seed,
                checkpoint_id=checkpoint_id,
            )
            return pb.Action(create_trial=created)
        case RunTrial(request_id, length, reopens):
            run = pb.Action.RunTrial(trial_id=trial_id(search_id, request_id), length=length, reopens=reopens)
            return pb.Action(run_trial=run)
        case CloseTrial(request_id):
            return pb.Action(close_trial=pb.Action.CloseTrial(trial_id=trial_id(search_id, request_id)))
        case StopTrial(request_id):
            return pb.Action(stop_trial=pb.Action.StopTrial(trial_id=trial_id(search_id, request_id)))
        case EndSearch(cancel, failure):
            return pb.Action(shutdown=pb.Action.Shutdown(cancel=cancel, failure=failure))


def entry_to(entry: Entry, *, search_id: str, event_id: str, time: float) -> service_pb.LoggedEvent:
    """Writes a log entry.

    Args:
        entry: The entry.
        search_id: UUID of the search.
        event_id: Identifies the event across retries.
        time: When it was appended, in seconds since 1970.
    """
    logged = service_pb.LoggedEvent(
        event=event_to(entry.event),
        operations=[operation_to(operation) for operation in entry.operations],
        actions=[action_to(action, search_id=search_id) for action in entry.actions],
    )
    event = logged.event
    event.sequence = entry.sequence
    event.event_id = event_id
    micros = round(time * 1e6)
    event.time.seconds, event.time.nanos = micros // 1_000_000, micros % 1_000_000 * 1000
    first = entry.last_action - len(entry.actions) + 1
    for sequence, action in enumerate(logged.actions, start=first):
        action.sequence = sequence
        action.event_sequence = entry.sequence
    return logged


def entry_from(message: service_pb.LoggedEvent, *, search_id: str, last_action: int, draws: int) -> Entry:
    """Reads a log entry.

    Args:
        message: What `entry_to` wrote.
        search_id: UUID of the search.
        last_action: Position of the last of all actions up to this entry.
        draws: Random words that the search had taken after it.
    """
    event = event_from(message.event)
    operations = tuple(operation_from(operation) for operation in message.operations)
    # Actions name trials as everyone else does; each is of a trial that the event or an operation names.
    requests = (
        {
            trial_id(search_id, one.request_id): one.request_id
            for one in (event, *operations)
            if hasattr(one, "request_id")
        }
        if message.actions
        else {}
    )
    return Entry(
        sequence=message.event.sequence,
        event=event,
        operations=operations,
        actions=tuple(_action_from(action, requests) for action in message.actions),
        last_action=last_action,
        draws=draws,
    )


def _action_from(message: pb.Action, requests: Mapping[str, str]) -> Action:
    match message.WhichOneof("kind"):
        case "create_trial":
            made = message.create_trial
            return CreateTrial(made.request_id, to_mapping(made.hparams), made.trial_seed, made.checkpoint_id)
        case "run_trial":
            run = message.run_trial
            return RunTrial(requests[run.trial_id], run.length, run.reopens)
        case "close_trial":
            return CloseTrial(requests[message.close_trial.trial_id])
        case "stop_trial":
            return StopTrial(requests[message.stop_trial.trial_id])
        case "shutdown":
            return EndSearch(cancel=message.shutdown.cancel, failure=message.shutdown.failure)
    raise InvalidArgumentError("an action is of no kind that this version knows")


def _external_event_from(message: pb.Event) -> Event:
    """Reads an event by which somebody outside of the search decided."""
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
    """Writes an event by which somebody outside of the search decided."""
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


def posted_from(message: pb.Operation) -> PostedOperation:
    """Reads an operation that the client of a custom search posted.

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


def extension_from(message: pb.Event.Extended) -> Extended:
    """Reads what a search is given."""
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
        request_id=event.request_id,
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
