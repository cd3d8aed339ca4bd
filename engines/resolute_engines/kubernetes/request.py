"""Builds the Pods of an allocation from its config and the settings of its pool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from resolute.contracts.run.launch_order import LaunchOrder
from resolute.errors import InvalidArgumentError
from resolute_engines.configs.image import image_of
from resolute_engines.configs.requirements import require
from resolute_engines.kubernetes.objects import ASKED, FILES_VOLUME, PodGroup
from resolute_engines.kubernetes.pod_spec.merge import merge_into_pod, overlay, refused_fields
from resolute_engines.kubernetes.pod_spec.workspace_mounts import narrowed
from resolute_engines.kubernetes.pods import CONTAINER, SENDER
from resolute_engines.kubernetes.settings import KubernetesEngineOptions, KubernetesPoolOptions
from resolute_engines.kubernetes.unsupported_fields import requirements
from resolute_engines.protocol import AllocationSpec

CLUSTER_LABEL, ALLOCATION_LABEL = "resolute/cluster", "resolute/allocation"
"""Labels of everything of a run."""
VOLUME, ORDERS, NOTICES, RUNTIME = "/resolute", "/resolute-order", "/resolute-notices", "/opt/resolute"
"""Where a container sees the Pod's volume, its launch order, what is asked of it, and the runtime."""
_TERMINATION_MESSAGE_FILE = "/dev/termination-log"
_ASKED_FILE = "asked"
_MADE = "/resolute-runtime"
"""Where the runtime is made: at its own place the image of the services has its packages."""
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a mount point
_UNSAFE = re.compile(r"[^a-z0-9-]")
_SENDER_RESOURCES = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}


def group_name(allocation_id: str) -> str:
    """Names what Kubernetes has of an allocation."""
    return f"trial-{_UNSAFE.sub('-', allocation_id.lower())}"


@dataclass(frozen=True, kw_only=True)
class PodRequest:
    """The specification of an allocation's Pods."""

    spec: AllocationSpec
    """The allocation."""
    labels: Mapping[str, str]
    """Those of everything of it."""
    engine: KubernetesEngineOptions
    """Settings of the engine."""
    pool: KubernetesPoolOptions
    """Settings of the pool."""

    def group(self, orders: Mapping[int, LaunchOrder]) -> PodGroup:
        """What is submitted.

        Args:
            orders: The launch order of each container.

        Raises:
            InvalidArgumentError: The config asks for what is not to be had.
        """
        return PodGroup(
            name=group_name(self.spec.allocation_id),
            pods=tuple(self._pod(rank) for rank in range(len(self.spec.placements))),
            labels=self.labels,
            files={_order_file(rank): json.dumps(order.to_json()).encode() for rank, order in orders.items()},
        )

    def _pod(self, rank: int) -> dict[str, Any]:
        added = self._pod_spec()
        spec = self._spec(rank, shares_memory=not _has_mount(added, _SHARED_MEMORY))
        merged = merge_into_pod({"metadata": self._metadata(), "spec": spec}, added)
        containers = merged["spec"]["containers"]
        own = next(each for each in containers if each["name"] == CONTAINER)
        # What a pod_spec says of the whole Pod holds where it says nothing of its container.
        pod_context = merged["spec"].get("securityContext") or {}
        for name, value in self._confinement().items():
            if name not in pod_context:
                own["securityContext"].setdefault(name, value)
        directories = self.pool.checkpoint_directories
        own["volumeMounts"] = narrowed(own["volumeMounts"], directories, own=self.spec.checkpoint_directory)
        containers.insert(1, self._sender(own))
        return merged

    def _pod_spec(self) -> Mapping[str, Any]:
        # The settings may have changed since the config was taken.
        require(self.spec.config, requirements(self.pool, name=self.spec.pool))
        wanted = self._environment.get("pod_spec") or {}
        faults = [f"environment.pod_spec.{each.field}: {each.description}" for each in refused_fields(wanted)]
        if faults:
            raise InvalidArgumentError("; ".join(faults))
        by_priority = self.pool.priority_class(self.spec.priority)
        of_pool = overlay(
            self.pool.additions, {"spec": {"priorityClassName": by_priority}} if by_priority else {}
        )
        return overlay(of_pool, wanted)

    def _metadata(self) -> dict[str, Any]:
        if not self.pool.kueue_queue:
            return {"labels": dict(self.labels)}
        group = {
            "kueue.x-k8s.io/queue-name": self.pool.kueue_queue,
            "kueue.x-k8s.io/pod-group-name": group_name(self.spec.allocation_id),
        }
        annotations = {
            "kueue.x-k8s.io/pod-group-total-count": str(len(self.spec.placements)),
            # No Pod is ever replaced: Kueue is not to keep those that failed for that.
            "kueue.x-k8s.io/retriable-in-group": "false",
        }
        return {"labels": {**self.labels, **group}, "annotations": annotations}

    def _confinement(self) -> dict[str, Any]:
        """What a container may do unless a ``pod_spec`` says otherwise: a restricted namespace admits it."""
        return {
            **({} if self.engine.user.startswith("0:") else {"runAsNonRoot": True}),
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }

    def _spec(self, rank: int, *, shares_memory: bool) -> dict[str, Any]:
        user, _, group = self.engine.user.partition(":")
        volumes: list[dict[str, Any]] = [
            {"name": "resolute-run", "emptyDir": {}},
            {
                "name": "resolute-notices",
                "downwardAPI": {
                    "items": [
                        {"path": _ASKED_FILE, "fieldRef": {"fieldPath": f"metadata.annotations['{ASKED}']"}}
                    ]
                },
            },
        ]
        mounts = [
            {"name": "resolute-run", "mountPath": VOLUME},
            {"name": "resolute-notices", "mountPath": NOTICES, "readOnly": True},
            {"name": FILES_VOLUME, "mountPath": ORDERS, "readOnly": True},
        ]
        if shares_memory:
            # A container has 64 MiB by itself, in which workers of a DataLoader die.
            size = (self.spec.config.get("resources") or {}).get("shm_size")
            limit = {"sizeLimit": str(size)} if size else {}
            volumes.append({"name": "resolute-shm", "emptyDir": {"medium": "Memory", **limit}})
            mounts.append({"name": "resolute-shm", "mountPath": _SHARED_MEMORY})
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": self.pool.preemption_grace,
            # A trial has no business with the API of Kubernetes, nor with the addresses of other services.
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [
                {
                    "name": CONTAINER,
                    "image": self._image,
                    "imagePullPolicy": self._pull_policy,
                    "command": self._command(
                        *("keep", VOLUME, "--order", f"{ORDERS}/{_order_file(rank)}"),
                        *("--asked", f"{NOTICES}/{_ASKED_FILE}", "--last-word", _TERMINATION_MESSAGE_FILE),
                    ),
                    "workingDir": "/",
                    "env": [
                        {"name": "HOME", "value": VOLUME},
                        {"name": "PYTHONUNBUFFERED", "value": "1"},
                        _from_field("RESOLUTE_NODE", "spec.nodeName"),
                        _from_field("RESOLUTE_POD_ADDRESS", "status.podIP"),
                    ],
                    "resources": self._resources(len(self.spec.placements[rank])),
                    "securityContext": {"runAsUser": int(user), "runAsGroup": int(group)},
                    "terminationMessagePath": _TERMINATION_MESSAGE_FILE,
                    # Where no supervisor started, the last lines of the container are the reason.
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": mounts,
                }
            ],
            "volumes": volumes,
        }
        return self._with_runtime(spec) if self.engine.runtime_image else spec

    def _with_runtime(self, spec: dict[str, Any]) -> dict[str, Any]:
        (own,) = spec["containers"]
        volume = {"name": "resolute-runtime"}
        own["volumeMounts"].append({**volume, "mountPath": RUNTIME, "readOnly": True})
        spec["volumes"].append({"name": "resolute-runtime", "emptyDir": {}})
        spec["initContainers"] = [
            {
                "name": "resolute-runtime",
                "image": self.engine.runtime_image,
                "command": ["python3", "-m", "resolute_engines.container.runtime", _MADE],
                "securityContext": {**own["securityContext"], **self._confinement()},
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [{**volume, "mountPath": _MADE}],
            }
        ]
        return spec

    def _sender(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """The container beside the trial's: the same image, the same mounts, and no share of its slots."""
        wanted = ("image", "imagePullPolicy", "workingDir", "env", "envFrom", "securityContext")
        return {
            **{name: deepcopy(own[name]) for name in (*wanted, "volumeMounts") if name in own},
            "name": SENDER,
            "command": self._command("send", VOLUME),
            "resources": deepcopy(_SENDER_RESOURCES),
        }

    def _command(self, *arguments: str) -> list[str]:
        if self.engine.runtime_image:
            return ["/bin/sh", f"{RUNTIME}/start.sh", "resolute_launch.pod", *arguments]
        return [self.engine.python, "-m", "resolute_launch.pod", *arguments]

    def _resources(self, slots: int) -> dict[str, Any]:
        shares = max(slots, 1)
        limits: dict[str, str] = {}
        requests: dict[str, str] = {}
        if self.pool.memory_per_slot is not None:
            limits["memory"] = requests["memory"] = str(self.pool.memory_per_slot * shares)
        if self.pool.cpus_per_slot is not None:
            limits["cpu"] = requests["cpu"] = f"{self.pool.cpus_per_slot * shares:g}"
        elif self.pool.slot_type == "cpu" and slots:
            requests["cpu"] = str(slots)
        if self.pool.slot_type == "gpu" and slots:
            limits[self.pool.gpu_resource] = str(slots)
        return {name: value for name, value in (("limits", limits), ("requests", requests)) if value}

    @property
    def _image(self) -> str:
        return image_of(self.spec.config, gpus=self.pool.slot_type == "gpu", of_pool=self.pool.image)

    @property
    def _pull_policy(self) -> str:
        return "Always" if self._environment.get("force_pull_image") else "IfNotPresent"

    @property
    def _environment(self) -> Mapping[str, Any]:
        return self.spec.config.get("environment") or {}


def _order_file(rank: int) -> str:
    return f"launch-{rank}.json"


def _has_mount(pod_spec: Mapping[str, Any], path: str) -> bool:
    """Whether a ``pod_spec`` mounts something there in the trial's container."""
    containers = (pod_spec.get("spec") or {}).get("containers") or ()
    (mounts,) = [
        container.get("volumeMounts") or () for container in containers if container["name"] == CONTAINER
    ] or [()]
    return any(PurePosixPath(mount["mountPath"]) == PurePosixPath(path) for mount in mounts)


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
