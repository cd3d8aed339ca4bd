"""Parses the documents in which admins write policies for configs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from resolute.contracts.documents.document import read_document
from resolute.contracts.documents.faults import ConfigError, Fault
from resolute.contracts.documents.rejections import faults_of
from resolute.contracts.documents.section import Int, Json, Section, SmallCount
from resolute.contracts.priorities import LEAST_PRIORITY
from resolute.errors import InvalidArgumentError, Violation
from resolute_config.loading.canonical import canonical
from resolute_config.loading.parse import sanity_faults
from resolute_experiments.admission.config_policies import faults_of_resources
from resolute_experiments.store.config_policies import ConfigPolicies, Constraints

PLACES = ("workspace", "project")
"""Fields that no invariant may set: they decide which policies count."""


class _Resources(Section):
    max_slots: SmallCount | None = None


class _Constraints(Section):
    resources: _Resources = _Resources()
    priority_limit: Annotated[Int, Field(ge=1, le=LEAST_PRIORITY)] | None = None


class _Document(Section):
    invariant_config: Json | None = None
    constraints: _Constraints = _Constraints()


def read_policies(text: str, above: ConfigPolicies | None, below: ConfigPolicies) -> ConfigPolicies:
    """Reads the document of policies.

    Args:
        text: YAML or JSON.
        above: Policies that win over these; None where there are none.
        below: Policies without content, which say whose these are.

    Raises:
        InvalidArgumentError: Something in it is wrong; the error lists every fault.
    """
    try:
        document = read_document(text)
        given = _Document.model_validate(document.content)
    except ConfigError as error:
        raise _invalid(error.faults) from error
    except ValidationError as error:
        raise _invalid(faults_of(error)) from error
    invariants = given.invariant_config or {}
    faults = [*document.faults, *_invariant_faults(invariants)]
    if faults:
        raise _invalid(faults)
    read = ConfigPolicies(
        workspace_number=below.workspace_number,
        workspace_name=below.workspace_name,
        invariants=canonical(invariants),
        constraints=Constraints(given.constraints.resources.max_slots, given.constraints.priority_limit),
        updated_at=below.updated_at,
    )
    contradictions = list(_contradictions(read, above))
    if contradictions:
        raise _invalid(contradictions)
    return read


def overlaps(policies: ConfigPolicies, above: ConfigPolicies | None) -> Iterator[str]:
    """Says what in policies has no effect, because those above decide it."""
    if above is None:
        return
    for path in sorted(_leaves(policies.invariants) & _leaves(above.invariants)):
        yield f"invariant_config.{path} has no effect: {above.label} set it"
    for name in ("max_slots", "priority_limit"):
        if None not in (getattr(policies.constraints, name), getattr(above.constraints, name)):
            yield f"constraints: {name} has no effect: {above.label} set it"


def _invariant_faults(invariants: Any) -> Iterator[Fault]:
    if not isinstance(invariants, dict):
        yield Fault("invariant_config", "it is not a map", "a map of fields of an experiment's config")
        return
    for name in PLACES:
        if invariants.get(name) is not None:
            yield Fault(
                f"invariant_config.{name}",
                "cannot be set by a policy",
                hint="it says where an experiment belongs, and so which policies count",
            )
    for fault in sanity_faults(canonical(invariants)):
        yield Fault(f"invariant_config.{fault.path}", fault.problem, fault.expected, fault.hint)


def _contradictions(policies: ConfigPolicies, above: ConfigPolicies | None) -> Iterator[Fault]:
    resources = policies.invariants.get("resources") or {}
    limits = [policies.constraints, *([] if above is None else [above.constraints])]
    for limit in limits:
        for path, reason in faults_of_resources(resources, limit):
            yield Fault(f"invariant_config.{path}", reason)


def _leaves(content: Mapping[str, Any], at: str = "") -> set[str]:
    leaves: set[str] = set()
    for key, value in content.items():
        path = f"{at}.{key}" if at else key
        if isinstance(value, dict) and value:
            leaves |= _leaves(value, path)
        elif value is not None:
            leaves.add(path)
    return leaves


def _invalid(faults: Any) -> InvalidArgumentError:
    violations = [Violation(fault.path, fault.reason) for fault in faults]
    count = "1 fault" if len(violations) == 1 else f"{len(violations)} faults"
    lines = "".join(f"\n  {fault}" for fault in faults)
    return InvalidArgumentError(f"invalid experiment config policy, {count}:{lines}", violations=violations)
