"""What a config may add to a Pod, and how it is merged."""

from __future__ import annotations

from typing import Any

import pytest

from resolute_engines.kubernetes.pod_spec.merge import merge_into_pod, overlay, refused_fields
from resolute_engines.kubernetes.pods import CONTAINER


def own_pod() -> dict[str, Any]:
    """A Pod as the platform makes one."""
    return {
        "metadata": {"labels": {"resolute/group": "a"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": CONTAINER,
                    "image": "ours",
                    "env": [{"name": "A", "value": "1"}],
                    "resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}},
                    "securityContext": {"runAsUser": 1000},
                    "volumeMounts": [{"name": "ours", "mountPath": "/ours"}],
                }
            ],
            "volumes": [{"name": "ours", "emptyDir": {}}],
        },
    }


def of_container(**fields: Any) -> dict[str, Any]:
    """A ``pod_spec`` that speaks of the trial's container."""
    return {"spec": {"containers": [{"name": CONTAINER, **fields}]}}


@pytest.mark.parametrize(
    ("pod_spec", "path"),
    [
        ({"metadata": {"name": "x"}}, "metadata.name"),
        ({"metadata": {"namespace": "x"}}, "metadata.namespace"),
        ({"spec": {"hostNetwork": True}}, "spec.hostNetwork"),
        ({"status": {}}, "status"),
        ({"spec": []}, ""),
        ({"spec": "x"}, "spec"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers"),
        ({"spec": {"volumes": "x"}}, "spec.volumes"),
        ({"spec": {"tolerations": {}}}, "spec.tolerations"),
        ({"metadata": {"labels": ["x"]}}, "metadata.labels"),
        (of_container(env=["A=1"]), "spec.containers[0].env"),
        (of_container(resources={"limits": []}), "spec.containers[0].resources.limits"),
        (of_container(resources=[1]), "spec.containers[0].resources"),
        (of_container(image="x"), "spec.containers[0].image"),
        (of_container(command=["x"]), "spec.containers[0].command"),
        (of_container(ports=[{"containerPort": 1}]), "spec.containers[0].ports"),
        (of_container(livenessProbe={"exec": {}}), "spec.containers[0].livenessProbe"),
        (of_container(terminationMessagePath="/x"), "spec.containers[0].terminationMessagePath"),
    ],
)
def test_what_is_not_configurable_is_named(pod_spec: dict[str, Any], path: str) -> None:
    assert [violation.field for violation in refused_fields(pod_spec)] == ([path] if path else [])


def test_other_containers_may_have_anything() -> None:
    beside = {"name": "beside", "image": "x", "command": ["y"], "ports": [{"containerPort": 1}]}
    pod_spec = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [beside], "initContainers": [beside]},
    }
    assert list(refused_fields(pod_spec)) == []
    spec = merge_into_pod(own_pod(), pod_spec)["spec"]
    assert [each["name"] for each in spec["containers"]] == [CONTAINER, "beside"]
    assert spec["initContainers"] == [beside]


def test_variables_and_mounts_come_after_those_of_the_platform() -> None:
    wanted = of_container(
        env=[{"name": "A", "value": "2"}],
        envFrom=[{"configMapRef": {"name": "c"}}],
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    )
    wanted["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "d"}}]
    spec = merge_into_pod(own_pod(), wanted)["spec"]
    (own,) = spec["containers"]
    assert [each["value"] for each in own["env"]] == ["1", "2"]
    assert own["envFrom"] == [{"configMapRef": {"name": "c"}}]
    assert [each["name"] for each in own["volumeMounts"]] == ["ours", "data"]
    assert [each["name"] for each in spec["volumes"]] == ["ours", "data"]


def test_resources_are_taken_but_for_those_that_the_platform_sets() -> None:
    wanted = of_container(
        resources={"limits": {"nvidia.com/gpu": "9", "memory": "4Gi"}, "requests": {"cpu": "1"}}
    )
    (own,) = merge_into_pod(own_pod(), wanted)["spec"]["containers"]
    assert own["resources"] == {
        "limits": {"nvidia.com/gpu": "2", "memory": "4Gi"},
        "requests": {"nvidia.com/gpu": "2", "cpu": "1"},
    }


def test_security_context_is_taken_but_for_the_user() -> None:
    wanted = of_container(
        securityContext={"runAsUser": 0, "runAsGroup": 0, "capabilities": {"add": ["IPC_LOCK"]}}
    )
    (own,) = merge_into_pod(own_pod(), wanted)["spec"]["containers"]
    assert own["securityContext"] == {"runAsUser": 1000, "capabilities": {"add": ["IPC_LOCK"]}}


def test_fields_of_the_pod_are_taken_and_what_is_the_platforms_is_kept() -> None:
    wanted = {
        "metadata": {
            "labels": {"kueue.x-k8s.io/queue-name": "team", "resolute/group": "b"},
            "annotations": {"note": "x"},
        },
        "spec": {
            "restartPolicy": "Always",
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "priorityClassName": "high",
        },
    }
    merged = merge_into_pod(own_pod(), wanted)
    assert merged["metadata"] == {
        "labels": {"kueue.x-k8s.io/queue-name": "team", "resolute/group": "a"},
        "annotations": {"note": "x"},
    }
    spec = merged["spec"]
    assert (spec["restartPolicy"], spec["nodeSelector"]) == ("Never", {"disk": "fast"})
    assert (spec["tolerations"][0]["key"], spec["priorityClassName"]) == ("spot", "high")


def test_nothing_given_is_changed_by_merging() -> None:
    pod, wanted = own_pod(), of_container(env=[{"name": "B", "value": "2"}])
    merge_into_pod(pod, wanted)
    assert pod == own_pod()
    assert wanted == of_container(env=[{"name": "B", "value": "2"}])


def test_config_wins_over_the_pod_spec_of_the_cluster_entry_by_entry() -> None:
    cluster = {
        "metadata": {"labels": {"cost": "a"}},
        "spec": {
            "nodeSelector": {"disk": "slow", "zone": "1"},
            "tolerations": [{"key": "gpu"}],
            "volumes": [{"name": "data", "hostPath": {"path": "/a"}}, {"name": "more", "emptyDir": {}}],
            **of_container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}])["spec"],
        },
    }
    config = {
        "spec": {
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "spot"}],
            "volumes": [{"name": "data", "hostPath": {"path": "/b"}}],
            **of_container(env=[{"name": "A", "value": "2"}])["spec"],
        }
    }
    both = overlay(cluster, config)
    assert both["metadata"] == {"labels": {"cost": "a"}}
    assert both["spec"]["nodeSelector"] == {"disk": "fast", "zone": "1"}
    assert both["spec"]["tolerations"] == [{"key": "spot"}]
    assert both["spec"]["volumes"] == [
        {"name": "data", "hostPath": {"path": "/b"}},
        {"name": "more", "emptyDir": {}},
    ]
    (own,) = both["spec"]["containers"]
    assert own["env"] == [{"name": "A", "value": "2"}, {"name": "B", "value": "1"}]
