"""What every engine is told when it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.calls.tls import ClientTls
from resolute_serving.tls import is_loopback


@dataclass(frozen=True, kw_only=True)
class EngineEnvironment:
    """What every engine is told of the cluster and of this machine."""

    cluster_id: str
    """UUID of the cluster: engines label with it what is the cluster's."""
    address: str
    """``host:port`` of the services, as this machine reaches them."""
    tls: ClientTls | None
    """Whom to trust there; None for a plain port."""
    remote_tls: ClientTls | None = None
    """Whom to trust where other machines reach the services; None for the same as on this one."""
    outage_timeout: float
    """Seconds that a run continues while no service answers."""
    log_wait: float
    """Seconds that the end of a run waits for the logs service to take the run's last lines."""
    runs_directory: Path
    """Where run directories of this machine lie."""
    slots: int | None
    """Slots of this machine; None to count its GPUs, or else its cores."""
    nodes: int
    """As how many machines this one appears."""

    def trust(self, address: str, certificate: str = "") -> dict[str, str] | None:
        """Says whom trials trust at the services, as launch orders have it; None for a plain port.

        Args:
            address: ``host:port`` that the settings of an engine give trials; empty for that of this machine.
            certificate: File with the certificates to trust there, as PEM; empty for those of the services.

        Raises:
            FailedPreconditionError: The certificate cannot be read.
        """
        if certificate:
            return ClientTls.read(Path(certificate)).to_json()
        # What runs on this machine keeps to the port of its loopback, which may be a plain one.
        leads_here = not address or is_loopback(address.rpartition(":")[0])
        tls = self.tls if leads_here or self.remote_tls is None else self.remote_tls
        return None if tls is None else tls.to_json()
