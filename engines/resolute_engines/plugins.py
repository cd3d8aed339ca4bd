"""Which types of engines there are, and how each is opened from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from resolute.contracts.documents.section import Section
from resolute.errors import InvalidArgumentError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.local.engine import DEFAULT_POOL, LocalResourceManager
from resolute_engines.protocol import ResourceManager
from resolute_engines.ray.factory import open_ray_engine
from resolute_engines.settings import (
    LOCAL,
    EngineSettings,
    PoolSettings,
    ResourceSettings,
    parse_options,
)
from resolute_engines.slurm.factory import open_slurm_engine


class EngineType(Protocol):
    """Opens engines of one type."""

    def __call__(self, settings: EngineSettings, environment: EngineEnvironment) -> ResourceManager:
        """Makes the resource manager of an engine; asks the engine nothing yet.

        Raises:
            InvalidArgumentError: The settings are wrong; the error lists every fault.
        """


def open_engine(settings: EngineSettings, environment: EngineEnvironment) -> ResourceManager:
    """Makes the resource manager of an engine.

    Raises:
        InvalidArgumentError: The settings are wrong; the error lists every fault.
    """
    opened = ENGINE_TYPES.get(settings.type)
    if opened is None:
        there = ", ".join(sorted(ENGINE_TYPES))
        raise InvalidArgumentError(
            f"{settings.where}.type: found {settings.type!r}; expected one of: {there}"
        )
    return opened(settings, environment)


class _NoOptions(Section):
    """Nothing may be said."""


def _open_local(settings: EngineSettings, environment: EngineEnvironment) -> ResourceManager:
    parse_options(_NoOptions, settings.options, at=settings.where)
    for pool in settings.pools:
        parse_options(_NoOptions, pool.options, at=pool.where)
    if len(settings.pools) > 1:
        raise InvalidArgumentError(
            f"{settings.pools[1].where}: this machine is one pool, {settings.pools[0].name!r}; "
            "remove the other"
        )
    return LocalResourceManager(
        environment.runs_directory,
        slots=environment.slots,
        terms=environment.terms(),
        nodes=environment.nodes,
        address=environment.address,
        pool=settings.pools[0].name,
    )


def _open_container(settings: EngineSettings, environment: EngineEnvironment) -> ResourceManager:
    try:
        from resolute_engines.container.factory import open_container_engine
    except ModuleNotFoundError as missing:
        raise _without_library(settings, missing, extra="container") from missing
    return open_container_engine(settings, environment)


def _open_kubernetes(settings: EngineSettings, environment: EngineEnvironment) -> ResourceManager:
    try:
        from resolute_engines.kubernetes.factory import open_kubernetes_engine
    except ModuleNotFoundError as missing:
        raise _without_library(settings, missing, extra="kubernetes") from missing
    return open_kubernetes_engine(settings, environment)


def _without_library(
    settings: EngineSettings, missing: ModuleNotFoundError, *, extra: str
) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{settings.where}: the library {missing.name} is not here: pip install 'resolute-train[{extra}]'"
    )


ENGINE_TYPES: Mapping[str, EngineType] = {
    LOCAL: _open_local,
    "container": _open_container,
    "kubernetes": _open_kubernetes,
    "ray": open_ray_engine,
    "slurm": open_slurm_engine,
}
"""How each type of engine is opened."""

ONLY_LOCAL = ResourceSettings(
    engines=(
        EngineSettings(
            name=LOCAL,
            type=LOCAL,
            options={},
            pools=(PoolSettings(name=DEFAULT_POOL, options={}, where="resource_pools[0]"),),
        ),
    ),
    default_pool=DEFAULT_POOL,
)
"""What holds where there are no settings: this machine is the only pool."""
