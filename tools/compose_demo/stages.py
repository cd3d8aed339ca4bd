"""The order in which services of the compose file start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """Services that start together.

    Attributes:
        services: Which ones.
        ends: Those of them that do something once; the next stage starts when they have ended.
    """

    services: tuple[str, ...]
    ends: tuple[str, ...] = ()


STAGES = (
    Stage(("prepare",), ends=("prepare",)),
    Stage(("database", "store", "tokens"), ends=("tokens",)),
    Stage(("experiments", "searcher", "metrics", "logs", "checkpoints", "preemption", "gateway")),
)
"""The order that `depends_on` of the compose file says. By that alone podman-compose starts everything too,
but what has ended it starts anew before each service, which takes minutes on a small machine."""
