"""The support of config fields in Kubernetes pools."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from resolute_engines.configs.host_access import is_below, shared_directory
from resolute_engines.configs.requirements import ConfigRule
from resolute_engines.configs.unsupported_fields import (
    STARTS_COLD,
    UnsupportedField,
    no_node_excluded,
    queued_by,
)
from resolute_engines.kubernetes.pod_spec.access import PodAccess
from resolute_engines.kubernetes.pod_spec.merge import overlay, refused_fields
from resolute_engines.kubernetes.pod_spec.workspace_mounts import claims
from resolute_engines.kubernetes.pods import CONTAINER
from resolute_engines.kubernetes.settings import KubernetesPoolOptions

SUPPORTED_FIELDS = frozenset(
    {
        *(f"environment.{name}" for name in ("image", "force_pull_image", "pod_spec")),
        "resources.shm_size",
    }
)
"""What of a config has an effect in Pods beyond what has for processes."""
_NODES = no_node_excluded("Kubernetes", instead="name nodes to avoid by an affinity in environment.pod_spec")


@dataclass(frozen=True, slots=True)
class UnmountedStorage:
    """Warns of checkpoints in a directory on which Pods have no volume: the services never see them.

    It is only a warning, because the cluster may add volumes by itself, and scripts may save nothing.
    """

    pod_spec: Mapping[str, Any]
    """What is added to every Pod of the pool."""

    def warnings(self, config: Mapping[str, Any]) -> Iterator[str]:
        """Names the directory, if there is no volume for it."""
        wanted = (config.get("environment") or {}).get("pod_spec") or {}
        directory = shared_directory(config)
        if directory is None or any(refused_fields(wanted)):
            return
        spec = overlay(self.pod_spec, wanted).get("spec") or {}
        mounts = [
            posixpath.normpath(mount["mountPath"])
            for container in spec.get("containers") or ()
            if container["name"] == CONTAINER
            for mount in container.get("volumeMounts") or ()
        ]
        if not any(is_below(directory, path) for path in mounts):
            yield (
                f"checkpoint_storage.host_path: Pods have no volume at {directory}, so checkpoints will wait "
                "for ever: by pod_spec mount one there that the services see too, or name an object store"
            )


def unsupported_fields(pool: KubernetesPoolOptions) -> tuple[UnsupportedField, ...]:
    """Fields that have no effect in Pods, of those that have one for processes of this machine."""
    passed_on = {"priority_classes": bool(pool.priority_classes)}
    return (STARTS_COLD, *queued_by("Kubernetes", passed_on=passed_on))


def requirements(pool: KubernetesPoolOptions, *, name: str) -> tuple[ConfigRule, ...]:
    """What configs must be there.

    Args:
        pool: Settings of the pool.
        name: Its name.
    """
    access = PodAccess(
        pool=name,
        allowed=pool.allowed_pod_spec,
        secrets=pool.allowed_secrets,
        pod_spec=pool.additions,
        claims=frozenset(claims(pool.additions, pool.checkpoint_directories)),
    )
    return (_NODES, access)
