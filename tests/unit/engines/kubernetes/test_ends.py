"""What the ends of Pods mean, by what Kubernetes says of them and what their containers said last."""

from __future__ import annotations

from typing import Any

import pytest
from support.backends import need_module

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.termination_message import BEGAN, write_message
from resolute_engines.kubernetes.pods import CONTAINER, SENDER, parse_pod
from resolute_engines.protocol import ContainerReport, ContainerState
from resolute_experiments.exits.policy import Exit, ExitFacts, Operation, TrialContext, decide_exit
from resolute_experiments.states import ExperimentState, TrialEvent

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

from resolute_engines.kubernetes.states import report_of  # noqa: E402 - it wants what was asked for above

ALLOCATION = "3f0c7a52-6d1e-4c58-9d0b-0a8f6f0b7c11.12"


def ended(
    *,
    deleted: bool = False,
    limit: str = "",
    pod_limit: str = "",
    status: dict[str, Any] | None = None,
    **terminated: Any,
) -> ContainerReport:
    """What is reported of a Pod whose container ended so.

    Args:
        deleted: Whether the Pod was deleted.
        limit: Memory limit of its container.
        pod_limit: Memory limit of the Pod itself.
        status: What its status has besides.
        terminated: The end of its container.
    """
    own = {"name": CONTAINER, "resources": {"limits": {"memory": limit}} if limit else {}}
    spec: dict[str, Any] = {"nodeName": "n", "containers": [own]}
    if pod_limit:
        spec["resources"] = {"limits": {"memory": pod_limit}}
    metadata: dict[str, Any] = {
        "name": "a-0",
        "uid": "u",
        "labels": {"resolute/part": "1", "resolute/allocation": ALLOCATION},
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    statuses = [{"name": CONTAINER, "state": {"terminated": terminated}}] if terminated else []
    return report_of(
        parse_pod(
            {
                "metadata": metadata,
                "spec": spec,
                "status": {"phase": "Failed", "containerStatuses": statuses, **(status or {})},
            }
        )
    )


def test_the_end_is_what_the_container_said_of_it() -> None:
    record = ExitRecord(exit_code=3, failure="x", end_time=1.0)
    report = ended(exitCode=0, reason="OOMKilled", message=write_message(record))
    assert (report.allocation_id, report.container_rank) == (ALLOCATION, 1)
    assert (report.state, report.exit, report.reason) == (ContainerState.ENDED, record, "OOMKilled")


def test_a_container_whose_supervisor_was_killed_is_lost() -> None:
    report = ended(exitCode=137, reason="Error", message=BEGAN)
    assert report.lost


def test_what_is_lost_with_its_sender_says_that_reports_and_lines_are_missing() -> None:
    def of(code: int) -> ContainerReport:
        own = {"name": CONTAINER, "state": {"terminated": {"exitCode": 137}}}
        sender = {"name": SENDER, "state": {"terminated": {"exitCode": code}}}
        return ended(status={"reason": "NodeLost", "containerStatuses": [own, sender]})

    fallen, sent = of(137), of(0)
    assert fallen.lost
    assert sent.lost
    assert fallen.reason == "NodeLost; reports and lines that were not sent are lost with its Pod"
    assert sent.reason == "NodeLost"
    # A node that is gone says nothing more: all that is known is that it ran there.
    silent = [{"name": CONTAINER, "state": {"running": {}}}]
    assert "were not sent" in ended(status={"containerStatuses": silent}).reason
    never = ended(status={"reason": "Evicted"})
    assert never.reason == "Evicted", "it never ran"


def test_a_container_that_never_began_is_a_failure_with_what_it_said() -> None:
    report = ended(exitCode=127, reason="Error", message="the image has no Python")
    assert report.exit is not None
    assert report.exit.failed_before_entrypoint
    assert report.exit.failure.endswith("the image has no Python")


def test_a_container_that_never_began_because_its_pod_had_to_go_is_lost() -> None:
    assert ended(deleted=True, exitCode=137, reason="Error").lost
    assert ended().lost


KILLED_AS_A_WHOLE: dict[str, Any] = {
    "exitCode": 137,
    "reason": "OOMKilled",
    "message": BEGAN,
    "startedAt": "2026-11-27T12:00:00Z",
    "finishedAt": "2026-11-27T12:00:09Z",
}
"""The end of a container as Kubernetes 1.28 and newer write it: the kernel killed all of its processes."""
EVICTED: dict[str, Any] = {
    "reason": "Evicted",
    "message": "The node was low on resource: memory.",
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}],
}


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"limit": "8589934592"}, "8.0GiB"),
        ({"limit": "8Gi"}, "8Gi"),
        ({"pod_limit": "9Gi"}, "9Gi"),
    ],
)
def test_a_container_that_was_killed_as_a_whole_for_its_memory_limit_has_failed(
    limits: dict[str, Any], named: str
) -> None:
    report = ended(**limits, **KILLED_AS_A_WHOLE)
    assert report.exit is not None
    assert (report.exit.exit_code, report.exit.end_time) == (137, 1795780809.0)
    assert named in report.exit.failure
    assert "raise memory_per_slot of the pool" in report.exit.failure
    # What lets `max_restarts` end a run that will never fit.
    facts = ExitFacts(
        exit=Exit(exit_code=report.exit.exit_code),
        operation=Operation(uses_operations=False, completed=False, closed=False),
        situation=TrialContext(
            experiment=ExperimentState.ACTIVE, kill_requested=False, restarts=5, max_restarts=5
        ),
    )
    assert decide_exit(facts).trial is TrialEvent.RUN_FAILED


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"limit": "8Gi", "status": EVICTED},
        {"limit": "8Gi", "status": {"conditions": EVICTED["conditions"]}},
        {"limit": "8Gi", "deleted": True},
        {"limit": "8Gi", "reason": "Error"},
    ],
    ids=["the node had no memory left", "evicted", "about to be evicted", "deleted", "killed by another"],
)
def test_a_container_that_its_node_ended_is_lost(case: dict[str, Any]) -> None:
    assert ended(**{**KILLED_AS_A_WHOLE, **case}).lost
