"""What serves Docker's API, as the engine's tests want it."""

from __future__ import annotations

from typing import Protocol


class ContainerService(Protocol):
    """Podman or Docker while it serves."""

    @property
    def apart(self) -> tuple[str, ...]:
        """Options by which a network is kept apart from the others."""

    @property
    def host(self) -> str:
        """Address of this machine that containers reach, and nobody else does."""

    @property
    def url(self) -> str:
        """Where it serves."""

    def run(self, *arguments: str, check: bool = True) -> str:
        """Runs a command of its own; returns its standard output."""
