"""What the experiments service is told beside its environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from resolute.contracts.calls.tls import ClientTls
from resolute_engines.settings import ONLY_LOCAL, EngineSettings, ResourceSettings, resources_of
from resolute_experiments.accounts.openid.settings import OpenIdSettings
from resolute_experiments.specs.storage import partial_without_secrets
from resolute_serving.server.service import Environment


@dataclass(frozen=True, kw_only=True)
class ExperimentsSettings:
    """What this service is told beside its environment."""

    address: str
    """``host:port`` where supervisors and trials reach all services."""
    tls: ClientTls | None = None
    """Whom they trust there; None for a plain port."""
    remote_tls: ClientTls | None = None
    """Whom trials of other machines trust where these reach the services; None for the same."""
    runs_directory: Path
    """Where the engine of this machine keeps a directory for each run."""
    slots: int | None = None
    """Slots of this machine; None to count its GPUs, or else its cores."""
    nodes: int = 1
    """As how many machines this one appears, to try trials across several."""
    cluster_defaults: dict[str, Any] = field(default_factory=dict)
    """Lowest layer of every config."""
    lease_ttl: float = 30.0
    """Seconds that a lease lasts without renewal."""
    outage_timeout: float = 3600.0
    """Seconds that trials continue while no service answers."""
    log_wait: float = 10.0
    """Seconds that the end of a run waits for the logs service to take the run's last lines."""
    preemption_timeout: float = 3600.0
    """Seconds that trials get to checkpoint after a signal."""
    openid: OpenIdSettings | None = None
    """The OpenID provider that signs people in; None for passwords alone."""
    resources: ResourceSettings | None = None
    """The engines and their pools; None for this machine alone."""

    @property
    def engines(self) -> Sequence[EngineSettings]:
        """The engines."""
        return (self.resources or ONLY_LOCAL).engines

    def shown(self) -> dict[str, Any]:
        """What admins may see of the settings: all of them, without the secrets of default configs."""
        openid = self.openid
        return {
            "address": self.address,
            "runs_directory": str(self.runs_directory),
            "slots": self.slots,
            "nodes": self.nodes,
            "lease_ttl": self.lease_ttl,
            "outage_timeout": self.outage_timeout,
            "log_wait": self.log_wait,
            "preemption_timeout": self.preemption_timeout,
            "resource_pools": [pool.name for one in self.engines for pool in one.pools],
            "openid": None if openid is None else {"issuer": openid.issuer, "client_id": openid.client_id},
            "cluster_defaults": partial_without_secrets(self.cluster_defaults),
        }

    def directories(self, environment: Environment) -> list[Path]:
        """Where this service, its runs and experiments that name no other storage write."""
        found = [environment.data_directory, self.runs_directory]
        url = make_url(environment.database_url)
        if url.get_backend_name() == "sqlite" and url.database:
            found.append(Path(url.database).parent)
        storage = self.cluster_defaults.get("checkpoint_storage", {})
        if storage.get("host_path"):
            found.append(Path(storage["host_path"]))
        return found

    @classmethod
    def from_environment(cls, variables: Mapping[str, str], environment: Environment) -> ExperimentsSettings:
        """Reads these variables.

        RESOLUTE_ADVERTISED_ADDRESS is where supervisors reach the services (127.0.0.1:8080),
        RESOLUTE_ADVERTISED_CA the PEM file of who signs the certificate there (none: a plain port),
        RESOLUTE_RUNS_DIR where run directories lie (``runs`` in the data directory), RESOLUTE_SLOTS how many
        slots there are, RESOLUTE_LOCAL_NODES as how many machines they appear (1), RESOLUTE_LOG_WAIT how many
        seconds the end of a run waits for the logs service to take the run's last lines (10),
        RESOLUTE_RESOURCE_POOLS the file with engines and resource pools (this machine alone).
        ``OpenIdSettings`` names those of sign-in.

        Args:
            variables: The variables.
            environment: What every service is given.
        """
        slots = variables.get("RESOLUTE_SLOTS", "")
        authority = variables.get("RESOLUTE_ADVERTISED_CA", "")
        return cls(
            address=variables.get("RESOLUTE_ADVERTISED_ADDRESS", "127.0.0.1:8080"),
            tls=ClientTls.read(Path(authority)) if authority else None,
            runs_directory=Path(variables.get("RESOLUTE_RUNS_DIR") or environment.data_directory / "runs"),
            slots=int(slots) if slots else None,
            nodes=int(variables.get("RESOLUTE_LOCAL_NODES") or 1),
            log_wait=float(variables.get("RESOLUTE_LOG_WAIT") or 10),
            openid=OpenIdSettings.from_environment(variables),
            resources=resources_of(variables, environment.home),
            cluster_defaults={
                "checkpoint_storage": {
                    "type": "shared_fs",
                    "host_path": str(environment.checkpoints_directory),
                }
            },
        )
