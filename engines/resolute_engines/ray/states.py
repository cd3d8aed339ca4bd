"""Derives the states of an allocation's containers from the answers of the Ray driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.termination_message import parse_message
from resolute_engines.kit.releases import LeftoverContainer, LeftoverContainers
from resolute_engines.protocol import ContainerReport, ContainerState

_WAITS = {
    "INFEASIBLE": "no node or set of nodes of the cluster has that much",
    "NO_RESOURCES": "other groups and actors hold the resources that it needs",
}
"""What Ray's words for the state of scheduling mean."""


def reports_of(allocation_id: str, seen: Mapping[str, Any]) -> list[ContainerReport]:
    """Tells the state of every container of an allocation by rank.

    Args:
        allocation_id: The allocation.
        seen: What the driver says of it.
    """
    return [_report(allocation_id, rank, one, seen) for rank, one in enumerate(seen["containers"])]


def leftover_containers_of(seen: Mapping[str, Any]) -> LeftoverContainers:
    """Tells what is left of an allocation, by what the driver says of it."""
    parts = []
    for rank, one in enumerate(seen["containers"]):
        ended = _report("", rank, one, seen).state is ContainerState.ENDED
        # One whose actor is gone reports nothing more.
        over = one["over"] is not None or (ended and not one["live"])
        parts.append(LeftoverContainer(ended=ended, over=over, sent=bool(one["over"]), sends=not over))
    return LeftoverContainers(ended=all(part.ended for part in parts), parts=tuple(parts))


def _report(
    allocation_id: str, rank: int, one: Mapping[str, Any], seen: Mapping[str, Any]
) -> ContainerReport:
    state, record, reason = ContainerState.ENDED, None, ""
    if one["word"] is not None:
        message = parse_message(one["word"])
        record = message.exit if message.began else _never_ran(one["word"])
    elif one["live"]:
        state, reason = _of_living(one, seen)
    elif seen["withdrawn"] and not one["began"]:
        # It was taken out of the queue.
        record = ExitRecord.withdrawn()
    elif one["began"] or one["made"]:
        reason = "its node of Ray is gone" if one["node_lost"] else "its actor ended"
    else:
        # A launch was cut short.
        state = ContainerState.UNKNOWN
    return ContainerReport(
        allocation_id=allocation_id, container_rank=rank, state=state, exit=record, reason=reason
    )


def _of_living(one: Mapping[str, Any], seen: Mapping[str, Any]) -> tuple[ContainerState, str]:
    if one["began"]:
        return ContainerState.RUNNING, ""
    if seen["placed"]:
        return ContainerState.STARTING, ""
    word = seen["reason"]
    return ContainerState.QUEUED, f"{word}: {_WAITS[word]}" if word in _WAITS else word


def _never_ran(why: str) -> ExitRecord:
    failure = f"the supervisor of the run did not start on its node of Ray:\n{why.strip()}"
    return ExitRecord(exit_code=1, failure=failure, failed_before_entrypoint=True)
