"""Creates a Slurm engine from its settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from resolute.errors import InvalidArgumentError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.settings import EngineSettings, parse_options
from resolute_engines.slurm.client import SlurmClient
from resolute_engines.slurm.commands.login import LoginNode
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.engine import SlurmEngine
from resolute_engines.slurm.request import SlurmNodes
from resolute_engines.slurm.settings import SlurmEngineOptions, SlurmPoolOptions

_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "SLURM_CONF")
"""What Slurm's commands, and with them jobs, are given of this process's environment."""
_VARIABLES_OF_SSH = (*_VARIABLES, "SSH_AUTH_SOCK")
"""What `ssh` is given, where the commands run elsewhere."""
_POLL_SECONDS = 1.0
_POLL_SECONDS_OVER_SSH = 5.0
"""Each look logs in, and login nodes count logins."""


def create_engine(settings: EngineSettings, environment: EngineEnvironment) -> SlurmEngine:
    """Makes an engine of Slurm; runs no command yet.

    Raises:
        InvalidArgumentError: The settings are wrong; the error lists every fault.
        FailedPreconditionError: The certificate cannot be read.
    """
    options = parse_options(SlurmEngineOptions, settings.options, at=settings.where)
    return SlurmEngine(
        SlurmClient(commands_of(options, os.environ)),
        pools=pools_of(settings, options),
        runs=Path(options.directory),
        terms=environment.terms(options.address or "", options.services_certificate),
        nodes=SlurmNodes(python=options.python or sys.executable, runtime=options.runtime),
        cluster=f"resolute-{environment.cluster_id[:8]}",
        own_address=environment.address,
        poll_seconds=_POLL_SECONDS_OVER_SSH if options.login else _POLL_SECONDS,
    )


def commands_of(engine: SlurmEngineOptions, variables: Mapping[str, str]) -> SlurmCommands:
    """What runs Slurm's commands for an engine.

    Args:
        engine: Its settings.
        variables: Environment of this process.
    """
    wanted = _VARIABLES_OF_SSH if engine.login else _VARIABLES
    kept = {name: variables[name] for name in wanted if name in variables}
    conf = {"SLURM_CONF": engine.conf} if engine.conf else {}
    if not engine.login:
        return SlurmCommands(environment={**kept, **conf})
    login = LoginNode(destination=engine.login, config=engine.ssh_config, variables=conf)
    return SlurmCommands(environment=kept, login=login)


def pools_of(settings: EngineSettings, engine: SlurmEngineOptions) -> dict[str, SlurmPoolOptions]:
    """The pools of an engine, by their names.

    Raises:
        InvalidArgumentError: The settings of one are wrong, or do not fit the engine.
    """
    pools = {}
    for given in settings.pools:
        pool = pools[given.name] = parse_options(SlurmPoolOptions, given.options, at=given.where)
        if pool.container is None and (pool.image or pool.container_args):
            raise InvalidArgumentError(
                f"{given.where}: image and container_args are for containers: give container too "
                "(apptainer, enroot, pyxis), or remove them"
            )
        if pool.container is not None and not engine.runtime:
            raise InvalidArgumentError(
                f"{settings.where}.runtime: missing; {given.where} has containers, which want Resolute: make "
                "it by `python -m resolute_engines.container.runtime FOLDER` on storage that "
                "the nodes share"
            )
    return pools
