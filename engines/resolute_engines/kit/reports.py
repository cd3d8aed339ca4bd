"""The reports of containers that know their allocation and rank."""

from __future__ import annotations

from typing import Protocol

from resolute.contracts.run.exit_record import ExitRecord
from resolute_engines.protocol import ContainerReport, ContainerState


class RankedContainer(Protocol):
    """A container that knows whose it is."""

    @property
    def allocation_id(self) -> str:
        """Its allocation."""

    @property
    def rank(self) -> int:
        """Its place there."""


def report_of(
    container: RankedContainer, state: ContainerState, record: ExitRecord | None = None, *, reason: str = ""
) -> ContainerReport:
    """Returns the report that a container is in a state, ended with a record."""
    return ContainerReport(
        allocation_id=container.allocation_id,
        container_rank=container.rank,
        state=state,
        exit=record,
        reason=reason,
    )
