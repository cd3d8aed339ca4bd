"""The searcher's calls for users: previews, simulations and replays of searches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from google.protobuf import text_format
from google.protobuf.duration_pb2 import Duration

from resolute.api.searcher.v1 import (
    event_pb2,
    operation_pb2,
    search_pb2,
    search_spec_pb2,
    searcher_service_pb2,
    searcher_service_pb2_grpc,
)
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema.reasons import describe_reason, reason

_LONG_SECONDS = 300.0  # of calls that calculate
_POLL_MARGIN_SECONDS = 15.0


@dataclass(frozen=True)
class PlannedLength:
    """The number of trials that end at one length."""

    length: int
    trials: int


@dataclass(frozen=True)
class Bracket:
    """A bracket: the trials that share rungs."""

    trials: int
    concurrent_trials: int
    """Trials alive at once; zero is no limit."""
    endings: tuple[PlannedLength, ...]
    """Shortest first."""


@dataclass(frozen=True)
class Plan:
    """The trials that a search would run if every trial went as planned."""

    brackets: tuple[Bracket, ...]
    total_units: int
    """Training units of the whole search."""


@dataclass(frozen=True)
class Curve:
    """A learning curve: metrics at ascending lengths."""

    lengths: tuple[float, ...]
    metrics: tuple[float, ...]


@dataclass(frozen=True)
class SimulatedRung:
    """The number of trials that reached one length in one bracket."""

    bracket: int
    length: int
    reached: int
    ended: int


@dataclass(frozen=True)
class SimulatedTrial:
    """A simulated trial."""

    bracket: int
    length: int
    metric: float
    start: float
    end: float


@dataclass(frozen=True)
class SimulationResult:
    """The result of a simulation. One unit of training takes one unit of virtual time."""

    rungs: tuple[SimulatedRung, ...]
    trials: tuple[SimulatedTrial, ...]
    """In the order of creation."""
    total_units: int
    duration: float
    events: int


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay: the decisions of a log, made again."""

    equal: bool
    first_difference: int
    detail: str
    event: str
    """The last event that was replayed, for people."""
    decisions: tuple[str, ...]
    """What was decided upon it, for people."""
    reasons: tuple[str, ...]
    """Why, for people; one for each decision."""
    state: dict[str, Any]
    """The search after it."""


@dataclass(frozen=True)
class Importance:
    """The importance of one hyperparameter."""

    name: str
    """Its dotted name."""
    share: float
    """Share of the metric's variance that it explains alone, from 0 to 1."""
    error: float
    """Standard error of the share."""


@dataclass(frozen=True)
class Importances:
    """The importances of the hyperparameters of a search."""

    found: tuple[Importance, ...]
    """Largest first; none where results or differences are too few."""
    trials: int
    """Trials whose results were regarded."""
    trials_with_result: int
    """Trials that have a finite metric."""
    omitted: int
    """Hyperparameters with several values that were left out."""


@dataclass(frozen=True)
class SearchStatus:
    """The progress of a search."""

    over: bool
    """Every requested trial is closed, and none will be added."""
    progress: float
    """Done share, from 0 to 1."""
    trials_requested: int
    trials_closed: int
    events: int
    """Position of the last event in the log."""


@dataclass(frozen=True)
class PendingEvents:
    """The events that the client of a custom search has to answer."""

    events: tuple[event_pb2.Event, ...]
    progress: dict[str, float]
    """How far open trials are, by key."""
    over: bool
    """No further event will come."""


class Searches:
    """Calls of the searcher.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(searcher_service_pb2_grpc.SearcherServiceStub)

    def preview(self, spec: search_spec_pb2.SearchSpec) -> Plan:
        """Returns what a search would run, without creating it."""
        response = self._stub.PreviewSearch(searcher_service_pb2.PreviewSearchRequest(spec=spec))
        brackets = tuple(
            Bracket(
                bracket.trials,
                bracket.concurrent_trials,
                tuple(PlannedLength(ending.length, ending.trials) for ending in bracket.endings),
            )
            for bracket in response.brackets
        )
        return Plan(brackets, response.total_units)

    def simulate(
        self, spec: search_spec_pb2.SearchSpec, *, curves: Sequence[Curve] = (), slots: int = 0
    ) -> SimulationResult:
        """Plays a search in virtual time, without creating it.

        Args:
            spec: What to search.
            curves: Recorded learning curves, taken in turn; empty for synthetic ones.
            slots: Trials that train at once; 0 for as many as the search asks for.
        """
        recorded = [
            searcher_service_pb2.SimulateSearchRequest.Curve(lengths=curve.lengths, metrics=curve.metrics)
            for curve in curves
        ]
        result = self._stub.SimulateSearch(
            searcher_service_pb2.SimulateSearchRequest(spec=spec, curves=recorded, slots=slots or None),
            timeout=_LONG_SECONDS,
        )
        columns = zip(
            result.trial_brackets,
            result.trial_lengths,
            result.trial_metrics,
            result.trial_starts,
            result.trial_ends,
            strict=True,
        )
        return SimulationResult(
            rungs=tuple(
                SimulatedRung(rung.bracket, rung.length, rung.reached, rung.ended) for rung in result.rungs
            ),
            trials=tuple(SimulatedTrial(*row) for row in columns),
            total_units=result.total_units,
            duration=result.duration,
            events=result.events,
        )

    def poll(self, search_id: str, *, wait: float) -> PendingEvents:
        """Returns the events of a custom search that wait for an answer.

        Args:
            search_id: UUID of the search, which is the experiment's.
            wait: Longest wait for an event, in seconds, at most 60.
        """
        max_wait = Duration()
        max_wait.FromTimedelta(timedelta(seconds=wait))
        result = self._stub.PollEvents(
            searcher_service_pb2.PollEventsRequest(search_id=search_id, max_wait=max_wait),
            timeout=wait + _POLL_MARGIN_SECONDS,
        )
        progress = {trial.trial_key: trial.progress for trial in result.progress}
        return PendingEvents(tuple(result.events), progress, result.over)

    def post(self, search_id: str, operations: Sequence[operation_pb2.Operation], *, answers: int) -> None:
        """Answers events of a custom search.

        Args:
            search_id: UUID of the search, which is the experiment's.
            operations: What was decided, in order.
            answers: The event, and with it all before.
        """
        self._stub.PostOperations(
            searcher_service_pb2.PostOperationsRequest(
                search_id=search_id, operations=operations, answered_sequence=answers
            )
        )

    def status(self, search_id: str) -> SearchStatus:
        """Returns how far a search is."""
        response = self._stub.GetSearch(searcher_service_pb2.GetSearchRequest(search_id=search_id))
        status = response.search.status
        return SearchStatus(
            over=status.state == search_pb2.SEARCH_STATE_SHUT_DOWN,
            progress=status.progress,
            trials_requested=status.trials_requested,
            trials_closed=status.trials_closed,
            events=status.last_event_sequence,
        )

    def operation(self, trial_uuid: str) -> operation_pb2.TrialOperation:
        """Returns where a trial stands in its search."""
        request = searcher_service_pb2.GetOperationRequest(trial_id=trial_uuid)
        return self._stub.GetOperation(request).operation

    def log(
        self,
        search_id: str,
        *,
        trial_keys: Sequence[str] = (),
        kinds: Sequence[str] = (),
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[event_pb2.LogEntry]:
        """Yields what happened in a search, what was decided upon it, and why.

        Args:
            search_id: UUID of the search, which is the experiment's.
            trial_keys: Only entries about one of these trials; empty for all.
            kinds: Only events of these kinds, such as ``trial_closed``; empty for all.
            newest_first: Begin with the newest entry.
            limit: Most entries; None for all.
        """
        request = searcher_service_pb2.ListEventsRequest(
            search_id=search_id,
            trial_keys=trial_keys,
            kinds=kinds,
            order_by="sequence desc" if newest_first else "sequence",
        )
        yield from all_items(self._stub.ListEvents, request, "entries", limit=limit)

    def importances(self, search_id: str) -> Importances:
        """Estimates how much each hyperparameter matters, by fANOVA; the same results give the same estimate.

        Args:
            search_id: UUID of the search, which is the experiment's.

        Raises:
            FailedPreconditionError: What it needs is not installed beside the service.
            QuotaError: It takes too long.
        """
        result = self._stub.GetImportances(
            searcher_service_pb2.GetImportancesRequest(search_id=search_id), timeout=_LONG_SECONDS
        )
        return Importances(
            found=tuple(
                Importance(importance.name, importance.share, importance.error)
                for importance in result.importances
            ),
            trials=result.trials,
            trials_with_result=result.trials_with_result,
            omitted=result.omitted_hparams,
        )

    def replay(self, search_id: str, *, until: int = 0) -> ReplayResult:
        """Decides the log of a search again and compares.

        Args:
            search_id: UUID of the search, which is the experiment's.
            until: Last event to replay; 0 for all.
        """
        result = self._stub.ReplaySearch(
            searcher_service_pb2.ReplaySearchRequest(search_id=search_id, until_sequence=until or None),
            timeout=_LONG_SECONDS,
        )
        return ReplayResult(
            equal=result.equal,
            first_difference=result.first_difference,
            detail=result.detail,
            event=_line(result.last.event),
            decisions=tuple(map(_decision, result.last.operations)),
            reasons=tuple(describe_reason(reason(operation.reason)) for operation in result.last.operations),
            state=json.loads(result.state_json),
        )


def _decision(operation: operation_pb2.Operation) -> str:
    bare = operation_pb2.Operation()
    bare.CopyFrom(operation)
    bare.ClearField("reason")
    return _line(bare)


def _line(message: Any) -> str:
    return text_format.MessageToString(message, as_one_line=True)
