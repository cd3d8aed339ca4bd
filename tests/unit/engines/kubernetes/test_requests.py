"""What Kubernetes is asked for, and what of a config is refused by name."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from support.backends import need_module

from resolute.contracts.run.launch_order import LaunchOrder
from resolute.errors import InvalidArgumentError, InvalidConfigError
from resolute_engines.kubernetes import objects
from resolute_engines.kubernetes.pods import CONTAINER
from resolute_engines.kubernetes.request import PodRequest, group_name
from resolute_engines.kubernetes.settings import KubernetesEngineOptions, KubernetesPoolOptions
from resolute_engines.protocol import AllocationSpec
from resolute_engines.settings import parse_options

CONFINED = {
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
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
        assert each["securityContext"] == CONFINED


def test_each_container_is_what_a_restricted_namespace_admits_unless_a_pod_spec_says_otherwise() -> None:
    made = pod(request(engine={"runtime_image": "services:1"}))["spec"]
    for each in (*made["containers"], *made["initContainers"]):
        assert each["securityContext"] == CONFINED
    loose = {"runAsNonRoot": False, "seccompProfile": {"type": "Unconfined"}}
    as_root = {key: value for key, value in CONFINED.items() if key != "runAsNonRoot"}
    own = containers(request(engine={"user": "0:0"}))[CONTAINER]["securityContext"]
    assert own == {**as_root, "runAsUser": 0, "runAsGroup": 0}
    of_pod = {"pod_spec": {"spec": {"securityContext": loose}}}
    with pytest.raises(InvalidConfigError, match=r"pod_spec\.spec\.securityContext\.runAsNonRoot"):
        pod(request(environment=of_pod))
    made = pod(request(pool={"allowed_pod_spec": ["*"]}, environment=of_pod))["spec"]
    assert made["securityContext"] == loose
    assert not made["containers"][0]["securityContext"].keys() & loose.keys()
    of_container = {"spec": {"containers": [{"name": CONTAINER, "securityContext": loose}]}}
    own = containers(request(pool={"pod_spec": of_container}))[CONTAINER]["securityContext"]
    assert own == {**CONFINED, **loose}


@pytest.mark.parametrize(
    "pool",
    [
        {"slot_type": "cpu", "cpus_per_slot": 0.5, "memory_per_slot": "1 GiB"},
        {"kueue_queue": "team", "priority_classes": [{"name": "batch"}]},
    ],
)
def test_schemas_of_current_versions_take_every_object_of_a_run(pool: dict[str, Any]) -> None:
    need_module("kubernetes_validate", remedy="`make engines` installs it")
    import kubernetes_validate

    made = request(
        engine={"runtime_image": "services:1"},
        pool=pool,
        resources={"shm_size": 1 << 20},
        environment={"pod_spec": {"spec": {"tolerations": [{"key": "spot", "operator": "Exists"}]}}},
    )
    order = LaunchOrder(allocation_id=ALLOCATION, master="a:1", token="secret-token")
    group = made.group({0: order, 1: order})
    for each in (objects.service(group), objects.secret(group, owner="o"), pod(made, 0), pod(made, 1)):
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_shared_memory_is_memory_unless_a_pod_spec_mounts_its_own() -> None:
    def shared(**config: Any) -> list[Any]:
        volumes = pod(request(**config))["spec"]["volumes"]
        return [one["emptyDir"] for one in volumes if one["name"] == "resolute-shm"]

    assert shared() == [{"medium": "Memory"}]
    assert shared(resources={"shm_size": 1 << 20}) == [{"medium": "Memory", "sizeLimit": str(1 << 20)}]
    mounted = {"name": CONTAINER, "volumeMounts": [{"name": "own", "mountPath": "/dev/shm/"}]}
    spec = {"containers": [mounted], "volumes": [{"name": "own", "emptyDir": {}}]}
    made = {"environment": {"pod_spec": {"spec": spec}}}
    assert shared(**made) == []
    (own,) = [one for one in pod(request(**made))["spec"]["containers"] if one["name"] == CONTAINER]
    assert [one["mountPath"] for one in own["volumeMounts"]].count("/dev/shm/") == 1


def test_a_queue_of_kueue_is_given_all_pods_of_a_run_as_one_group_of_its_own() -> None:
    made = [pod(request(pool={"kueue_queue": "team"}), rank)["metadata"] for rank in (0, 1)]
    for each in made:
        assert each["labels"]["kueue.x-k8s.io/queue-name"] == "team"
        assert each["labels"]["kueue.x-k8s.io/pod-group-name"] == group_name(ALLOCATION)
        assert each["annotations"] == {
            "kueue.x-k8s.io/pod-group-total-count": "2",
            "kueue.x-k8s.io/retriable-in-group": "false",
        }
    assert "kueue" not in json.dumps(pod(request()))


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
            pool={
                "pod_spec": said(priorityClassName="low", nodeSelector={"zone": "a"}),
                "allowed_pod_spec": ["spec.containers.securityContext"],
            },
            environment={
                "pod_spec": said(
                    priorityClassName="high",
                    volumes=[{"name": "data", "emptyDir": {}}],
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


def test_the_class_of_a_pod_follows_the_priority_unless_a_config_names_one() -> None:
    classes = [{"up_to": 90, "name": "batch"}, {"up_to": 10, "name": "urgent"}]
    named = {"pod_spec": {"spec": {"priorityClassName": "mine"}}}

    def class_of(priority: int, **config: Any) -> str | None:
        made = request(pool={"priority_classes": classes}, **config)
        of_priority = replace(made, spec=replace(made.spec, priority=priority))
        name: str | None = pod(of_priority)["spec"].get("priorityClassName")
        return name

    assert [class_of(1), class_of(10), class_of(42), class_of(99)] == ["urgent", "urgent", "batch", None]
    assert class_of(1, environment=named) == "mine"


def test_a_runtime_is_copied_from_its_image_before_the_trial_begins() -> None:
    made = pod(request(engine={"runtime_image": "services:1"}))
    (first,) = made["spec"]["initContainers"]
    # Not where the image of the services has its packages.
    (made_at,) = (mount["mountPath"] for mount in first["volumeMounts"])
    assert (first["image"], first["command"][-1]) == ("services:1", made_at)
    assert made_at != "/opt/resolute"
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
