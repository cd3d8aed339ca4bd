"""Checks of a config against its resource pool: a valid config may request more than the pool has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.contracts.documents.refusals import refused_config
from resolute.contracts.documents.rejections import suggestion
from resolute.errors import Violation
from resolute_engines.configs.requirements import ConfigRule
from resolute_engines.configs.unsupported_fields import UnsupportedField
from resolute_engines.configs.warning_rules import WarningRule


@dataclass(frozen=True, kw_only=True)
class PoolTerms:
    """The rules of one pool. It is a plain value, so it can be sent to worker processes."""

    name: str
    """The pool."""
    most_slots: int | None
    """Most slots of a trial; None where the pool's engine alone knows."""
    largest_node: int
    """Most slots of a trial that must be on one node."""
    runs_here: bool = False
    """Whether its processes run on this machine with the packages of this service."""
    supported_fields: frozenset[str] = frozenset()
    """Fields that have an effect there, of those that have none for processes of this machine."""
    unsupported_fields: tuple[UnsupportedField, ...] = ()
    """Fields that have no effect there, of those that have one for processes of this machine."""
    requirements: tuple[ConfigRule, ...] = ()
    """What configs must be there, and what they may have of the machines."""
    warnings: tuple[WarningRule, ...] = ()
    """What is warned of in configs that it takes."""


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
        pools = {pool.name: pool for pool in self.pools}
        if wanted not in pools:
            hint = suggestion(wanted, pools)
            reason = f"found {wanted!r}; expected one of the pools: {', '.join(sorted(pools))}"
            raise refused_config(Violation("resources.resource_pool", f"{reason}{hint and f'; {hint}'}"))
        return pools[wanted]

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
            reason = f"found {slots}; expected at most {most}, the slots {whose}"
            raise refused_config(Violation("resources.slots_per_trial", reason))
