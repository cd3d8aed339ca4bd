"""The objects of one submission: a headless Service that owns a Secret and the Pods."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from resolute.errors import InvalidArgumentError
from resolute_engines.kubernetes.pods import GROUP_LABEL, PART_LABEL

COMPLETE = "resolute/complete"
"""Annotation of a Service: all of its Pods were created once, and none is created again."""
WITHDRAWN = "resolute/withdrawn"
"""Annotation of a Service: its Pods were ended before all of them ran."""
ASKED = "resolute/asked"
"""Annotation of a Pod: what is asked of those who run in it. A volume shows it to them."""
PARTS = "resolute/parts"
"""Annotation of a Service: the number of its Pods."""
FILES_VOLUME = "resolute-files"
"""The volume of each Pod that has the files of its group."""

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,54}[a-z0-9])?")
"""A label of DNS with room for a number after it."""
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_FILE_NAME = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_SECRET_BYTES = 1 << 20
"""What Kubernetes accepts in one Secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """Pods that are submitted together and reach each other by name.

    The others reach Pod ``N`` as ``rank-N.NAME``, even before it is ready.
    """

    name: str
    """Names the group: a label of DNS of at most 56 characters."""
    pods: tuple[Mapping[str, Any], ...]
    """Each Pod's manifest, of which ``metadata`` and ``spec`` are taken."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of everything of the group."""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Files of the volume ``FILES_VOLUME``. They may hold secrets: they lie in a Secret."""

    def __post_init__(self) -> None:
        check_name(self.name)
        for key, value in self.labels.items():
            if not _LABEL_VALUE.fullmatch(value):
                raise InvalidArgumentError(
                    f"{value[:80]!r} cannot be the label {key} of a Pod: at most 63 letters, digits, dots, "
                    "underscores and hyphens can"
                )
        if any(not _FILE_NAME.fullmatch(name) for name in self.files):
            raise InvalidArgumentError(f"group {self.name} has a file whose name a Secret cannot have")
        if sum(map(len, self.files.values())) > _SECRET_BYTES:
            raise InvalidArgumentError(f"the files of group {self.name} have more than {_SECRET_BYTES} bytes")


def check_name(name: str) -> None:
    """Refuses what cannot name a group.

    Raises:
        InvalidArgumentError: It is no label of DNS, or too long.
    """
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"{name[:80]!r} cannot name Pods: at most 56 small letters, digits and hyphens can, "
            "a letter first"
        )


def service(group: PodGroup) -> dict[str, Any]:
    """The Service of a group: it gives the Pods their names, and all else goes when it goes."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": group.name,
            "labels": _labels(group),
            "annotations": {PARTS: str(len(group.pods))},
        },
        "spec": {
            "clusterIP": "None",
            "selector": {GROUP_LABEL: group.name},
            # The parts look for each other before any of them is ready.
            "publishNotReadyAddresses": True,
        },
    }


def secret(group: PodGroup, *, owner: str) -> dict[str, Any]:
    """The Secret that holds the files of a group."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": _secret_name(group, owner),
            "labels": _labels(group),
            "ownerReferences": _owned(group, owner),
        },
        "type": "Opaque",
        "data": {name: b64encode(content).decode() for name, content in group.files.items()},
    }


def pod(group: PodGroup, part: int, *, owner: str) -> dict[str, Any]:
    """One Pod of a group."""
    manifest = deepcopy(dict(group.pods[part]))
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    metadata |= {
        "name": f"{group.name}-{part}",
        "labels": {**(metadata.get("labels") or {}), **_labels(group), PART_LABEL: str(part)},
        "ownerReferences": _owned(group, owner),
    }
    spec |= {"hostname": f"rank-{part}", "subdomain": group.name}
    if group.files:
        # Whichever user the image runs as must read them; only containers that mount the volume see it.
        held = {
            "name": FILES_VOLUME,
            "secret": {"secretName": _secret_name(group, owner), "defaultMode": 0o444},
        }
        spec["volumes"] = [*(spec.get("volumes") or ()), held]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _secret_name(group: PodGroup, owner: str) -> str:
    # The Secret of a group of the same name that is being removed is another one.
    return f"{group.name}-{owner[:6]}"


def _labels(group: PodGroup) -> dict[str, str]:
    return {**group.labels, GROUP_LABEL: group.name}


def _owned(group: PodGroup, owner: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "v1", "kind": "Service", "name": group.name, "uid": owner, "controller": True}]
