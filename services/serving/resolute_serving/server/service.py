"""The interface of a service for its host process: ``python -m`` for one alone, or one process for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import grpc

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_serving.auth.access_lookup import AccessLookup, RemoteAccessLookup
from resolute_serving.auth.refusals import Refusals
from resolute_serving.auth.tokens import RevokedTokens
from resolute_serving.database.engine import Database
from resolute_serving.database.fence import Fence
from resolute_serving.server.channels.peers import Peers


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The parameters of a service from its host process."""

    database_url: str
    """URL of its database; empty for services that own none."""
    data_directory: Path
    """Where it may keep files of its own."""
    fence: Fence | None = None
    """What writes to it pass where another process may take over; None where none can."""
    peers: Peers
    """The other services."""
    signing_key_file: Path | None = None
    """Private key of the cluster, for the experiments service; None for ``signing-key.pem`` of its files."""
    cluster_id: str
    """UUID of the cluster."""
    home: Path | None = None
    """Directory of the whole cluster; None where each service has directories of its own."""
    clock: Clock = SYSTEM_CLOCK
    """Returns the time."""
    revoked: RevokedTokens = field(default_factory=RevokedTokens)
    """What the verifier of this process reads, and the experiments service writes."""
    refusals: Refusals = field(default_factory=lambda: Refusals(SYSTEM_CLOCK))
    """What the server of this process refused, for the audit log."""
    role_seconds: float = 30.0
    """Seconds after which a role that was taken away has no effect any more."""
    starts_ahead: bool = True
    """Whether processes that later work needs are started with the service, not with the first such work."""

    @cached_property
    def access_lookup(self) -> AccessLookup:
        """Knows the roles of users and the workspaces of experiments, by asking the experiments service."""
        return RemoteAccessLookup(
            lambda: self.peers.channel("experiments"), clock=self.clock, seconds=self.role_seconds
        )

    @property
    def signing_key(self) -> Path:
        """File of the private key that signs tokens."""
        return self.signing_key_file or self.data_directory / "signing-key.pem"

    @property
    def private_directory(self) -> Path:
        """Directory of files that only the cluster reads and writes."""
        return self.data_directory if self.home is None else self.home

    @property
    def checkpoints_directory(self) -> Path:
        """Directory of checkpoints that no config places elsewhere."""
        return self.private_directory / "checkpoints"

    def open_database(self, name: str) -> Database:
        """Opens the database of the service ``name``."""
        return Database(self.database_url, name=name, fence=self.fence)


class Service(Protocol):
    """A service of the platform, created by ``create(environment)`` of its package."""

    name: str
    """Short name, such as ``metrics``."""
    grpc_names: Sequence[str]
    """Full names of its gRPC services, for health and reflection."""

    @property
    def access_lookup(self) -> AccessLookup:
        """Knows the roles of users, and the workspaces of what calls of this service name."""

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handlers to a server that has not started."""

    async def start(self) -> None:
        """Starts its background work. Called once, after the server listens."""

    async def stop(self) -> None:
        """Ends its watches and background work, closes its database. Called once, before the server stops."""


@dataclass(frozen=True)
class Blueprint:
    """The function that creates a service, and the place of its migrations."""

    name: str
    """Short name; also its schema on PostgreSQL."""
    package: str
    """Import package that holds ``migrations``; empty when it owns no database."""
    create: Callable[[Environment], Service]
    """Makes the service; the database must have its newest schema already."""
