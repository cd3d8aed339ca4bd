"""Reading what Kubernetes says of Pods, and writing the objects of a group."""

from __future__ import annotations

from typing import Any

import pytest

from resolute.errors import DataLossError, InvalidArgumentError
from resolute_engines.kubernetes.objects import PodGroup, pod, secret, service
from resolute_engines.kubernetes.pods import CONTAINER, SENDER, Pod, PodState, parse_pod


def read(*, deleted: bool = False, node: str = "n", **status: Any) -> Pod:
    """Reads a Pod of such a status."""
    metadata = {"name": "a-0", "uid": "u", "labels": {"resolute/group": "a", "resolute/part": "0"}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return parse_pod({"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def container(state: dict[str, Any], name: str = CONTAINER) -> dict[str, Any]:
    """The status of a container."""
    return {"name": name, "state": state}


def test_pod_without_a_node_is_queued_with_the_reason_of_the_scheduler() -> None:
    conditions = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3\n nodes"}
    ]
    seen = read(node="", phase="Pending", conditions=conditions)
    assert (seen.state, seen.reason, seen.blocked) == (PodState.QUEUED, "Unschedulable: 0/3 nodes", False)


def test_held_back_pod_says_so() -> None:
    # What Kueue does with Pods that wait for their quota.
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    assert read(node="", phase="Pending", conditions=conditions).reason == "SchedulingGated"


def test_container_that_is_being_made_is_nothing_to_speak_of() -> None:
    seen = read(phase="Pending", containerStatuses=[container({"waiting": {"reason": "ContainerCreating"}})])
    assert (seen.state, seen.reason, seen.blocked) == (PodState.STARTING, "", False)


def test_image_of_a_container_that_goes_first_is_the_reason_too() -> None:
    seen = read(
        phase="Pending",
        containerStatuses=[container({"waiting": {"reason": "PodInitializing"}})],
        initContainerStatuses=[
            container({"waiting": {"reason": "ImagePullBackOff", "message": "no x"}}, "first")
        ],
    )
    assert (seen.state, seen.reason, seen.blocked) == (PodState.STARTING, "ImagePullBackOff: no x", True)


def test_trial_has_ended_when_its_container_has_whatever_runs_beside_it() -> None:
    ended = container({"terminated": {"exitCode": 3, "reason": "Error"}})
    seen = read(phase="Running", containerStatuses=[container({"running": {}}, "beside"), ended])
    assert (seen.state, seen.exit_code, seen.reason, seen.disrupted) == (PodState.ENDED, 3, "", False)


@pytest.mark.parametrize("reason", ["Evicted", "Preempting", "NodeShutdown", "NodeLost"])
def test_pod_that_ended_for_the_sake_of_the_cluster_is_disrupted(reason: str) -> None:
    seen = read(phase="Failed", reason=reason, message="The node was low on memory.")
    assert (seen.state, seen.exit_code, seen.disrupted) == (PodState.ENDED, None, True)
    assert seen.reason == f"{reason}: The node was low on memory."


def test_condition_of_newer_kubernetes_names_the_disruption() -> None:
    conditions = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "by b"}
    ]
    running = read(phase="Running", conditions=conditions, containerStatuses=[container({"running": {}})])
    assert (running.state, running.disrupted, running.leaving) == (PodState.RUNNING, True, False)
    assert running.reason == "PreemptionByScheduler: by b"


def test_deleted_pod_is_leaving_until_it_has_ended() -> None:
    leaving = read(deleted=True, phase="Running", containerStatuses=[container({"running": {}})])
    assert (leaving.state, leaving.leaving, leaving.disrupted) == (PodState.RUNNING, True, True)
    ended = read(deleted=True, phase="Succeeded")
    assert (ended.state, ended.leaving, ended.disrupted) == (PodState.ENDED, False, True)


def test_deadline_is_no_disruption() -> None:
    seen = read(phase="Failed", reason="DeadlineExceeded", message="active too long")
    assert (seen.reason, seen.disrupted) == ("DeadlineExceeded: active too long", False)


@pytest.mark.parametrize("manifest", [{}, {"metadata": {"name": "a"}}, {"metadata": []}])
def test_what_is_no_pod_is_refused(manifest: dict[str, Any]) -> None:
    with pytest.raises(DataLossError, match="cannot be read"):
        parse_pod(manifest)


def test_pods_of_a_group_go_with_its_service_and_have_names_for_each_other() -> None:
    wanted = {
        "metadata": {"labels": {"team": "x", "resolute/group": "other"}},
        "spec": {"volumes": [{"name": "v"}]},
    }
    group = PodGroup(name="run-a", pods=({}, wanted), labels={"resolute/cluster": "c"}, files={"token": b"t"})
    made = pod(group, 1, owner="uid-of-service")
    assert made["metadata"]["name"] == "run-a-1"
    assert made["metadata"]["labels"] == {
        "team": "x",
        "resolute/cluster": "c",
        "resolute/group": "run-a",
        "resolute/part": "1",
    }
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == ["uid-of-service"]
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("rank-1", "run-a")
    held = secret(group, owner="uid-of-service")
    assert made["spec"]["volumes"][1]["secret"]["secretName"] == held["metadata"]["name"]
    assert held["data"] == {"token": "dA=="}
    assert service(group)["spec"]["selector"] == {"resolute/group": "run-a"}
    # What was given is as it was, so that it can be submitted again.
    assert wanted["spec"] == {"volumes": [{"name": "v"}]}


def test_secrets_of_a_group_are_not_printed() -> None:
    assert "geheim" not in repr(PodGroup(name="a", pods=(), files={"token": b"geheim"}))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "A"}, "cannot name Pods"),
        ({"name": "a" * 57}, "cannot name Pods"),
        ({"name": "a-"}, "cannot name Pods"),
        ({"labels": {"x": "a b"}}, "cannot be the label x"),
        ({"files": {"a/b": b""}}, "a file whose name a Secret cannot have"),
        ({"files": {"a": bytes(1 << 21)}}, "more than 1048576 bytes"),
    ],
)
def test_group_that_kubernetes_would_refuse_is_refused_before(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        PodGroup(**{"name": "a", "pods": (), **changes})


def test_pod_is_over_when_its_sender_is_whatever_else_runs_in_it() -> None:
    ended = container({"terminated": {"exitCode": 0, "message": "words"}})
    beside = container({"running": {}}, "beside")
    sending = read(phase="Running", containerStatuses=[ended, beside, container({"running": {}}, SENDER)])
    assert (sending.words, sending.over, sending.sent) == ("words", False, False)
    for code, sent in ((0, True), (1, False)):
        sender = container({"terminated": {"exitCode": code}}, SENDER)
        seen = read(phase="Running", containerStatuses=[ended, beside, sender])
        assert (seen.over, seen.sent) == (True, sent)
    assert read(phase="Failed", reason="Evicted").over
