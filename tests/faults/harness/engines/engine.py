"""What the harness wants of an engine: how a cluster names it, who can be killed, what must not be left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from faults.harness.cluster_processes import Role

Kill: TypeAlias = Callable[[], bool]
"""Kills something, sees to it that what does not come back by itself does, and tells whether it was there."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a cluster is, and what its trials read and write on this machine."""

    home: Path
    """The cluster's home."""
    evidence: Path
    """Journals and turns of the trials."""
    checkpoints: Path
    """Checkpoints, where the engine's trials cannot have the home's."""
    port: int
    """Port of the services for other machines; theirs over restarts."""

    def prepare(self) -> None:
        """Makes the directories; in an engine's containers trials are other users."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for directory in (self.evidence, self.checkpoints):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o777)

    @property
    def certificate(self) -> Path:
        """Certificate that the services make for that port."""
        return self.home / "data/tls/certificate.pem"


class FaultEngine(Protocol):
    """An engine under attack."""

    @property
    def host(self) -> str:
        """Address at which trials reach the services; empty where they are processes of this machine."""

    @property
    def variables(self) -> Mapping[str, str]:
        """More variables for the control plane."""

    @property
    def fallen(self) -> Collection[str]:
        """Allocations that fell for good with their node, spools included: what was not sent is lost."""

    def settings(self, place: Place) -> Mapping[str, Any]:
        """The cluster's ``resource-pools.yaml``; empty for a cluster without settings."""

    def config(self, place: Place) -> Mapping[str, Any]:
        """What a config needs so that trials see the evidence and store checkpoints."""

    def victims(self, home: Path) -> Mapping[Role, Sequence[Kill]]:
        """Who can be killed now, beside the processes that belong to the home."""

    def left_over(self, home: Path) -> Sequence[str]:
        """Names what the engine still has of the home's cluster."""


@runtime_checkable
class InterruptibleEngine(FaultEngine, Protocol):
    """An engine whose trials go on while its daemon is away.

    Neither is ``ray``, which ends its nodes a minute after their head, nor ``local``, whose daemon is the
    control plane.
    """

    def away(self) -> AbstractContextManager[None]:
        """Takes the daemon away until the block ends; it is back, or about to be, after that."""
