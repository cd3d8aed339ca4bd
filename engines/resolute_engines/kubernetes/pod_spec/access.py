"""Checks which fields of a ``pod_spec`` a config may set in a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from resolute.errors import Violation
from resolute_engines.kubernetes.pod_spec.fields import (
    HARMLESS_DOMAINS,
    POD_SPEC,
    Anything,
    Only,
    OtherThanRoot,
    PlainKeys,
    PriorityClassName,
    Rule,
    Secret,
)
from resolute_engines.kubernetes.pods import CONTAINER

EVERYTHING = "*"
"""Entry of a pool's list that lets configs set all that the platform does not set itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAccess:
    """The fields that ``environment.pod_spec`` of a config may set in a pool.

    Any other field is refused: it may give access to the node, or to Secrets and permissions of others, or it
    was never examined.
    """

    pool: str
    """The pool, for messages."""
    allowed: tuple[str, ...] = ()
    """Further fields that the operator lists, by their paths without numbers: ``spec.volumes.hostPath``."""
    secrets: tuple[str, ...] = ()
    """Names of Secrets that configs may use."""
    pod_spec: Mapping[str, Any] = field(default_factory=dict)
    """What the pool adds to every Pod: what is the operator's there stays as it is."""
    claims: frozenset[str] = frozenset()
    """Claims with the checkpoints of all workspaces, which no config may use."""

    def faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        """What is wrong with each field."""
        wanted = (config.get("environment") or {}).get("pod_spec") or {}
        if EVERYTHING in self.allowed:
            return
        for path, problem in (
            *self._faults(wanted, POD_SPEC, ()),
            *self._faults_of_names(wanted),
            *self._faults_of_claims(wanted),
        ):
            yield Violation(f"environment.pod_spec.{path}", problem)

    def _faults(
        self, value: Any, rule: Rule, steps: tuple[str, ...], at: str = ""
    ) -> Iterator[tuple[str, str]]:
        if steps and ".".join(steps) in self.allowed:
            return
        if isinstance(value, list) and not isinstance(rule, Only | Anything):
            for number, entry in enumerate(value):
                yield from self._faults(entry, rule, steps, f"{at}[{number}]")
        elif isinstance(rule, Mapping):
            if not isinstance(value, Mapping):
                if value is not None:
                    yield at, "must be a map"
                return
            for name, inner in value.items():
                below, inside = f"{at}.{name}".lstrip("."), (*steps, name)
                if name in rule:
                    yield from self._faults(inner, rule[name], inside, below)
                elif ".".join(inside) not in self.allowed:
                    yield below, self._unlisted(inside)
        else:
            yield from self._faults_of_leaf(value, rule, steps, at)

    def _faults_of_leaf(
        self, value: Any, rule: Rule, steps: tuple[str, ...], at: str
    ) -> Iterator[tuple[str, str]]:
        match rule:
            case Secret() if value not in self.secrets:
                yield (
                    at,
                    (
                        f"found {value!r}; pool {self.pool!r} lets configs use the Secrets "
                        f"{', '.join(self.secrets) or '(none)'}: leave it out, or let the operator add it to "
                        "allowed_secrets of the pool"
                    ),
                )
            case Only(values) if not any(type(value) is type(each) and value == each for each in values):
                yield at, f"found {value!r}; it may be {values[0]!r}, {self._remedy(steps)}"
            case OtherThanRoot() if type(value) is not int or value <= 0:
                yield at, f"found {value!r}; it may be the number of any user but root, {self._remedy(steps)}"
            case PriorityClassName() if isinstance(value, str) and value.startswith("system-"):
                yield at, f"found {value!r}, which is for components of Kubernetes; {self._remedy(steps)}"
            case PlainKeys() if value is not None:
                for name in map(str, value if isinstance(value, Mapping) else ()):
                    inside = (*steps, name)
                    harmless = "/" not in name or name.startswith(HARMLESS_DOMAINS)
                    if not harmless and ".".join(inside) not in self.allowed:
                        yield f"{at}.{name}", self._unlisted(inside)

    def _faults_of_names(self, wanted: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """What changes or takes what the pool adds: a volume, or a container with rights of its own."""
        theirs, ours = _spec(wanted), _spec(self.pod_spec)
        for part in ("containers", "initContainers", "volumes"):
            taken = _names(ours, part) - {CONTAINER}
            for number, entry in enumerate(_entries(theirs, part)):
                if entry.get("name") in taken:
                    yield (
                        f"spec.{part}[{number}].name",
                        f"{entry['name']!r} is the pool's: choose another name",
                    )
        own = _names(theirs, "volumes")
        for part, uses in product(("containers", "initContainers"), ("volumeMounts", "volumeDevices")):
            if f"spec.{part}.{uses}.name" in self.allowed:
                continue
            for number, container in enumerate(_entries(theirs, part)):
                for index, used in enumerate(_entries(container, uses)):
                    if used.get("name") not in own:
                        yield (
                            f"spec.{part}[{number}].{uses}[{index}].name",
                            f"found {used.get('name')!r}; name a volume of the same pod_spec, "
                            + self._remedy(("spec", part, uses, "name")),
                        )

    def _faults_of_claims(self, wanted: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for number, volume in enumerate(_entries(_spec(wanted), "volumes")):
            claim = volume.get("persistentVolumeClaim")
            if isinstance(claim, Mapping) and claim.get("claimName") in self.claims:
                problem = (
                    f"{claim['claimName']!r} has the checkpoints of all workspaces: name another claim; "
                    "with checkpoint_storage those of the experiment's workspace are mounted"
                )
                yield f"spec.volumes[{number}].persistentVolumeClaim.claimName", problem

    def _unlisted(self, steps: tuple[str, ...]) -> str:
        return f"pool {self.pool!r} does not let configs set it: leave it out, {self._remedy(steps)}"

    def _remedy(self, steps: tuple[str, ...]) -> str:
        return f"or let the operator add {'.'.join(steps)} to allowed_pod_spec of the pool"


def _spec(pod_spec: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = pod_spec.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _entries(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    entries = fields.get(name)
    return [each for each in entries if isinstance(each, Mapping)] if isinstance(entries, list) else []


def _names(fields: Mapping[str, Any], name: str) -> set[Any]:
    return {each["name"] for each in _entries(fields, name) if isinstance(each.get("name"), str)}
