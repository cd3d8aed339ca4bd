"""Opens an engine of containers from its settings."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from resolute.contracts.calls.tls import ClientTls
from resolute_experiments.resources.container.api import DockerApi
from resolute_experiments.resources.container.manager import ContainerEngineTerms, ContainerManager
from resolute_experiments.resources.container.runtime import make_runtime, remove_others, runtime_name
from resolute_experiments.resources.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_experiments.resources.engine_environment import EngineEnvironment
from resolute_experiments.resources.protocol import ResourceManager
from resolute_experiments.resources.settings import EngineSettings, parse_options


def open_container_engine(settings: EngineSettings, environment: EngineEnvironment) -> ResourceManager:
    """Makes the resource manager of an engine of containers; calls nothing yet.

    Raises:
        InvalidArgumentError: The settings are wrong; the error lists every fault.
        FailedPreconditionError: The certificate cannot be read.
    """
    options = parse_options(ContainerEngineOptions, settings.options, at=settings.where)
    pools = {
        pool.name: parse_options(ContainerPoolOptions, pool.options, at=pool.where) for pool in settings.pools
    }
    trusted = options.services_certificate
    tls = ClientTls.read(Path(trusted)) if trusted else environment.tls
    terms = ContainerEngineTerms(
        cluster_id=environment.cluster_id,
        address=environment.address,
        tls=None if tls is None else tls.to_json(),
        outage_timeout=environment.outage_timeout,
        log_wait=environment.log_wait,
        make_runtime=partial(_runtime, options.runtime, _folder(settings, environment)),
        # What an operator made is the operator's to remove.
        remove_runtimes=None if options.runtime else remove_others,
    )
    return ContainerManager(DockerApi(options.url), options=options, pools=pools, terms=terms)


def _folder(settings: EngineSettings, environment: EngineEnvironment) -> Path:
    """Where the runtimes of an engine are: one of them does not know what the containers of another use."""
    name = hashlib.sha256(settings.name.encode()).hexdigest()[:12]
    return environment.runs_directory.with_name("runtimes") / f"engine-{name}"


def _runtime(given: str, folder: Path) -> Path:
    if given:
        return Path(given)
    found = folder.absolute() / runtime_name()
    make_runtime(found)
    return found
