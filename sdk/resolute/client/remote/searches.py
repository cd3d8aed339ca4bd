"""The searcher, as far as people ask it: what a search would run."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.api.searcher.v1 import search_pb2, searcher_service_pb2, searcher_service_pb2_grpc
from resolute.client.session import Session


@dataclass(frozen=True)
class Ending:
    """How many trials end at one length."""

    length: int
    trials: int


@dataclass(frozen=True)
class Bracket:
    """Trials that share rungs."""

    trials: int
    concurrent_trials: int
    """Trials alive at once; zero is no limit."""
    endings: tuple[Ending, ...]
    """Shortest first."""


@dataclass(frozen=True)
class Plan:
    """What a search would run if every trial went as planned."""

    brackets: tuple[Bracket, ...]
    total_units: int
    """Training units of the whole search."""


class Searches:
    """Calls of the searcher.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(searcher_service_pb2_grpc.SearcherServiceStub)

    def preview(self, spec: search_pb2.SearchSpec) -> Plan:
        """Tells what a search would run, without creating it."""
        response = self._stub.PreviewSearch(searcher_service_pb2.PreviewSearchRequest(spec=spec))
        brackets = tuple(
            Bracket(
                bracket.trials,
                bracket.concurrent_trials,
                tuple(Ending(ending.length, ending.trials) for ending in bracket.endings),
            )
            for bracket in response.brackets
        )
        return Plan(brackets, response.total_units)
