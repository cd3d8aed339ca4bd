"""Creates a container engine from its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from resolute.errors import InvalidArgumentError
from resolute_engines.configs.host_access import HostAccess
from resolute_engines.container.client import DockerApi
from resolute_engines.container.engine import ContainerEngine, EngineHost
from resolute_engines.container.runtime import make_runtime, remove_others, runtime_name
from resolute_engines.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_engines.environment import EngineEnvironment
from resolute_engines.protocol import Engine
from resolute_engines.settings import EngineSettings, parse_options


def create_engine(settings: EngineSettings, environment: EngineEnvironment) -> Engine:
    """Makes an engine of containers; calls nothing yet.

    Raises:
        InvalidArgumentError: The settings are wrong; the error lists every fault.
        FailedPreconditionError: The certificate cannot be read.
    """
    options = parse_options(ContainerEngineOptions, settings.options, at=settings.where)
    pools = {
        pool.name: parse_options(ContainerPoolOptions, pool.options, at=pool.where) for pool in settings.pools
    }
    _check_meeting_places(settings, options, pools)
    host = EngineHost(
        access=HostAccess(
            where=settings.where,
            bind_mounts=options.bind_mounts,
            checkpoint_directories=options.checkpoint_directories,
            capabilities=options.capabilities,
        ),
        make_runtime=partial(_runtime, options.runtime, _folder(settings, environment)),
        # What an operator made is the operator's to remove.
        remove_runtimes=None if options.runtime else remove_others,
    )
    return ContainerEngine(
        DockerApi(options.url),
        options=options,
        pools=pools,
        terms=environment.terms(options.services_address, options.services_certificate),
        host=host,
        cluster_id=environment.cluster_id,
        own_address=environment.address,
    )


def _check_meeting_places(
    settings: EngineSettings, engine: ContainerEngineOptions, pools: Mapping[str, ContainerPoolOptions]
) -> None:
    """Refuses runs of several containers where these have no address by which they find each other."""
    for pool in settings.pools:
        given = pools[pool.name]
        together = given.slots_per_node or 0
        if not engine.networks and 0 < together < (len(given.gpus) or given.slots or 1):
            raise InvalidArgumentError(
                f"{pool.where}.slots_per_node: a trial of more than {together} slots has several containers, "
                f"which meet on a network of their own; remove it, or {settings.where}.networks: false"
            )


def _folder(settings: EngineSettings, environment: EngineEnvironment) -> Path:
    """Where the runtimes of an engine are: one of them does not know what the containers of another use."""
    name = hashlib.sha256(settings.name.encode()).hexdigest()[:12]
    return environment.runs_directory.with_name("runtimes") / f"engine-{name}"


def _runtime(given: str, folder: Path) -> Path:
    if given:
        return Path(given)
    runtime = folder.absolute() / runtime_name()
    make_runtime(runtime)
    return runtime
