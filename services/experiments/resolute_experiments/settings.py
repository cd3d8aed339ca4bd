"""Settings of the experiments service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url

from resolute.contracts.calls.tls import ClientTls
from resolute.errors import InvalidArgumentError
from resolute_engines.settings import ONLY_LOCAL, EngineSettings, ResourceSettings, resources_of
from resolute_experiments.accounts.openid.settings import OpenIdSettings
from resolute_experiments.alerts.settings import AlertSettings
from resolute_experiments.specs.storage import partial_without_secrets
from resolute_serving.sealing import SealingKey
from resolute_serving.server.service import Environment
from resolute_serving.tls import AUTHORITY_VARIABLE, CERTIFICATE_VARIABLE

_ADVERTISED_AUTHORITY = "RESOLUTE_ADVERTISED_CA"


@dataclass(frozen=True, kw_only=True)
class ExperimentsSettings:
    """The settings of this service in addition to its environment."""

    address: str
    """``host:port`` where supervisors and trials reach all services."""
    tls: ClientTls | None = None
    """Whom they trust there; None for a plain port."""
    remote_tls: ClientTls | None = None
    """Whom trials of other machines trust where these reach the services; None for the same."""
    http_url: str = ""
    """URL at which trials reach the HTTP gateway; empty if there is none."""
    shared: bool = False
    """Whether other machines reach the cluster."""
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
    certificates: tuple[Path, ...] = ()
    """Files of the certificates that the cluster serves and trusts, of whose end alerts tell."""
    alerts: AlertSettings = field(default_factory=AlertSettings)
    """What the operator says of alerts."""
    secrets_key: SealingKey = field(default_factory=SealingKey)
    """The key of the secrets in the database."""
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
            "http_url": self.http_url,
            "runs_directory": str(self.runs_directory),
            "slots": self.slots,
            "nodes": self.nodes,
            "lease_ttl": self.lease_ttl,
            "outage_timeout": self.outage_timeout,
            "log_wait": self.log_wait,
            "preemption_timeout": self.preemption_timeout,
            "resource_pools": [pool.name for engine in self.engines for pool in engine.pools],
            "openid": None if openid is None else {"issuer": openid.issuer, "client_id": openid.client_id},
            "cluster_defaults": partial_without_secrets(self.cluster_defaults),
        }

    def directories(self, environment: Environment) -> list[Path]:
        """Where this service, its runs and experiments that name no other storage write."""
        paths = [environment.data_directory, self.runs_directory]
        url = make_url(environment.database_url)
        if url.get_backend_name() == "sqlite" and url.database:
            paths.append(Path(url.database).parent)
        storage = self.cluster_defaults.get("checkpoint_storage", {})
        if storage.get("host_path"):
            paths.append(Path(storage["host_path"]))
        return paths

    @classmethod
    def from_environment(cls, variables: Mapping[str, str], environment: Environment) -> ExperimentsSettings:
        """Reads these variables.

        RESOLUTE_ADVERTISED_ADDRESS is where supervisors reach the services (127.0.0.1:8080),
        RESOLUTE_ADVERTISED_CA the PEM file of who signs the certificate there (none: a plain port),
        RESOLUTE_ADVERTISED_URL the URL of the HTTP gateway as trials reach it (none),
        RESOLUTE_RUNS_DIR where run directories lie (``runs`` in the data directory), RESOLUTE_SLOTS how many
        slots there are, RESOLUTE_LOCAL_NODES as how many machines they appear (1), RESOLUTE_LOG_WAIT how many
        seconds the end of a run waits for the logs service to take the run's last lines (10),
        RESOLUTE_RESOURCE_POOLS the file with engines and resource pools (this machine alone).
        Of the certificates among them, and of RESOLUTE_TLS_CERT and RESOLUTE_TLS_CA, alerts tell the end.
        ``OpenIdSettings`` names those of sign-in, ``AlertSettings`` those of alerts, ``SealingKey`` those of
        the key of secrets.

        Args:
            variables: The variables.
            environment: What every service is given.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        slots = variables.get("RESOLUTE_SLOTS", "")
        authority = variables.get(_ADVERTISED_AUTHORITY, "")
        return cls(
            address=variables.get("RESOLUTE_ADVERTISED_ADDRESS", "127.0.0.1:8080"),
            http_url=_gateway_url(variables.get("RESOLUTE_ADVERTISED_URL", "")),
            shared=True,
            tls=ClientTls.read(Path(authority)) if authority else None,
            runs_directory=Path(variables.get("RESOLUTE_RUNS_DIR") or environment.data_directory / "runs"),
            slots=int(slots) if slots else None,
            nodes=int(variables.get("RESOLUTE_LOCAL_NODES") or 1),
            log_wait=float(variables.get("RESOLUTE_LOG_WAIT") or 10),
            openid=OpenIdSettings.from_environment(variables),
            certificates=_certificates(variables),
            alerts=AlertSettings.from_environment(variables),
            secrets_key=SealingKey.from_environment(variables),
            resources=resources_of(variables, environment.home),
            cluster_defaults={
                "checkpoint_storage": {
                    "type": "shared_fs",
                    "host_path": str(environment.checkpoints_directory),
                }
            },
        )


def _gateway_url(text: str) -> str:
    """Accepts what trials can ask; empty for no gateway."""
    try:
        parts = urlsplit(text)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if text and (not sound or parts.query or parts.fragment or parts.username is not None):
        raise InvalidArgumentError(
            f"RESOLUTE_ADVERTISED_URL is {text!r}; it must be http://HOST[:PORT] or https://HOST[:PORT]"
        )
    return text.rstrip("/")


def _certificates(variables: Mapping[str, str]) -> tuple[Path, ...]:
    named = (CERTIFICATE_VARIABLE, AUTHORITY_VARIABLE, _ADVERTISED_AUTHORITY)
    return tuple(dict.fromkeys(Path(path) for name in named if (path := variables.get(name, ""))))
