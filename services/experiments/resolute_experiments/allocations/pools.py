"""The pools of all engines, by name."""

from __future__ import annotations

from collections.abc import Sequence

from resolute.errors import UnavailableError
from resolute_engines.configs.requirements import Requirement
from resolute_engines.layout import by_node
from resolute_engines.protocol import Engine, KeepsRunFiles, Placement, Pool
from resolute_experiments.admission.pools import PoolsOffered, PoolTerms
from resolute_experiments.allocations.engine_runs import EngineRuns

_CHOICE = "resources.resource_pool"


class Pools:
    """The current pools.

    Args:
        engines: The engines of the pools.
        default: Pool of experiments that name none.
        named: Whether the settings name the pools.
    """

    def __init__(self, engines: Sequence[EngineRuns], *, default: str, named: bool) -> None:
        self._engines = engines
        self.named = named
        """Whether the settings name the pools. If not, there is one, whatever configs call it."""
        self.default = default
        """Where experiments run that name no pool."""

    def all(self) -> Sequence[Pool]:
        """Every pool: the default one first."""
        pools = [pool for each in self._engines for pool in each.engine.pools()]
        return sorted(pools, key=lambda pool: pool.name != self.default)

    def get(self, name: str) -> Pool:
        """One pool, by the name that experiments have for it.

        Raises:
            UnavailableError: The settings have no such pool.
        """
        pools = self.engine_of(name).engine.pools()
        return next(pool for pool in pools if pool.name == (name or self.default))

    def engine_of(self, name: str) -> EngineRuns:
        """The engine that has a pool.

        Raises:
            UnavailableError: The settings have no such pool.
        """
        wanted = name or self.default
        for each in self._engines:
            if any(pool.name == wanted for pool in each.engine.pools()):
                return each
        raise UnavailableError(
            f"the settings have no resource pool {wanted!r}: add it again until its experiments have ended"
        )

    def names_of(self, pool: Pool) -> Sequence[str]:
        """The names that experiments have for a pool; none where there is one for all of them."""
        if not self.named:
            return ()
        return (pool.name, "") if pool.name == self.default else (pool.name,)

    def node_counts(self) -> dict[str, int]:
        """How many nodes with slots each pool has."""
        return {pool.name: len(by_node(pool.slots)) for pool in self.all()}

    @property
    def slot_count(self) -> int:
        """Number of slots of all pools, as far as they are known."""
        return sum(len(pool.slots) for pool in self.all())

    def offered(self) -> PoolsOffered:
        """What configs may ask of the pools."""
        terms = tuple(
            terms_of(pool, named=self.named, engine=self.engine_of(pool.name).engine) for pool in self.all()
        )
        return PoolsOffered(pools=terms, named=self.named)


def terms_of(pool: Pool, *, named: bool, engine: Engine) -> PoolTerms:
    """What configs may ask of a pool.

    Args:
        pool: The pool, as it is now.
        named: Whether the settings name the pools, so that configs choose among them.
        engine: What runs trials there.
    """
    requirements = pool.requirements
    if not isinstance(engine, KeepsRunFiles):
        requirements = (*requirements, _holds_no_files(pool, engine))
    if pool.placement is Placement.ENGINE:
        most, largest = pool.most_slots, pool.slots_per_node
    else:
        most, largest = len(pool.slots), max(map(len, by_node(pool.slots)), default=0)
    return PoolTerms(
        name=pool.name,
        most_slots=most,
        largest_node=largest,
        runs_here=pool.runs_here,
        supported_fields=pool.supported_fields | ({_CHOICE} if named else set()),
        unsupported_fields=pool.unsupported_fields,
        requirements=requirements,
        warnings=pool.warnings,
    )


def _holds_no_files(pool: Pool, engine: Engine) -> Requirement:
    """Refuses to hold what failed runs leave, where it goes with their machines."""
    return Requirement(
        path="on_failure",
        reason=(
            f"{type(engine).__name__.removesuffix('Engine')}, the engine of pool {pool.name!r}, removes what "
            "failed runs leave: remove on_failure, or take a pool of this machine, of containers or of Slurm"
        ),
    )
