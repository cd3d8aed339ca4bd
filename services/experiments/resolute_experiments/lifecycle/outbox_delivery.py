"""Delivers messages about an experiment to other services, in order, until each accepts or refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import structlog

from resolute.api.logs.v1 import logs_service_pb2
from resolute.api.searcher.v1 import event_pb2, searcher_service_pb2
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResoluteError,
    UnimplementedError,
)
from resolute_experiments.clients import Clients
from resolute_experiments.store import outbox
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.outbox import SearchEvent
from resolute_serving.database.engine import Database

_REFUSALS = (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
"""Answers that stay the same however often the message is repeated."""
_log = structlog.get_logger("delivery")


async def deliver(experiment: Experiment, *, database: Database, clients: Clients) -> str:
    """Delivers everything that waits for an experiment. What is refused for good is dropped and logged.

    Returns:
        Why the search cannot continue, if it refused a message about its trials; else empty.

    Raises:
        ResoluteError: A service did not answer. Messages may be sent again: receivers recognise their
            identifiers.
    """
    refusal = ""
    while messages := await database.read(lambda c: outbox.pending(c, experiment.id)):
        for failure in await _report_to_search(experiment, messages, clients):
            _log.error("the search refused an event", experiment=experiment.number, reason=str(failure))
            refusal = refusal or f"the search refused an event of a trial: {failure}"
        for message in messages:
            if message.kind is outbox.Kind.LOGS_CLOSED:
                await _close_logs(experiment, message.payload["trial_id"], clients)
        positions = [message.position for message in messages]
        await database.write(partial(outbox.remove, positions=positions))
    return refusal


async def _report_to_search(
    experiment: Experiment, messages: Sequence[outbox.Message], clients: Clients
) -> list[ResoluteError]:
    """Reports events, one by one where the search does not take them together; returns its refusals."""
    events = [event for message in messages if (event := _search_event(message)) is not None]
    if not events:
        return []
    try:
        await _report(experiment, events, clients)
    except _REFUSALS as failure:
        if len(events) == 1:
            return [failure]
    else:
        return []
    refusals: list[ResoluteError] = []
    for event in events:
        try:
            await _report(experiment, [event], clients)
        except _REFUSALS as failure:
            refusals.append(failure)
    return refusals


async def _report(experiment: Experiment, events: Sequence[event_pb2.Event], clients: Clients) -> None:
    request = searcher_service_pb2.ReportEventsRequest(search_id=experiment.id, events=events)
    await clients.searcher.ReportEvents(request)


async def _close_logs(experiment: Experiment, trial_id: str, clients: Clients) -> None:
    try:
        await clients.logs.CloseTrialLogs(logs_service_pb2.CloseTrialLogsRequest(trial_id=trial_id))
    except _REFUSALS as failure:
        # Followers end by themselves a little later; nothing is lost.
        _log.warning("the logs of a trial stay open", experiment=experiment.number, reason=str(failure))


def _search_event(message: outbox.Message) -> event_pb2.Event | None:
    if message.kind is outbox.Kind.TRIAL_CREATED:
        created = event_pb2.Event.TrialCreated(trial_key=message.payload["request_id"])
        return event_pb2.Event(event_id=message.event_id, trial_created=created)
    if message.kind is not outbox.Kind.TRIAL_ENDED:
        return None
    event = SearchEvent(message.payload["event"])
    trial_key = message.payload["request_id"]
    if event is SearchEvent.CLOSED:
        return event_pb2.Event(
            event_id=message.event_id, trial_closed=event_pb2.Event.TrialClosed(trial_key=trial_key)
        )
    reason = event_pb2.ExitReason.Value(f"EXIT_REASON_{event.value}")
    return event_pb2.Event(
        event_id=message.event_id,
        trial_exited=event_pb2.Event.TrialExited(trial_key=trial_key, reason=reason),
    )
