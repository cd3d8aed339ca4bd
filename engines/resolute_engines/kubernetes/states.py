"""Derives the states of an allocation's containers from the status of their Pods."""

from __future__ import annotations

from pydantic import ByteSize

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.termination_message import parse_message
from resolute_engines.kit.releases import LeftoverContainer, LeftoverContainers
from resolute_engines.kubernetes.client import Submitted
from resolute_engines.kubernetes.pods import Pod, PodState
from resolute_engines.kubernetes.request import ALLOCATION_LABEL
from resolute_engines.protocol import ContainerReport, ContainerState

_STATES = {
    PodState.QUEUED: ContainerState.QUEUED,
    PodState.STARTING: ContainerState.STARTING,
    PodState.RUNNING: ContainerState.RUNNING,
}
_UNSENT = "reports and lines that were not sent are lost with its Pod"


def reports_of(group: Submitted) -> list[ContainerReport]:
    """Tells the state of every container of an allocation by rank."""
    pods = {pod.part: pod for pod in group.pods}
    return [
        report_of(pods[rank]) if rank in pods else _without_pod(group, rank) for rank in range(group.parts)
    ]


def report_of(pod: Pod) -> ContainerReport:
    """Tells the state of a container by its Pod."""
    allocation_id = pod.labels.get(ALLOCATION_LABEL, "")
    if pod.state is not PodState.ENDED:
        # Why one that runs may be about to end is reported as a notice.
        reason = "" if pod.state is PodState.RUNNING else pod.reason
        return ContainerReport(
            allocation_id=allocation_id, container_rank=pod.part, state=_STATES[pod.state], reason=reason
        )
    message = parse_message(pod.words)
    record = message.exit
    if record is None and pod.passed_limit and not pod.disrupted:
        record = _out_of_memory(pod)
    elif not (message.began or pod.disrupted or pod.exit_code is None):
        record = never_ran(pod.words or pod.reason or f"exit code {pod.exit_code}")
    reasons = [pod.reason]
    if record is None and pod.began and pod.over and not pod.sent:
        # With both of its containers the volume goes, as with a node that falls.
        reasons.append(_UNSENT)
    return _ended(allocation_id, pod.part, record, reason="; ".join(filter(None, reasons)))


def leftover_containers_of(group: Submitted) -> LeftoverContainers:
    """Tells what is left of an allocation in its Pods."""
    parts = (
        LeftoverContainer(
            ended=pod.state is PodState.ENDED,
            over=pod.over,
            sent=pod.sent,
            sends=not pod.over and parse_message(pod.words).began,
        )
        for pod in group.pods
    )
    return LeftoverContainers(ended=group.all_ended, parts=tuple(parts))


def never_ran(why: str) -> ExitRecord:
    """The end of a container whose supervisor did not begin, for a reason that would be there again."""
    failure = f"the supervisor of the run did not start in its Pod:\n{why.strip()}"
    return ExitRecord(exit_code=1, failure=failure, failed_before_entrypoint=True)


def _out_of_memory(pod: Pod) -> ExitRecord:
    """The end of a container whose supervisor was killed with all of it for passing its memory limit."""
    limit = pod.passed_limit
    size = ByteSize(int(limit)).human_readable() if limit.isdecimal() else limit
    return ExitRecord.out_of_memory(
        f"the memory limit of its container, {size}",
        remedy=(
            "raise memory_per_slot of the pool or, where the pool has none, the limit in "
            "environment.pod_spec or in a LimitRange of the namespace"
        ),
        end_time=pod.ended_at,
    )


def blocked(pod: Pod) -> ContainerReport:
    """The end of a container that waits in vain."""
    return _ended(pod.labels.get(ALLOCATION_LABEL, ""), pod.part, never_ran(pod.reason), reason=pod.reason)


def _without_pod(group: Submitted, rank: int) -> ContainerReport:
    allocation_id = group.labels.get(ALLOCATION_LABEL, "")
    if not group.complete:
        # A submission was cut short.
        return ContainerReport(allocation_id=allocation_id, container_rank=rank, state=ContainerState.UNKNOWN)
    record = ExitRecord.withdrawn() if group.withdrawn else None
    return _ended(allocation_id, rank, record, reason="" if record else f"its Pod was deleted; {_UNSENT}")


def _ended(allocation_id: str, rank: int, record: ExitRecord | None, *, reason: str) -> ContainerReport:
    return ContainerReport(
        allocation_id=allocation_id,
        container_rank=rank,
        state=ContainerState.ENDED,
        exit=record,
        reason=reason,
    )
