"""What every engine is told when it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.calls.tls import ClientTls


@dataclass(frozen=True, kw_only=True)
class EngineEnvironment:
    """What every engine is told of the cluster and of this machine."""

    cluster_id: str
    """UUID of the cluster: engines label with it what is the cluster's."""
    address: str
    """``host:port`` of the services, as this machine reaches them."""
    tls: ClientTls | None
    """Whom to trust there; None for a plain port."""
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
