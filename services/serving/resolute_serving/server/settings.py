"""Settings of a service that runs alone, read once from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.calls.tls import ClientTls
from resolute.errors import InvalidArgumentError
from resolute_serving.auth.forwarded_peers import KEY_VARIABLE, ForwardedPeers
from resolute_serving.bounds.streams import StreamLimits
from resolute_serving.database.urls import sqlite_url
from resolute_serving.server.client_versions import oldest_client
from resolute_serving.tls import INSECURE_VARIABLE, ServerTls, client_tls, server_tls

SERVICE_NAMES = ("experiments", "searcher", "metrics", "logs", "checkpoints", "preemption")
"""The services whose addresses may be set."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a deployed service. Each field names its environment variable."""

    host: str
    """RESOLUTE_HOST: address to bind (127.0.0.1)."""
    port: int
    """RESOLUTE_PORT: port to bind (0 picks a free one)."""
    runs_port: int | None
    """RESOLUTE_RUNS_PORT: port for the calls of runs and of other services (none), which wait at ``port``
    behind those of people."""
    database_url: str
    """RESOLUTE_DATABASE_URL: SQLAlchemy URL (an SQLite file in the data directory)."""
    data_directory: Path
    """RESOLUTE_DATA_DIR: where files of the service lie (./resolute-data)."""
    cluster_id: str
    """RESOLUTE_CLUSTER_ID: UUID of the cluster; required."""
    service_token_file: Path | None
    """RESOLUTE_SERVICE_TOKEN_FILE: holds the token by which this service calls the others."""
    signing_key_file: Path | None
    """RESOLUTE_SIGNING_KEY_FILE: the private key; for the experiments service alone."""
    peers: ForwardedPeers
    """RESOLUTE_GATEWAY_KEY: key by which a gateway tells services who called it (none)."""
    addresses: Mapping[str, str]
    """RESOLUTE_<SERVICE>_ADDRESS: host:port of the other services."""
    reflection: bool
    """RESOLUTE_REFLECTION: 1 lets tools ask for the contract (0)."""
    log_level: str
    """RESOLUTE_LOG_LEVEL: least severity that is logged (INFO)."""
    oldest_client: str
    """RESOLUTE_OLDEST_CLIENT: oldest version of the SDK whose calls are accepted (0.1.0)."""
    metrics_port: int | None
    """RESOLUTE_METRICS_PORT: port that serves numbers for Prometheus (none)."""
    streams: StreamLimits
    """RESOLUTE_STREAMS, RESOLUTE_STREAMS_OF_ADDRESS and RESOLUTE_STREAMS_OF_USER: most open streams."""
    tls: ServerTls | None = None
    """RESOLUTE_TLS_CERT and RESOLUTE_TLS_KEY: PEM files of the server's certificate and key (none).
    RESOLUTE_TLS_CLIENT_CA: PEM file of who signs clients' certificates, without which none gets in (none)."""
    client_tls: ClientTls | None = None
    """RESOLUTE_TLS_CA: PEM file of who signs the certificates of the other services (none: plain ports)."""
    insecure: bool = False
    """RESOLUTE_INSECURE: 1 lets other machines reach a plain port (0)."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str], *, service: str) -> Settings:
        """Reads and checks the settings of ``service``.

        Raises:
            InvalidArgumentError: A variable is missing or wrong; the message names it.
        """
        data = Path(variables.get("RESOLUTE_DATA_DIR", "resolute-data")).absolute()
        cluster_id = variables.get("RESOLUTE_CLUSTER_ID", "")
        if not cluster_id:
            raise InvalidArgumentError(
                "RESOLUTE_CLUSTER_ID is not set; give every service of a cluster the same UUID"
            )
        return cls(
            host=variables.get("RESOLUTE_HOST", "127.0.0.1"),
            port=_port(variables, "RESOLUTE_PORT") or 0,
            runs_port=_port(variables, "RESOLUTE_RUNS_PORT"),
            database_url=variables.get("RESOLUTE_DATABASE_URL") or sqlite_url(data / f"{service}.sqlite"),
            data_directory=data,
            cluster_id=cluster_id,
            service_token_file=_path(variables.get("RESOLUTE_SERVICE_TOKEN_FILE")),
            signing_key_file=_path(variables.get("RESOLUTE_SIGNING_KEY_FILE")),
            peers=ForwardedPeers(variables.get(KEY_VARIABLE, "")),
            addresses={
                name: variables[f"RESOLUTE_{name.upper()}_ADDRESS"]
                for name in SERVICE_NAMES
                if variables.get(f"RESOLUTE_{name.upper()}_ADDRESS")
            },
            reflection=variables.get("RESOLUTE_REFLECTION", "0") == "1",
            log_level=variables.get("RESOLUTE_LOG_LEVEL", "INFO"),
            oldest_client=oldest_client(variables),
            metrics_port=_port(variables, "RESOLUTE_METRICS_PORT"),
            streams=StreamLimits.from_environment(variables),
            tls=server_tls(variables),
            client_tls=client_tls(variables),
            insecure=variables.get(INSECURE_VARIABLE, "0") == "1",
        )


def _port(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "")
    if not text:
        return None
    if not text.isdigit() or int(text) > 65535:
        raise InvalidArgumentError(f"{name} is {text!r}; it must be a number from 0 to 65535")
    return int(text)


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
