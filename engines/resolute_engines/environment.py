"""The parameters that every engine gets at its creation, and those that it passes to supervisors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from resolute.contracts.calls.tls import ClientTls, is_loopback
from resolute.contracts.run.launch_order import LaunchOrder
from resolute_engines.protocol import AllocationSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorTerms:
    """The address of the services for the supervisors of an engine, and the outage timeout."""

    address: str = ""
    """``host:port`` of the services; empty for that of each allocation."""
    tls: Mapping[str, str] | None = None
    """Whom to trust there, as ``ClientTls.to_json`` has it; None for a plain port."""
    http_url: str = ""
    """URL of the HTTP gateway; empty if there is none that they reach."""
    outage_timeout: float = 3600.0
    """Seconds that a run continues while no service answers."""
    log_wait: float = 10.0
    """Seconds that the end of a run waits for the logs service to take the run's last lines."""

    def order(self, spec: AllocationSpec, rank: int, *, slot_kind: str) -> LaunchOrder:
        """The launch order of one container of an allocation.

        It names no GPUs, and the trial's interpreter is that of its supervisor. Engines replace what differs.

        Args:
            spec: The allocation.
            rank: Its container, from 0.
            slot_kind: ``cpu`` or ``gpu``, if it has slots.
        """
        slots = tuple(spec.placements[rank])
        return LaunchOrder(
            allocation_id=spec.allocation_id,
            container_rank=rank,
            master=self.address or spec.address,
            http_url=self.http_url,
            tls=self.tls,
            token=spec.token,
            slot_ids=slots,
            slot_kind=slot_kind if slots else "cpu",
            python="",
            lease_patience_seconds=self.outage_timeout,
            log_wait_seconds=self.log_wait,
        )


@dataclass(frozen=True, kw_only=True)
class EngineEnvironment:
    """The parameters of every engine: facts about the cluster and this machine."""

    cluster_id: str
    """UUID of the cluster: engines label with it what is the cluster's."""
    address: str
    """``host:port`` of the services, as this machine reaches them."""
    tls: ClientTls | None
    """Whom to trust there; None for a plain port."""
    remote_tls: ClientTls | None = None
    """Whom to trust where other machines reach the services; None for the same as on this one."""
    http_url: str = ""
    """URL of the HTTP gateway; empty if there is none."""
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
    starts_ahead: bool = True
    """Whether processes that the first run needs are started before there is a run."""

    def terms(self, address: str = "", certificate: str = "") -> SupervisorTerms:
        """What the supervisors of an engine are given, the certificate of the services included.

        Args:
            address: ``host:port`` that the settings of an engine give trials; empty for that of this machine.
            certificate: File with the certificates to trust there, as PEM; empty for those of the services.

        Raises:
            FailedPreconditionError: The certificate cannot be read.
        """
        tls = self._trust(address, certificate)
        return SupervisorTerms(
            address=address,
            tls=tls,
            # A certificate that the trial does not know would be refused.
            http_url="" if tls is None and self.http_url.startswith("https:") else self._url_at(address),
            outage_timeout=self.outage_timeout,
            log_wait=self.log_wait,
        )

    def _trust(self, address: str, certificate: str) -> dict[str, str] | None:
        if certificate:
            return ClientTls.read(Path(certificate)).to_json()
        # What runs on this machine keeps to the port of its loopback, which may be a plain one.
        leads_here = not address or is_loopback(address.rpartition(":")[0])
        tls = self.tls if leads_here or self.remote_tls is None else self.remote_tls
        return None if tls is None else tls.to_json()

    def _url_at(self, address: str) -> str:
        """The URL of the gateway; a loopback one with the host at which others reach the services."""
        parts = urlsplit(self.http_url)
        host = address.rpartition(":")[0]
        if not host or not parts.hostname or not is_loopback(parts.hostname):
            return self.http_url
        return parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}").geturl()
