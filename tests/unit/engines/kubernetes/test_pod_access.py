"""Which fields of a ``pod_spec`` configs may set: no way to the node, to Secrets and rights of others."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from resolute_engines.kubernetes.pod_spec.access import PodAccess
from resolute_engines.kubernetes.pods import CONTAINER

POOL = {
    "spec": {
        "containers": [
            {"name": "proxy", "image": "p", "securityContext": {"privileged": True}},
            {"name": CONTAINER, "volumeMounts": [{"name": "key", "mountPath": "/key"}]},
        ],
        "volumes": [{"name": "key", "secret": {"secretName": "operator"}}],
    }
}


def refused(pod_spec: Any, **access: Any) -> list[str]:
    """Fields that are refused, by their paths."""
    rule = PodAccess(pool="pods", pod_spec=POOL, **access)
    prefix = "environment.pod_spec."
    return [
        fault.field.removeprefix(prefix) for fault in rule.faults({"environment": {"pod_spec": pod_spec}})
    ]


def test_what_trials_want_is_taken() -> None:
    assert refused(yaml.safe_load(HARMLESS)) == []
    assert refused({}) == refused(None) == refused({"spec": None}) == []


HARMLESS = """
apiVersion: v1
kind: Pod
metadata:
  labels: {team: vision, kueue.x-k8s.io/queue-name: team}
  annotations: {note: x, cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}
spec:
  nodeSelector: {disk: fast}
  tolerations: [{key: spot, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
  priorityClassName: high
  hostPID: false
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 0, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: determined-container
      env:
        - {name: A, value: x}
        - {name: B, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: C, valueFrom: {configMapKeyRef: {name: c, key: k}}}
      envFrom: [{configMapRef: {name: c}}]
      resources: {limits: {rdma/hca: 1}}
      volumeMounts: [{name: data, mountPath: /data, readOnly: true}, {name: scratch, mountPath: /scratch}]
      securityContext:
        allowPrivilegeEscalation: false
        privileged: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
    - {name: beside, image: x, command: [y], ports: [{containerPort: 1}]}
  initContainers: [{name: before, image: x, args: [y]}]
  volumes:
    - {name: data, persistentVolumeClaim: {claimName: data}}
    - {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}}
    - {name: files, projected: {sources: [{configMap: {name: c}}, {downwardAPI: {items: []}}]}}
"""


def of(part: str, *, name: str = CONTAINER, **fields: Any) -> dict[str, Any]:
    return {"spec": {part: [{"name": name, **fields}]}}


def volume(**fields: Any) -> dict[str, Any]:
    return of("volumes", name="v", **fields)


@pytest.mark.parametrize(
    ("pod_spec", "path"),
    [
        *(
            ({"spec": {name: value}}, f"spec.{name}")
            for name, value in {
                "hostPID": True,
                "hostpid": True,
                "HostPID": True,
                "hostIPC": 1,
                "hostNetwork": "true",
                "hostUsers": True,
                "serviceAccountName": "services",
                "serviceAccount": "services",
                "automountServiceAccountToken": True,
                "nodeName": "control-plane",
                "runtimeClassName": "privileged",
                "schedulerName": "mine",
                "ephemeralContainers": [],
                "resourceClaims": [],
                "priorityClassName": "system-node-critical",
            }.items()
        ),
        *(
            ({"spec": {"securityContext": {name: value}}}, f"spec.securityContext.{name}")
            for name, value in {
                "runAsNonRoot": False,
                "runAsUser": 0,
                "runAsGroup": 0,
                "supplementalGroups": [0],
                "sysctls": [],
                "seLinuxOptions": {},
                "windowsOptions": {},
                # They are no fields of a whole Pod, and would keep the container's from being set.
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }.items()
        ),
        ({"spec": {"securityContext": {"runAsNonRoot": None}}}, "spec.securityContext.runAsNonRoot"),
        (
            {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}},
            "spec.securityContext.seccompProfile.type",
        ),
        *(
            (
                of(part, securityContext=security),
                f"spec.{part}[0].securityContext.{path}",
            )
            for part in ("containers", "initContainers")
            for security, path in [
                ({"privileged": True}, "privileged"),
                ({"Privileged": True}, "Privileged"),
                ({"privileged": 1}, "privileged"),
                ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
                ({"capabilities": {"add": ["SYS_ADMIN"]}}, "capabilities.add"),
                ({"capabilities": {"drop": []}}, "capabilities.drop"),
                ({"procMount": "Unmasked"}, "procMount"),
                ({"runAsUser": "0"}, "runAsUser"),
                ({"runAsUser": True}, "runAsUser"),
            ]
        ),
        *(
            (volume(**{kind: value}), f"spec.volumes[0].{path}")
            for kind, value, path in [
                ("hostPath", {"path": "/"}, "hostPath"),
                ("hostPath", {}, "hostPath"),
                ("hostpath", {"path": "/"}, "hostpath"),
                ("nfs", {"server": "s", "path": "/"}, "nfs"),
                ("csi", {"driver": "secrets-store.csi.k8s.io"}, "csi"),
                ("image", {"reference": "x"}, "image"),
                ("secret", {"secretName": "trial-x"}, "secret.secretName"),
                ("projected", {"sources": [{"secret": {"name": "a"}}]}, "projected.sources[0].secret.name"),
                (
                    "projected",
                    {"sources": [{"configMap": {}}, {"serviceAccountToken": {"path": "t"}}]},
                    "projected.sources[1].serviceAccountToken",
                ),
                (
                    "ephemeral",
                    {"volumeClaimTemplate": {"spec": {"dataSource": {"name": "others"}}}},
                    "ephemeral.volumeClaimTemplate.spec.dataSource",
                ),
            ]
        ),
        (
            of("containers", env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}}]),
            "spec.containers[0].env[0].valueFrom.secretKeyRef.name",
        ),
        (
            of("initContainers", name="i", envFrom=[{"secretRef": {"name": "a"}}]),
            "spec.initContainers[0].envFrom[0].secretRef.name",
        ),
        ({"spec": {"imagePullSecrets": [{"name": "a"}]}}, "spec.imagePullSecrets[0].name"),
        (
            of("containers", name="b", ports=[{"containerPort": 1, "hostPort": 1}]),
            "spec.containers[0].ports[0].hostPort",
        ),
        (of("containers", name="b", lifecycle={}), "spec.containers[0].lifecycle"),
        (
            {"metadata": {"annotations": {"iam.amazonaws.com/role": "admin"}}},
            "metadata.annotations.iam.amazonaws.com/role",
        ),
        (
            {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/x": "unconfined"}}},
            "metadata.annotations.container.apparmor.security.beta.kubernetes.io/x",
        ),
        (
            {"metadata": {"labels": {"azure.workload.identity/use": "true"}}},
            "metadata.labels.azure.workload.identity/use",
        ),
        ({"metadata": {"ownerReferences": []}}, "metadata.ownerReferences"),
        ({"metadata": {"finalizers": ["x"]}}, "metadata.finalizers"),
        # What the pool adds is the operator's: with its name a config would change it, or see what it sees.
        (of("containers", name="proxy", image="mine"), "spec.containers[0].name"),
        (of("volumes", name="key", emptyDir={}), "spec.volumes[0].name"),
        (
            of("containers", volumeMounts=[{"name": "key", "mountPath": "/k"}]),
            "spec.containers[0].volumeMounts[0].name",
        ),
        (
            of("initContainers", name="a", volumeDevices=[{"name": "key", "devicePath": "/dev/k"}]),
            "spec.initContainers[0].volumeDevices[0].name",
        ),
    ],
)
def test_everything_else_is_refused_by_its_path(pod_spec: dict[str, Any], path: str) -> None:
    assert refused(pod_spec) == [path]
    assert refused(pod_spec, allowed=("*",)) == []


def test_operator_lists_fields_and_secrets() -> None:
    wanted = {
        "spec": {
            "hostPID": True,
            "imagePullSecrets": [{"name": "registry"}],
            "volumes": [{"name": "a", "hostPath": {"path": "/data"}}],
        }
    }
    assert refused(wanted) == ["spec.hostPID", "spec.imagePullSecrets[0].name", "spec.volumes[0].hostPath"]
    listed = {"allowed": ("spec.hostPID", "spec.volumes.hostPath"), "secrets": ("registry",)}
    assert refused(wanted, **listed) == []
    assert refused(of("containers", securityContext={"privileged": True}), **listed) == [
        "spec.containers[0].securityContext.privileged"
    ]


def test_message_names_the_field_and_the_setting() -> None:
    (fault,) = PodAccess(pool="pods").faults(
        {"environment": {"pod_spec": {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}}}}
    )
    assert fault.description == (
        "pool 'pods' does not let configs set it: leave it out, or let the operator add "
        "spec.volumes.hostPath to allowed_pod_spec of the pool"
    )
