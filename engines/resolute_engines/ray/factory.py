"""Creates a Ray engine from its settings."""

from __future__ import annotations

from resolute_engines.environment import EngineEnvironment
from resolute_engines.protocol import Engine
from resolute_engines.ray.client import Driver
from resolute_engines.ray.engine import RayEngine, RayNodes
from resolute_engines.ray.settings import RayEngineOptions, RayPoolOptions
from resolute_engines.settings import EngineSettings, parse_options


def create_engine(settings: EngineSettings, environment: EngineEnvironment) -> Engine:
    """Makes an engine of Ray; asks it nothing yet.

    Raises:
        InvalidArgumentError: The settings are wrong; the error lists every fault.
        FailedPreconditionError: The certificate cannot be read.
    """
    options = parse_options(RayEngineOptions, settings.options, at=settings.where)
    return RayEngine(
        Driver(
            options.address, prefix=f"resolute-{environment.cluster_id[:8]}-", python=options.driver_python
        ),
        pools={
            pool.name: parse_options(RayPoolOptions, pool.options, at=pool.where) for pool in settings.pools
        },
        terms=environment.terms(options.services_address, options.services_certificate),
        nodes=RayNodes(python=options.python, directory=options.directory),
    )
