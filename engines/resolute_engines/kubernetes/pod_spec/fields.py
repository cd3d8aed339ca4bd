"""The fields of a ``pod_spec`` that configs may set in every pool, with their allowed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Only:
    """A field with one of a few harmless values."""

    values: tuple[Any, ...]


class Anything:
    """A field with any value."""


class Secret:
    """A field that names a Secret of the namespace."""


class PlainKeys:
    """A map whose keys have no domain, or a harmless one: controllers act on keys of their domains."""


class OtherThanRoot:
    """The id of a user other than root."""


class PriorityClassName:
    """A priority class that is not one of Kubernetes' own components."""


Rule: TypeAlias = (
    "Mapping[str, Rule] | Only | Anything | Secret | PlainKeys | OtherThanRoot | PriorityClassName"
)

_ANY = Anything()
HARMLESS_DOMAINS = (
    *("kueue.x-k8s.io/", "cluster-autoscaler.kubernetes.io/", "karpenter.sh/", "prometheus.io/"),
    "sidecar.istio.io/inject",
)


def _fields(names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), _ANY)


_CONFIG_MAP = _fields("name optional items defaultMode")
_SECURITY: Mapping[str, Rule] = {
    "runAsNonRoot": Only((True,)),
    "runAsUser": OtherThanRoot(),
    "runAsGroup": OtherThanRoot(),
    "seccompProfile": {"type": Only(("RuntimeDefault",))},
}
_OF_CONTAINER: Mapping[str, Rule] = {
    **_SECURITY,
    "allowPrivilegeEscalation": Only((False,)),
    "privileged": Only((False,)),
    "readOnlyRootFilesystem": _ANY,
    # A list that is given takes the place of the platform's.
    "capabilities": {"drop": Only((["ALL"],))},
}
_CONTAINER: Mapping[str, Rule] = {
    **_fields("name image imagePullPolicy command args workingDir resources restartPolicy stdin tty"),
    **_fields("terminationMessagePath terminationMessagePolicy volumeDevices"),
    "env": {
        **_fields("name value"),
        "valueFrom": {
            **_fields("fieldRef resourceFieldRef"),
            "configMapKeyRef": _fields("name key optional"),
            "secretKeyRef": {**_fields("key optional"), "name": Secret()},
        },
    },
    "envFrom": {
        "prefix": _ANY,
        "configMapRef": _fields("name optional"),
        "secretRef": {"name": Secret(), "optional": _ANY},
    },
    "ports": _fields("name containerPort protocol"),
    "volumeMounts": _fields("name mountPath readOnly subPath subPathExpr"),
    "securityContext": _OF_CONTAINER,
}
_VOLUME: Mapping[str, Rule] = {
    "name": _ANY,
    "emptyDir": _ANY,
    "configMap": _CONFIG_MAP,
    "downwardAPI": _ANY,
    "persistentVolumeClaim": _fields("claimName readOnly"),
    "secret": {**_fields("optional items defaultMode"), "secretName": Secret()},
    "projected": {
        "defaultMode": _ANY,
        "sources": {
            "configMap": _CONFIG_MAP,
            "downwardAPI": _ANY,
            "secret": {**_fields("optional items"), "name": Secret()},
        },
    },
    "ephemeral": {
        "volumeClaimTemplate": {
            "metadata": {"labels": PlainKeys(), "annotations": PlainKeys()},
            "spec": _fields("accessModes resources storageClassName volumeMode"),
        }
    },
}
POD_SPEC: Mapping[str, Rule] = {
    **_fields("apiVersion kind"),
    "metadata": {"labels": PlainKeys(), "annotations": PlainKeys()},
    "spec": {
        **_fields("nodeSelector affinity tolerations topologySpreadConstraints preemptionPolicy"),
        **_fields("activeDeadlineSeconds restartPolicy terminationGracePeriodSeconds enableServiceLinks"),
        **_fields("dnsPolicy dnsConfig hostAliases hostname shareProcessNamespace"),
        **dict.fromkeys(
            ("hostNetwork", "hostPID", "hostIPC", "hostUsers", "automountServiceAccountToken"),
            Only((False,)),
        ),
        "priorityClassName": PriorityClassName(),
        "imagePullSecrets": {"name": Secret()},
        "securityContext": {**_SECURITY, **_fields("fsGroup fsGroupChangePolicy")},
        "containers": _CONTAINER,
        "initContainers": _CONTAINER,
        "volumes": _VOLUME,
    },
}
