"""What Kubernetes is asked for, what of a config is refused by name, and what its Pods' ends mean."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from support.backends import need_module

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.last_word import BEGAN, say
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.errors import InvalidArgumentError
from resolute_experiments.resources.kubernetes import objects
from resolute_experiments.resources.kubernetes.pods import CONTAINER, parse_pod
from resolute_experiments.resources.kubernetes.request import PodRequest, group_name
from resolute_experiments.resources.kubernetes.settings import KubernetesEngineOptions, KubernetesPoolOptions
from resolute_experiments.resources.protocol import AllocationSpec, ContainerReport, ContainerState
from resolute_experiments.resources.settings import parse_options

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

from resolute_experiments.resources.kubernetes.states import report_of  # noqa: E402 - it wants what was asked for above

ALLOCATION = "3f0c7a52-6d1e-4c58-9d0b-0a8f6f0b7c11.12"


def request(
    *, engine: dict[str, Any] | None = None, pool: dict[str, Any] | None = None, **config: Any
) -> PodRequest:
    """Two Pods of two slots each."""
    return PodRequest(
        spec=AllocationSpec(
            allocation_id=ALLOCATION,
            placements=((0, 1), (2, 3)),
            address="a:1",
            token="secret-token",
            config=config,
        ),
        labels={"resolute/cluster": "c", "resolute/allocation": ALLOCATION},
        engine=KubernetesEngineOptions.model_validate(engine or {}),
        pool=KubernetesPoolOptions.model_validate({"image": "usual", **(pool or {})}),
    )


def pod(made: PodRequest, rank: int = 0) -> dict[str, Any]:
    """A Pod as it is submitted."""
    order = LaunchOrder(allocation_id=ALLOCATION, master="a:1", token="secret-token")
    group = made.group({0: order, 1: order})
    return objects.pod(group, rank, owner="o")


def containers(made: PodRequest) -> dict[str, dict[str, Any]]:
    """The containers of the first Pod by name."""
    return {each["name"]: each for each in pod(made)["spec"]["containers"]}


def test_a_pod_has_no_rights_beyond_its_own_and_no_secret_in_what_others_can_read() -> None:
    made = pod(request())
    assert "secret-token" not in json.dumps(made)
    assert made["spec"]["automountServiceAccountToken"] is False
    for each in made["spec"]["containers"]:
        assert each["securityContext"] == {
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def test_each_pod_has_its_order_in_the_secret() -> None:
    orders = {
        rank: LaunchOrder(allocation_id=ALLOCATION, container_rank=rank, master="a:1", token="t")
        for rank in (0, 1)
    }
    secret = objects.secret(request().group(orders), owner="o")
    read = [json.loads(base64.b64decode(secret["data"][f"launch-{rank}.json"])) for rank in (0, 1)]
    assert [each["container_rank"] for each in read] == [0, 1]
    arguments = pod(request(), 1)["spec"]["containers"][0]["command"]
    assert "/resolute-order/launch-1.json" in arguments


def test_limits_follow_the_slots_of_the_pod_and_the_sender_has_no_share_of_them() -> None:
    made = containers(request(pool={"cpus_per_slot": 1.5, "memory_per_slot": "1 GiB"}))
    assert made[CONTAINER]["resources"]["limits"] == {
        "cpu": "3",
        "memory": str(2 << 30),
        "nvidia.com/gpu": "2",
    }
    assert "nvidia.com/gpu" not in json.dumps(made["resolute-sender"]["resources"])


def test_the_image_of_the_config_goes_before_that_of_the_pool() -> None:
    image = {"cpu": "mine-cpu", "cuda": "mine-cuda"}
    assert containers(request())[CONTAINER]["image"] == "usual"
    named = request(environment={"image": image, "force_pull_image": True})
    assert {each["image"] for each in containers(named).values()} == {"mine-cuda"}
    assert {each["imagePullPolicy"] for each in containers(named).values()} == {"Always"}
    on_cpus = request(pool={"slot_type": "cpu"}, environment={"image": image})
    assert containers(on_cpus)[CONTAINER]["image"] == "mine-cpu"
    with pytest.raises(InvalidArgumentError, match=r"environment\.image is not given"):
        pod(request(pool={"image": ""}))


def test_the_pod_spec_of_a_config_is_laid_over_that_of_the_pool() -> None:
    def said(**spec: Any) -> dict[str, Any]:
        return {"spec": spec}

    made = pod(
        request(
            pool={"pod_spec": said(priorityClassName="low", nodeSelector={"zone": "a"})},
            environment={
                "pod_spec": said(
                    priorityClassName="high",
                    containers=[
                        {
                            "name": CONTAINER,
                            "securityContext": {"runAsUser": 0, "capabilities": {"add": ["SYS_PTRACE"]}},
                            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                        }
                    ],
                )
            },
        )
    )
    assert (made["spec"]["priorityClassName"], made["spec"]["nodeSelector"]) == ("high", {"zone": "a"})
    own = made["spec"]["containers"][0]
    assert (own["securityContext"]["runAsUser"], own["securityContext"]["capabilities"]) == (
        10001,
        {"add": ["SYS_PTRACE"]},
    )
    assert {"name": "data", "mountPath": "/data"} in own["volumeMounts"]


def test_a_runtime_is_copied_from_its_image_before_the_trial_begins() -> None:
    made = pod(request(engine={"runtime_image": "services:1"}))
    (first,) = made["spec"]["initContainers"]
    assert (first["image"], first["command"][-1]) == ("services:1", "/opt/resolute")
    for each in made["spec"]["containers"]:
        assert each["command"][:3] == ["/bin/sh", "/opt/resolute/start.sh", "resolute_launch.pod"]
        assert {"name": "resolute-runtime", "mountPath": "/opt/resolute", "readOnly": True} in each[
            "volumeMounts"
        ]


def test_names_are_those_that_kubernetes_takes() -> None:
    assert group_name(ALLOCATION) == "trial-3f0c7a52-6d1e-4c58-9d0b-0a8f6f0b7c11-12"
    objects.check_name(group_name(ALLOCATION.replace(".12", ".123456789")))


def test_a_pod_spec_of_settings_that_could_not_be_merged_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"resource_pools\[1\]\.pod_spec.*hostNetwork"):
        parse_options(
            KubernetesPoolOptions, {"pod_spec": {"spec": {"hostNetwork": True}}}, at="resource_pools[1]"
        )


def ended(*, deleted: bool = False, **terminated: Any) -> ContainerReport:
    """What is reported of a Pod whose container ended so."""
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
                "spec": {"nodeName": "n"},
                "status": {"phase": "Failed", "containerStatuses": statuses},
            }
        )
    )


def test_the_end_is_what_the_container_said_of_it() -> None:
    record = ExitRecord(exit_code=3, failure="x", end_time=1.0)
    report = ended(exitCode=0, reason="OOMKilled", message=say(record))
    assert (report.allocation_id, report.container_rank) == (ALLOCATION, 1)
    assert (report.state, report.exit, report.reason) == (ContainerState.ENDED, record, "OOMKilled")


def test_a_container_whose_supervisor_was_killed_is_lost() -> None:
    report = ended(exitCode=137, reason="Error", message=BEGAN)
    assert report.lost


def test_a_container_that_never_began_is_a_failure_with_what_it_said() -> None:
    report = ended(exitCode=127, reason="Error", message="the image has no Python")
    assert report.exit is not None
    assert report.exit.failed_before_entrypoint
    assert report.exit.failure.endswith("the image has no Python")


def test_a_container_that_never_began_because_its_pod_had_to_go_is_lost() -> None:
    assert ended(deleted=True, exitCode=137, reason="Error").lost
    assert ended().lost
