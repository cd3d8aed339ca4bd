"""Real services on a real server for wire tests: migrated databases, signed tokens, loopback."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.databases.prepared import migrate
from support.ports import free_port
from support.static_keys import StaticKeys

from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_serving.auth.forwarded_peers import ForwardedPeers
from resolute_serving.auth.refusals import Refusals
from resolute_serving.auth.service_tokens import ServiceTokens
from resolute_serving.auth.tokens import TokenSigner, TokenVerifier
from resolute_serving.context import Role, ServiceAccount, TrialRun, User
from resolute_serving.database.engine import create_engine
from resolute_serving.server.calls import Calls
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.client_versions import OLDEST_SDK
from resolute_serving.server.grpc_server import Server, ServerSettings
from resolute_serving.server.service import Blueprint, Environment, Service
from resolute_serving.tls import ServerTls

TOKEN_SECONDS = 3600.0


@dataclass(frozen=True)
class Running:
    """Services that listen."""

    address: str
    """``host:port``."""
    signer: TokenSigner
    """Issues tokens that the services accept."""
    services: Sequence[Service]
    """The services, in the order of their blueprints."""
    tls: ClientTls | None = None
    """How the services are reached."""
    calls: Calls | None = None
    """What they answer; None where they run in another process."""

    def user_token(self, *, role: Role = Role.ADMIN, name: str = "ada") -> str:
        """A token of a person."""
        return self.signer.user(User(name=name, role=role), ttl=TOKEN_SECONDS)

    def service_token(self, name: str = "experiments") -> str:
        """A token of another service."""
        return self.signer.service(ServiceAccount(name=name), ttl=TOKEN_SECONDS)

    def trial_token(self, run: TrialRun) -> str:
        """A token of a run."""
        return self.signer.trial(run, ttl=TOKEN_SECONDS)

    def channel(self, token: str) -> grpc.aio.Channel:
        """An asyncio channel whose calls carry ``token`` and raise typed errors; close it after use."""
        return self.peers(lambda: token).channel("*")

    def peers(self, token: Callable[[], str], *, local: bool = False) -> Peers:
        """The services, as another service reaches them, in this process or not; to be closed after use."""
        peers = Peers({"*": self.address}, token=token, tls=self.tls)
        if local:
            assert self.calls is not None
            peers.serve_here(self.calls)
        return peers


@dataclass(frozen=True, kw_only=True)
class _OpenEnvironment(Environment):
    """An environment in which checkpoints may lie below any directory that a test likes."""

    checkpoints_root: Path
    """Below which directory scripts may place checkpoints."""
    starts_ahead: bool = False
    """Few tests have runs, and the imports of a supervisor parent cost more than most tests."""

    @property
    def checkpoints_directory(self) -> Path:
        return self.checkpoints_root


@asynccontextmanager
async def serving(
    blueprints: Sequence[Blueprint],
    tmp_path: Path,
    *,
    clock: Clock = SYSTEM_CLOCK,
    addresses: Mapping[str, str] | None = None,
    key: Ed25519PrivateKey | None = None,
    port: int = 0,
    oldest_client: str = OLDEST_SDK,
    token_clock: Clock = SYSTEM_CLOCK,
    cluster: str = "resolute:test",
    tls: ServerTls | None = None,
    peer_tls: ClientTls | None = None,
    gateway_key: str = "",
    database_url: str = "",
    checkpoints_root: Path = Path("/"),
    role_seconds: float = 30.0,
) -> AsyncIterator[Running]:
    """Serves blueprints on one port of loopback until the block ends.

    Args:
        blueprints: What to serve.
        tmp_path: Where databases and data lie; a second call on it finds what the first one left.
        clock: The services' clock.
        addresses: Services that run elsewhere, by name; the others are looked for on this server.
        key: Signs tokens; a fresh one by default.
        port: Port to listen on, for servers that come back; zero for a free one.
        oldest_client: Oldest version of the SDK whose calls are accepted.
        token_clock: Tells when tokens expire.
        cluster: Tells clusters apart: its UUID follows from this.
        tls: The certificate of the port; None for a plain one.
        peer_tls: How the services reach each other.
        gateway_key: By which a gateway may say who called it; empty for none.
        database_url: Database of a single blueprint; empty for an SQLite file of each.
        checkpoints_root: Below which directory scripts may place checkpoints.
        role_seconds: How long services remember roles.
    """
    cluster_id = str(uuid.uuid5(uuid.NAMESPACE_URL, cluster))
    signer = TokenSigner(key or Ed25519PrivateKey.generate(), cluster_id=cluster_id, clock=token_clock)
    settings = ServerSettings(port=port or free_port(), grace=0.5, oldest_client=oldest_client, tls=tls)
    token = ServiceTokens(signer, ServiceAccount(name="embedded"), clock=token_clock)
    address = f"127.0.0.1:{settings.port}"
    peers = Peers({"*": address, **(addresses or {})}, token=token, tls=peer_tls)
    given = _OpenEnvironment(
        peers=peers,
        cluster_id=cluster_id,
        clock=clock,
        refusals=Refusals(clock),
        data_directory=tmp_path / "data",
        database_url=database_url,
        checkpoints_root=checkpoints_root,
        role_seconds=role_seconds,
    )
    services = [_create(blueprint, given, tmp_path) for blueprint in blueprints]
    keys = StaticKeys({signer.key_id: signer.public_key}, given.revoked)
    verifier = TokenVerifier(keys, cluster_id=cluster_id, clock=token_clock)
    forwarded = ForwardedPeers(gateway_key)
    server = Server(services, verifier=verifier, settings=settings, refusals=given.refusals, peers=forwarded)
    peers.serve_here(server.calls)
    await server.start()
    try:
        yield Running(address=address, signer=signer, services=services, calls=server.calls, tls=peer_tls)
    finally:
        await server.stop()
        await peers.close()


def _create(blueprint: Blueprint, common: Environment, tmp_path: Path) -> Service:
    url = common.database_url or f"sqlite:///{tmp_path / blueprint.name}.sqlite"
    if blueprint.package:
        _migrate(blueprint, url)
    environment = replace(
        common,
        database_url=url if blueprint.package else "",
        data_directory=common.data_directory / blueprint.name,
    )
    return blueprint.create(environment)


def _migrate(blueprint: Blueprint, url: str) -> None:
    engine = create_engine(url, name=blueprint.name, writes=True)
    try:
        migrate(engine, package=blueprint.package, schema=blueprint.name)
    finally:
        engine.dispose()
