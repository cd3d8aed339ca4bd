"""Config fields that other engines support less than the local engine does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from resolute_engines.configs.requirements import Requirement


@dataclass(frozen=True, slots=True)
class UnsupportedField:
    """A field or section of configs that has no effect with an engine.

    Attributes:
        path: Dotted path of the field.
        reason: The reason, as a whole clause.
    """

    path: str
    reason: str


STARTS_COLD = UnsupportedField(
    "environment.warm_start", "the engine of its pool starts each run in a process, or container, of its own"
)
"""Runs start warm on this machine alone."""


def queued_by(engine: str, *, passed_on: Mapping[str, bool]) -> tuple[UnsupportedField, ...]:
    """What an engine with a queue of its own makes of the order that configs ask for.

    Args:
        engine: What its users call it.
        passed_on: For each setting of the pool that passes the priority on, whether it is given.
    """
    once = f"once {engine} was given a trial, its own queue decides"
    weight = UnsupportedField("resources.weight", once)
    if any(passed_on.values()):
        return (weight,)
    remedy = "".join(f"; {name} of the pool passes it on" for name in passed_on)
    return (UnsupportedField("resources.priority", f"{once}{remedy}"), weight)


def no_node_excluded(engine: str, *, instead: str) -> Requirement:
    """Refuses the log policies that keep a trial from nodes, where its engine chooses them.

    Args:
        engine: What its users call it.
        instead: What to do.
    """
    return Requirement(
        path="log_policies[].action.type",
        allowed=("cancel_retries",),
        reason=f"{engine} chooses the nodes of this pool: {instead}",
    )
