"""Creates the local engine from its settings."""

from __future__ import annotations

from resolute.errors import InvalidArgumentError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.local.engine import LocalEngine
from resolute_engines.local.settings import LocalEngineOptions, LocalPoolOptions
from resolute_engines.settings import EngineSettings, parse_options


def create_engine(settings: EngineSettings, environment: EngineEnvironment) -> LocalEngine:
    """Makes the engine; starts nothing yet.

    Raises:
        InvalidArgumentError: The settings are wrong; the error lists every fault.
    """
    parse_options(LocalEngineOptions, settings.options, at=settings.where)
    for pool in settings.pools:
        parse_options(LocalPoolOptions, pool.options, at=pool.where)
    if len(settings.pools) > 1:
        raise InvalidArgumentError(
            f"{settings.pools[1].where}: this machine is one pool, {settings.pools[0].name!r}; "
            "remove the other"
        )
    return LocalEngine(
        environment.runs_directory,
        slots=environment.slots,
        terms=environment.terms(),
        nodes=environment.nodes,
        address=environment.address,
        pool=settings.pools[0].name,
        starts_ahead=environment.starts_ahead,
    )
