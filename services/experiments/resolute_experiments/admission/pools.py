"""What resource pools accept: a config that is right anywhere may ask for more than a pool has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.errors import InvalidConfigError, Violation


@dataclass(frozen=True, kw_only=True)
class PoolTerms:
    """What one pool accepts. A value of its own, which worker processes are given."""

    name: str
    """The pool."""
    most_slots: int | None
    """Most slots of a trial; None where the pool's engine alone knows."""
    largest_node: int
    """Most slots of a trial that must be on one node."""
    effective_fields: frozenset[str] = frozenset()
    """Fields that have an effect there, of those that have none for processes of this machine."""


@dataclass(frozen=True, kw_only=True)
class PoolsOffered:
    """The pools that configs may name."""

    pools: Sequence[PoolTerms]
    """All of them, the default one first."""
    named: bool = False
    """Whether the settings name them. If not, this machine is the only pool, whatever configs call it."""

    def chosen(self, config: Mapping[str, Any]) -> PoolTerms:
        """The pool that a config asks for.

        Raises:
            InvalidConfigError: There is none of this name.
        """
        wanted = config["resources"].get("resource_pool") if self.named else ""
        if not wanted:
            return self.pools[0]
        for pool in self.pools:
            if pool.name == wanted:
                return pool
        there = ", ".join(sorted(pool.name for pool in self.pools))
        raise _refused("resources.resource_pool", f"found {wanted!r}; expected one of the pools: {there}")

    def check_slots(self, config: Mapping[str, Any]) -> None:
        """Checks that the pool of a config can ever run its trials.

        Raises:
            InvalidConfigError: It cannot, or does not exist.
        """
        pool = self.chosen(config)
        slots, single_node = (config["resources"][name] for name in ("slots_per_trial", "is_single_node"))
        most = pool.largest_node if single_node else pool.most_slots
        if most is not None and slots > most:
            owner = f"pool {pool.name!r}" if self.named else "this cluster"
            node = f"of the largest node{f' of {owner}' if self.named else ''}"
            whose = f"{node}, since is_single_node is true" if single_node else f"of {owner}"
            raise _refused(
                "resources.slots_per_trial", f"found {slots}; expected at most {most}, the slots {whose}"
            )


def _refused(path: str, reason: str) -> InvalidConfigError:
    return InvalidConfigError(
        f"the experiment config has 1 fault:\n  {path}: {reason}", violations=[Violation(path, reason)]
    )
