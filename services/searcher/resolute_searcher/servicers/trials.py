"""The RPCs about single trials: what they did, what they are to do, which of their runs may speak."""

from __future__ import annotations

from typing import Any

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import InvalidArgumentError, RunSupersededError, Violation
from resolute_searcher.engine.search import Search
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.log.events import (
    Sealed,
    TrialClosed,
    TrialCreated,
    TrialExited,
    ValidationCompleted,
    ValidationReported,
)
from resolute_searcher.runtime.live_searches import Change
from resolute_searcher.servicers.base import BaseCalls
from resolute_searcher.store import trials
from resolute_searcher.store.log import OWN_EVENT_PREFIX
from resolute_searcher.wire.log import event_from


class TrialCalls(BaseCalls):
    """Answers the calls about single trials."""

    async def ReportEvents(
        self, request: service_pb.ReportEventsRequest, context: Any
    ) -> service_pb.ReportEventsResponse:
        """Takes that trials were created, closed, or exited, which ends them, too."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        events = [_read_event(position, event) for position, event in enumerate(request.events)]

        def act(change: Change) -> int:
            for event_id, event in events:
                # A trial is created once: the search knows a repeat by itself, and the log need not index it.
                change.record(event, event_id="" if isinstance(event, TrialCreated) else event_id)
                left = isinstance(event, TrialExited) and change.search.trial(event.request_id).exit
                if left:
                    change.record(TrialClosed(event.request_id), event_id=f"{event_id}/closed")
            return change.search.sequence

        return service_pb.ReportEventsResponse(last_event_sequence=await self.searches.change(search_id, act))

    async def GetOperation(
        self, request: service_pb.GetOperationRequest, context: Any
    ) -> service_pb.GetOperationResponse:
        """Gives a trial's current operation."""
        search_id, request_id = await self.trial_index.find(request.trial_id)

        def act(change: Change) -> pb.TrialOperation:
            if request.run:
                authorize(change.search, request_id, request.run)
            return operation_status(change.search, request_id)

        operation = await self.searches.change(search_id, act)
        return service_pb.GetOperationResponse(operation=operation)

    async def CompleteOperation(
        self, request: service_pb.CompleteOperationRequest, context: Any
    ) -> service_pb.CompleteOperationResponse:
        """Completes a trial's current operation."""
        search_id, request_id = await self.trial_index.find(request.trial_id)
        if not request.HasField("metric"):
            raise invalid_field("metric", "must be the number that the validation gave; NaN if it gave none")

        def act(change: Change) -> pb.TrialOperation:
            authorize(change.search, request_id, request.run)
            change.record(ValidationCompleted(request_id, request.metric, request.length))
            return operation_status(change.search, request_id)

        operation = await self.searches.change(search_id, act)
        return service_pb.CompleteOperationResponse(operation=operation)

    async def ReportProgress(
        self, request: service_pb.ReportProgressRequest, context: Any
    ) -> service_pb.ReportProgressResponse:
        """Notes how far a trial is."""
        search_id, request_id = await self.trial_index.find(request.trial_id)

        def act(change: Change) -> float:
            authorize(change.search, request_id, request.run)
            change.search.reach(request_id, request.progress)
            return change.search.reached(request_id)

        reached = await self.searches.change(search_id, act)
        await self.storage.write(lambda c: trials.write_progress(c, request.trial_id, reached))
        return service_pb.ReportProgressResponse()

    async def ReportValidations(
        self, request: service_pb.ReportValidationsRequest, context: Any
    ) -> service_pb.ReportValidationsResponse:
        """Takes validations of a time-driven search; tells whether the trial must stop."""
        search_id, request_id = await self.trial_index.find(request.trial_id)
        if not request.source:
            raise invalid_field("source", "must name the spool that the reports come from")

        def act(change: Change) -> bool:
            authorize(change.search, request_id, request.run)
            for report in _read_validations(change.search, request_id, request):
                change.record(report)
            return change.search.trial(request_id).closing

        return service_pb.ReportValidationsResponse(stop=await self.searches.change(search_id, act))

    async def Seal(self, request: service_pb.SealRequest, context: Any) -> service_pb.SealResponse:
        """Raises the smallest run that has authority; tells where the trial stands at that instant."""
        search_id, request_id = await self.trial_index.find(request.trial_id)
        if request.min_run < 1:
            raise invalid_field("min_run", f"must be a run, from 1, not {request.min_run}")

        def act(change: Change) -> pb.TrialOperation:
            change.record(Sealed(request_id, request.min_run))
            return operation_status(change.search, request_id)

        return service_pb.SealResponse(operation=await self.searches.change(search_id, act))


def authorize(search: Search, request_id: str, run: int) -> None:
    """Refuses runs that were superseded."""
    floor = search.trial(request_id).min_run
    if run < 1:
        raise invalid_field("run", f"must be the run that speaks, from 1, not {run}")
    if run < floor:
        raise RunSupersededError(
            f"run {run} of the trial was superseded: only run {floor} and later ones may speak for it",
            metadata={"min_run": str(floor)},
        )


def operation_status(search: Search, request_id: str) -> pb.TrialOperation:
    """Tells where a trial stands."""
    trial = search.trial(request_id)
    return pb.TrialOperation(
        length=trial.length,
        completed=trial.length > 0 and not trial.pending and trial.exit is None,
        closed=trial.closing or trial.ended,
        progress=search.reached(request_id),
    )


def _read_event(position: int, message: pb.Event) -> tuple[str, TrialCreated | TrialClosed | TrialExited]:
    event = event_from(message)
    if not isinstance(event, TrialCreated | TrialClosed | TrialExited):
        raise invalid_field(f"events[{position}]", "must be trial_created, trial_closed or trial_exited")
    if not message.event_id:
        raise invalid_field(f"events[{position}].event_id", "must identify the event across retries")
    if message.event_id.startswith(OWN_EVENT_PREFIX):
        raise invalid_field(f"events[{position}].event_id", f"must not begin with {OWN_EVENT_PREFIX!r}")
    return message.event_id, event


def _read_validations(
    search: Search, request_id: str, request: service_pb.ReportValidationsRequest
) -> list[ValidationReported]:
    """Reads reports: all of them, or none if one lacks what the search needs."""
    violations: list[Violation] = []
    for position, report in enumerate(request.validations):
        needed = [("metric", search.spec.metric), ("time", search.spec.time_metric or "its time metric")]
        for field, name in needed:
            if not report.HasField(field):  # type: ignore[arg-type]
                description = f"validation {report.sequence} lacks {name!r}, by which the search decides"
                violations.append(
                    Violation(field=f"validations[{position}].{field}", description=description)
                )
    if violations:
        raise InvalidArgumentError(
            f"trial {request.trial_id}: {violations[0].description}; report it with every validation",
            violations=violations,
        )
    return [
        ValidationReported(
            request_id,
            report.metric,
            report.time,
            run=request.run,
            source=request.source,
            position=report.sequence,
        )
        for report in request.validations
    ]
