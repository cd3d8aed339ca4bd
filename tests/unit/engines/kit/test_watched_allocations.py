"""What is told of allocations that are watched."""

from __future__ import annotations

from resolute_engines.kit.watched_allocations import WatchedAllocations
from resolute_engines.protocol import ContainerReport, ContainerState


def report(rank: int, state: ContainerState, reason: str = "") -> ContainerReport:
    return ContainerReport(allocation_id="a", container_rank=rank, state=state, reason=reason)


def test_each_change_is_told_once() -> None:
    watched = WatchedAllocations()
    watched.add("a", containers=2)
    queued = report(0, ContainerState.QUEUED, "Priority")
    assert watched.changes("a", [queued]) == [queued]
    assert watched.changes("a", [queued]) == []
    waits = report(0, ContainerState.QUEUED, "Resources")
    assert watched.changes("a", [waits]) == [waits]


def test_an_end_is_told_once_whatever_the_engine_says_of_it_later() -> None:
    watched = WatchedAllocations()
    watched.add("a", containers=2)
    other = report(1, ContainerState.RUNNING)
    ended = report(0, ContainerState.ENDED)
    assert watched.changes("a", [ended, other]) == [ended, other]
    assert watched.changes("a", [report(0, ContainerState.ENDED, "cancelled"), other]) == []
    assert watched.names() == ["a"]


def test_an_allocation_is_watched_until_all_of_it_has_ended() -> None:
    watched = WatchedAllocations()
    watched.add("a", containers=2)
    watched.add("a", containers=2)
    ends = [report(rank, ContainerState.ENDED) for rank in range(2)]
    assert watched.changes("a", ends) == ends
    assert watched.names() == []
    assert watched.changes("a", ends) == []


def test_nothing_is_told_of_an_allocation_that_was_removed() -> None:
    watched = WatchedAllocations()
    watched.add("a", containers=2)
    watched.remove("a")
    assert watched.changes("a", [report(0, ContainerState.RUNNING)]) == []


def test_what_waited_at_an_engine_that_forgot_it_has_ended() -> None:
    watched = WatchedAllocations()
    watched.add("a", containers=3)
    watched.changes("a", [report(0, ContainerState.QUEUED, "full"), report(1, ContainerState.RUNNING)])
    reason = "its engine knows nothing of it any more"
    assert watched.changes("a", []) == [report(rank, ContainerState.ENDED, reason) for rank in (0, 2)]
    assert watched.names() == []
    assert watched.changes("a", []) == []
