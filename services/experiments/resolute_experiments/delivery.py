"""Delivers what other services must be told of an experiment, in order, until each has it."""

from __future__ import annotations

from functools import partial

from resolute.api.logs.v1 import logs_service_pb2
from resolute.api.searcher.v1 import search_pb2, searcher_service_pb2
from resolute_experiments.clients import Clients
from resolute_experiments.settle import SearchEvent
from resolute_experiments.store import outbox
from resolute_experiments.store.experiments import Experiment
from resolute_serving.database import Database


async def deliver(experiment: Experiment, *, database: Database, clients: Clients) -> None:
    """Delivers everything that waits for an experiment.

    Raises:
        ResoluteError: A service did not take it; what it did take is not sent again in vain, since receivers
            know the identifiers.
    """
    while messages := await database.read(lambda c: outbox.pending(c, experiment.id)):
        events = [event for message in messages if (event := _search_event(message)) is not None]
        if events:
            request = searcher_service_pb2.ReportEventsRequest(search_id=experiment.id, events=events)
            await clients.searcher.ReportEvents(request)
        for message in messages:
            if message.kind is outbox.Kind.LOGS_CLOSED:
                trial_id = message.payload["trial_id"]
                await clients.logs.CloseTrialLogs(logs_service_pb2.CloseTrialLogsRequest(trial_id=trial_id))
        positions = [message.position for message in messages]
        await database.write(partial(outbox.remove, positions=positions))


def _search_event(message: outbox.Message) -> search_pb2.Event | None:
    if message.kind is outbox.Kind.TRIAL_CREATED:
        created = search_pb2.Event.TrialCreated(request_id=message.payload["request_id"])
        return search_pb2.Event(event_id=message.event_id, trial_created=created)
    if message.kind is not outbox.Kind.TRIAL_ENDED:
        return None
    event = SearchEvent(message.payload["event"])
    request_id = message.payload["request_id"]
    if event is SearchEvent.CLOSED:
        return search_pb2.Event(
            event_id=message.event_id, trial_closed=search_pb2.Event.TrialClosed(request_id=request_id)
        )
    reason = search_pb2.ExitReason.Value(f"EXIT_REASON_{event.value}")
    return search_pb2.Event(
        event_id=message.event_id,
        trial_exited=search_pb2.Event.TrialExited(request_id=request_id, reason=reason),
    )
