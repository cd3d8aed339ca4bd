"""Restricts a Pod's mounts of checkpoint directories to the directory of its trial's workspace."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from resolute_engines.kubernetes.pods import CONTAINER


def narrowed(
    mounts: Sequence[Mapping[str, Any]], directories: Sequence[str], *, own: str
) -> list[Mapping[str, Any]]:
    """Mounts of which none shows a whole directory for checkpoints.

    Kubernetes follows no link out of the volume on the way to a ``subPath``.

    Args:
        mounts: ``volumeMounts`` of a container.
        directories: The directories for checkpoints.
        own: The directory of the trial's workspace in one of them; empty where checkpoints lie elsewhere.
    """
    kept = []
    for mount in mounts:
        path = posixpath.normpath(mount["mountPath"])
        if path not in directories:
            kept.append(mount)
        elif own and path == posixpath.dirname(posixpath.dirname(own)):
            below = posixpath.join(mount.get("subPath") or "", posixpath.relpath(own, path))
            kept.append({**mount, "mountPath": own, "subPath": below})
    return kept


def unmounted(pod_spec: Mapping[str, Any], directories: Sequence[str]) -> Iterator[str]:
    """The directories for checkpoints of which a ``pod_spec`` has no mount that can be made one of a part."""
    mounts = [
        mount
        for container in (pod_spec.get("spec") or {}).get("containers") or ()
        if container["name"] == CONTAINER
        for mount in container.get("volumeMounts") or ()
    ]
    whole = {posixpath.normpath(mount["mountPath"]) for mount in mounts if not mount.get("subPathExpr")}
    yield from (directory for directory in directories if directory not in whole)


def claims(pod_spec: Mapping[str, Any], directories: Sequence[str]) -> set[str]:
    """The claims whose volumes a ``pod_spec`` mounts as directories for checkpoints."""
    spec = pod_spec.get("spec") or {}
    used = {
        mount.get("name")
        for container in spec.get("containers") or ()
        for mount in container.get("volumeMounts") or ()
        if posixpath.normpath(mount["mountPath"]) in directories
    }
    named = (volume for volume in spec.get("volumes") or () if volume["name"] in used)
    return {claim for each in named if (claim := (each.get("persistentVolumeClaim") or {}).get("claimName"))}
