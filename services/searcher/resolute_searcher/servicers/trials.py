"""The RPCs about single trials: their reports, their operations, and the fencing of their runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from resolute.api.searcher.v1 import event_pb2, operation_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import InvalidArgumentError, RunSupersededError
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.log.events import (
    TrialClosed,
    TrialCreated,
    TrialExited,
    TrialFenced,
    ValidationCompleted,
    ValidationReported,
)
from resolute_searcher.runtime.live_searches import MOST_ON_LOOP, Change, LiveSearches
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Aspect, Topic
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_searcher.state_machine.search import Search
from resolute_searcher.state_machine.validation import require_time_metric
from resolute_searcher.store import trials
from resolute_searcher.store.log import OWN_EVENT_PREFIX
from resolute_searcher.wire.contract import stored_event
from resolute_searcher.wire.events import event_from
from resolute_serving.notifier import Notifier


@dataclass(frozen=True, kw_only=True)
class TrialCalls:
    """Answers the calls about single trials.

    Attributes:
        storage: The service's database.
        searches: The searches in memory.
        trial_index: Looks up the searches of trials.
        notifier: Wakes followers.
    """

    storage: Storage
    searches: LiveSearches
    trial_index: TrialIndex
    notifier: Notifier[Topic]

    async def ReportEvents(
        self, request: service_pb.ReportEventsRequest, context: Any
    ) -> service_pb.ReportEventsResponse:
        """Records that trials were created or closed, or have exited."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        size = len(request.events)
        read = partial(_read_events, request.events)
        events = await asyncio.to_thread(read) if size > MOST_ON_LOOP else read()

        def act(change: Change) -> int:
            for event_id, event in events:
                # A trial is created once: the search knows a repeat by itself, and the log need not index it.
                change.record(event, event_id="" if isinstance(event, TrialCreated) else event_id)
                left = isinstance(event, TrialExited) and change.search.state.trial(event.trial_key).exit
                if left:
                    change.record(TrialClosed(event.trial_key), event_id=f"{event_id}/closed")
            return change.search.state.sequence

        last = await self.searches.change(search_id, act, size=size)
        return service_pb.ReportEventsResponse(last_event_sequence=last)

    async def GetOperation(
        self, request: service_pb.GetOperationRequest, context: Any
    ) -> service_pb.GetOperationResponse:
        """Returns a trial's current operation."""
        search_id, trial_key = await self.trial_index.find(request.trial_id)

        def act(change: Change) -> operation_pb2.TrialOperation:
            if request.HasField("run"):
                authorize(change.search, trial_key, request.run)
            return operation_status(change.search, trial_key)

        operation = await self.searches.change(search_id, act)
        return service_pb.GetOperationResponse(operation=operation)

    async def CompleteOperation(
        self, request: service_pb.CompleteOperationRequest, context: Any
    ) -> service_pb.CompleteOperationResponse:
        """Completes a trial's current operation."""
        search_id, trial_key = await self.trial_index.find(request.trial_id)
        if not request.HasField("metric"):
            raise invalid_field("metric", "must be the number that the validation gave; NaN if it gave none")

        def act(change: Change) -> operation_pb2.TrialOperation:
            authorize(change.search, trial_key, request.run)
            change.record(ValidationCompleted(trial_key, request.metric, request.length))
            return operation_status(change.search, trial_key)

        operation = await self.searches.change(search_id, act)
        return service_pb.CompleteOperationResponse(operation=operation)

    async def ReportProgress(
        self, request: service_pb.ReportProgressRequest, context: Any
    ) -> service_pb.ReportProgressResponse:
        """Records the progress of a trial."""
        search_id, trial_key = await self.trial_index.find(request.trial_id)

        def act(change: Change) -> float:
            authorize(change.search, trial_key, request.run)
            change.search.state.reach(trial_key, request.progress)
            return change.search.state.reached(trial_key)

        reached = await self.searches.change(search_id, act)
        await self.storage.write(lambda c: trials.write_progress(c, request.trial_id, reached))
        self.notifier.notify((search_id, Aspect.PROGRESS))
        return service_pb.ReportProgressResponse()

    async def ReportValidations(
        self, request: service_pb.ReportValidationsRequest, context: Any
    ) -> service_pb.ReportValidationsResponse:
        """Records validations of a time-driven search; returns whether the trial must stop."""
        search_id, trial_key = await self.trial_index.find(request.trial_id)
        if not request.source:
            raise invalid_field("source", "must name the spool that the reports come from")

        def act(change: Change) -> service_pb.ReportValidationsResponse:
            authorize(change.search, trial_key, request.run)
            require_time_metric(change.search.state)
            response = service_pb.ReportValidationsResponse()
            for validation in request.validations:
                try:
                    change.record(_read_validation(change.search, trial_key, request, validation))
                except InvalidArgumentError as error:
                    response.refusals.add(sequence=validation.sequence, message=str(error))
            response.stop = change.search.state.trial(trial_key).closing
            return response

        return await self.searches.change(search_id, act, size=len(request.validations))

    async def FenceTrial(
        self, request: service_pb.FenceTrialRequest, context: Any
    ) -> service_pb.FenceTrialResponse:
        """Raises the lowest accepted run number of a trial; returns the trial's status at that time."""
        search_id, trial_key = await self.trial_index.find(request.trial_id)
        if request.min_run < 1:
            raise invalid_field("min_run", f"must be a run, from 1, not {request.min_run}")

        def act(change: Change) -> operation_pb2.TrialOperation:
            change.record(TrialFenced(trial_key, request.min_run))
            return operation_status(change.search, trial_key)

        operation = await self.searches.change(search_id, act)
        return service_pb.FenceTrialResponse(operation=operation)


def authorize(search: Search, trial_key: str, run: int) -> None:
    """Refuses calls of superseded runs."""
    floor = search.state.trial(trial_key).min_run
    if run < 1:
        raise invalid_field("run", f"must be the run that calls, from 1, not {run}")
    if run < floor:
        raise RunSupersededError(
            f"run {run} of the trial was superseded: calls of runs below {floor} are refused",
            metadata={"min_run": str(floor)},
        )


def operation_status(search: Search, trial_key: str) -> operation_pb2.TrialOperation:
    """Returns the status of a trial and of its operation."""
    trial = search.state.trial(trial_key)
    return operation_pb2.TrialOperation(
        length=trial.length or None,
        completed=trial.length > 0 and not trial.pending and trial.exit is None,
        closed=trial.closing or trial.ended,
        progress=search.state.reached(trial_key),
    )


def _read_events(
    messages: Sequence[event_pb2.Event],
) -> list[tuple[str, TrialCreated | TrialClosed | TrialExited]]:
    return [_read_event(position, message) for position, message in enumerate(messages)]


def _read_event(
    position: int, message: event_pb2.Event
) -> tuple[str, TrialCreated | TrialClosed | TrialExited]:
    event = event_from(stored_event(message))
    if not isinstance(event, TrialCreated | TrialClosed | TrialExited):
        raise invalid_field(f"events[{position}]", "must be trial_created, trial_closed or trial_exited")
    if not message.event_id:
        raise invalid_field(f"events[{position}].event_id", "must identify the event across retries")
    if message.event_id.startswith(OWN_EVENT_PREFIX):
        raise invalid_field(f"events[{position}].event_id", f"must not begin with {OWN_EVENT_PREFIX!r}")
    return message.event_id, event


def _read_validation(
    search: Search,
    trial_key: str,
    request: service_pb.ReportValidationsRequest,
    validation: service_pb.ReportValidationsRequest.Validation,
) -> ValidationReported:
    """Converts a validation.

    Raises:
        InvalidArgumentError: It lacks what the search decides by.
    """
    needed = [
        ("metric", search.state.spec.metric),
        ("time_metric", search.state.spec.time_metric or "its time metric"),
    ]
    for field, name in needed:
        if not validation.HasField(field):  # type: ignore[arg-type]
            raise InvalidArgumentError(
                f"validation {validation.sequence} lacks {name!r}, by which the search decides; "
                "report it with every validation"
            )
    return ValidationReported(
        trial_key,
        validation.metric,
        validation.time_metric,
        run=request.run,
        source=request.source,
        position=validation.sequence,
    )
