"""Merges a config's additions (``environment.pod_spec``) into the Pod of a trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from resolute.errors import Violation
from resolute_engines.kubernetes.pods import CONTAINER

_NOT_CONFIGURABLE = (
    *("image", "command", "args", "workingDir", "ports", "livenessProbe", "readinessProbe", "startupProbe"),
    *("lifecycle", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy"),
)
"""Fields of the trial's container that other parts of a config decide, or that are the platform's."""
_OWN_SECURITY = frozenset({"runAsUser", "runAsGroup"})
"""What the platform decides of the security context of the trial's container."""
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}
"""Lists whose entries have a key, as Kubernetes itself patches them; others are taken whole."""
_LISTS = frozenset({"tolerations", "envFrom"})
_MAPS = frozenset({"labels", "annotations", "resources", "limits", "requests", "securityContext"})


def refused_fields(pod_spec: Mapping[str, Any]) -> Iterator[Violation]:
    """Yields each field that a ``pod_spec`` may not have, by its path within it."""
    for name in pod_spec:
        if name not in {"apiVersion", "kind", "metadata", "spec"}:
            yield Violation(name, "a pod_spec has metadata and spec")
    for part in ("metadata", "spec"):
        if not isinstance(pod_spec.get(part) or {}, Mapping):
            yield Violation(part, "must be a map")
            return
    yield from _refused_of_metadata(pod_spec.get("metadata") or {})
    yield from _refused_of_spec(pod_spec.get("spec") or {})


def _refused_of_metadata(metadata: Mapping[str, Any]) -> Iterator[Violation]:
    for name in ("name", "namespace"):
        if metadata.get(name):
            yield Violation(f"metadata.{name}", "is not configurable: the platform names Pods")
    yield from _misformed(metadata, "metadata")


def _refused_of_spec(spec: Mapping[str, Any]) -> Iterator[Violation]:
    if spec.get("hostNetwork"):
        yield Violation("spec.hostNetwork", "is not configurable here")
    wrong = list(_misformed(spec, "spec"))
    yield from wrong
    if not wrong:
        for number, container in enumerate(spec.get("containers") or ()):
            if container["name"] == CONTAINER:
                yield from _refused_of_container(container, f"spec.containers[{number}]")


def _refused_of_container(container: Mapping[str, Any], path: str) -> Iterator[Violation]:
    for name in _NOT_CONFIGURABLE:
        if container.get(name):
            yield Violation(f"{path}.{name}", f"is not configurable for {CONTAINER}")
    yield from _misformed(container, path)
    if isinstance(container.get("resources"), Mapping):
        yield from _misformed(container["resources"], f"{path}.resources")


def _misformed(fields: Mapping[str, Any], path: str) -> Iterator[Violation]:
    """What could not be merged: lists and maps of another form than Kubernetes has them."""
    for name, value in fields.items():
        if name in _KEYS and value is not None:
            entries = value if isinstance(value, list) else [None]
            if not all(
                isinstance(each, Mapping) and isinstance(each.get(_KEYS[name]), str) for each in entries
            ):
                yield Violation(f"{path}.{name}", f"must be a list of maps, each with {_KEYS[name]}")
        elif name in _LISTS and not isinstance(value, list | None):
            yield Violation(f"{path}.{name}", "must be a list")
        elif name in _MAPS and not isinstance(value, Mapping | None):
            yield Violation(f"{path}.{name}", "must be a map")


def overlay(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Merges a ``pod_spec`` over the one that a cluster gives to all: the upper one wins.

    Maps are merged; lists whose entries have a key are merged by it; other lists are taken whole. A null
    takes nothing away.
    """
    merged = deepcopy(dict(base))
    for name, value in top.items():
        if value is None:
            continue
        if isinstance(value, Mapping) and isinstance(merged.get(name), Mapping):
            merged[name] = overlay(merged[name], value)
        elif name in _KEYS and isinstance(value, Sequence) and merged.get(name):
            merged[name] = _by_key(merged[name], value, key=_KEYS[name])
        else:
            merged[name] = deepcopy(value)
    return merged


def merge_into_pod(pod: Mapping[str, Any], pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Merges a ``pod_spec`` without refused fields into the Pod that the platform made.

    Of the trial's container are taken: variables, after the platform's; limits and requests that the platform
    does not set; mounts and devices, after the platform's; the security context but for the user. Other
    containers, volumes, labels, annotations and all other fields of the Pod are taken, and where both have
    one, the platform's is kept.
    """
    wanted, merged = deepcopy(dict(pod_spec)), deepcopy(dict(pod))
    metadata, spec = wanted.get("metadata") or {}, wanted.get("spec") or {}
    for name in ("labels", "annotations"):
        both = {**(metadata.get(name) or {}), **(merged["metadata"].get(name) or {})}
        if both:
            merged["metadata"][name] = both
    own = next(each for each in merged["spec"]["containers"] if each["name"] == CONTAINER)
    others = []
    for container in spec.pop("containers", None) or ():
        if container["name"] == CONTAINER:
            _merge_container(own, container)
        else:
            others.append(container)
    merged["spec"]["containers"] += others
    for name in ("volumes", "initContainers", "tolerations", "imagePullSecrets"):
        both_lists = [*(merged["spec"].get(name) or ()), *(spec.pop(name, None) or ())]
        if both_lists:
            merged["spec"][name] = both_lists
    spec.pop("restartPolicy", None)
    merged["spec"] = overlay(spec, merged["spec"])
    return merged


def _merge_container(own: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in ("env", "envFrom", "volumeMounts", "volumeDevices"):
        if wanted.get(name):
            own[name] = [*(own.get(name) or ()), *wanted[name]]
    resources = wanted.get("resources") or {}
    for name in ("limits", "requests"):
        if resources.get(name):
            held = own.setdefault("resources", {})
            held[name] = {**resources[name], **(held.get(name) or {})}
    security = {
        name: value
        for name, value in (wanted.get("securityContext") or {}).items()
        if name not in _OWN_SECURITY
    }
    if security:
        own["securityContext"] = {**security, **(own.get("securityContext") or {})}


def _by_key(base: Sequence[Any], top: Sequence[Any], *, key: str) -> list[Any]:
    merged = {entry[key]: dict(entry) for entry in base}
    for entry in top:
        merged[entry[key]] = overlay(merged.get(entry[key], {}), entry)
    return list(merged.values())
