"""The rules by which this cluster accepts configs, and accepted configs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from resolute_experiments.admission.pools import PoolsOffered

if TYPE_CHECKING:
    from resolute_config.experiment import ExperimentConfig


@dataclass(frozen=True)
class Accepted:
    """An accepted config."""

    config: ExperimentConfig
    """The whole config, defaults filled in."""
    warnings: tuple[str, ...]
    """What in it has no effect here."""
    resource_pool: str
    """The pool that it runs in."""
    runs_here: bool = False
    """Whether that runs trials on this machine with the packages of this service."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The rules by which this cluster accepts configs.

    They are separate from the config's own checks, because a valid config may ask for more than this cluster
    has.
    """

    cluster_defaults: dict[str, Any] = field(default_factory=dict)
    """Lowest layer of every config, such as where checkpoints lie."""
    pools: PoolsOffered
    """Where its experiments can run."""
