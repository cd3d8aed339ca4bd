"""Runs all services in one process, on one port of the loopback interface."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import structlog

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_embedded.blueprints import SUPPORTING_SERVICES
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.network.http import ClusterHttp
from resolute_embedded.network.port import choose_port, choose_runs_port
from resolute_embedded.network.remote_access import RemoteAccess, RemoteOptions
from resolute_engines.settings import resources_of
from resolute_experiments.accounts.openid.settings import OpenIdSettings
from resolute_experiments.admission.config_reader import load_models
from resolute_experiments.alerts.settings import AlertSettings
from resolute_experiments.blueprint import BLUEPRINT as EXPERIMENTS
from resolute_experiments.service import ExperimentsService
from resolute_experiments.settings import ExperimentsSettings
from resolute_serving.auth.forwarded_peers import ForwardedPeers
from resolute_serving.auth.policy.service_accounts import EMBEDDED
from resolute_serving.auth.refusals import Refusals
from resolute_serving.auth.service_tokens import ServiceTokens
from resolute_serving.auth.signing_keys import KeyFile
from resolute_serving.auth.tokens import OwnKeys, RevokedTokens, TokenSigner, TokenVerifier
from resolute_serving.bounds.streams import StreamLimits
from resolute_serving.context import ServiceAccount
from resolute_serving.database.leadership import Term
from resolute_serving.sealing import SealingKey
from resolute_serving.server.bootstrap import upgrade
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.client_versions import oldest_client
from resolute_serving.server.grpc_server import Server, ServerSettings
from resolute_serving.server.service import Blueprint, Environment, Service
from resolute_serving.tls import Listener

_DRAIN_SECONDS = 30.0
_ROLE_SECONDS = 1.0
"""How long a role that was taken away may still have effect: asking costs little within one process."""

_log = structlog.get_logger("cluster")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `resolute up`."""

    slots: int | None = None
    """Slots of this machine; None to count its GPUs, or else its cores."""
    port: int | None = None
    """Port to listen on; None for the last one, or else a free one."""
    metrics_port: int | None = None
    """Port that serves numbers for Prometheus; None for none."""
    http_port: int | None = None
    """Port of the HTTP gateway; None for the last one, or else a free one."""
    no_http: bool = False
    """Whether there is no HTTP gateway."""
    remote: RemoteOptions = field(default_factory=RemoteOptions)
    """How other machines reach the cluster."""


Ready = Callable[[str, int, Sequence[str]], None]
"""Called with the address, the number of slots, and more lines for people."""


async def serve(state: StateDirectory, options: Options, *, ready: Ready, term: Term | None = None) -> None:
    """Serves the cluster of a home until a signal ends it.

    SIGTERM ends this process alone: trials go on and the next start adopts them. SIGINT, which is also what
    `resolute down` sends, first asks the trials to checkpoint and exit.

    Args:
        state: The home; its lock must be held.
        options: What was asked for.
        ready: Called once everything is up.
        term: The time in which this process serves a PostgreSQL database; None with SQLite files.

    Raises:
        UnavailableError: The port is taken, or trials still look for the services at another that is.
    """
    with ExitStack() as held:
        await _serve(state, options, held, ready=ready, term=term)


async def _serve(
    state: StateDirectory, options: Options, held: ExitStack, *, ready: Ready, term: Term | None
) -> None:
    cluster_id = state.cluster_id.get()
    port, runs_port = _choose_ports(state, options, held)
    address = f"127.0.0.1:{port}"
    remote = RemoteAccess.prepare(state, options.remote, held=held)
    keys = KeyFile(state.signing_key)
    signer = TokenSigner(keys, cluster_id=cluster_id, clock=SYSTEM_CLOCK)
    peers = Peers({"*": address}, token=ServiceTokens(signer, ServiceAccount(EMBEDDED), clock=SYSTEM_CLOCK))
    revoked, refusals = RevokedTokens(), Refusals(SYSTEM_CLOCK)
    environment = replace(
        _environment(state, EXPERIMENTS, peers=peers, cluster_id=cluster_id, term=term),
        revoked=revoked,
        refusals=refusals,
    )
    forwarded = ForwardedPeers(secrets.token_hex(32))
    http = ClusterHttp.open(
        state,
        cluster_id=cluster_id,
        address=address,
        port=options.http_port,
        off=options.no_http,
        peers=forwarded,
        serves=(lambda: True) if term is None else term.is_held,
        remote=remote,
    )
    runs = f"127.0.0.1:{runs_port}"
    experiments = _experiments(state, options, environment, address=runs, remote=remote, http_url=http.url)
    others = [
        _create(blueprint, state, peers=peers, cluster_id=cluster_id, term=term)
        for blueprint in SUPPORTING_SERVICES
    ]
    if term is not None:
        await _take_over_runs(experiments, term)
    verifier = TokenVerifier(OwnKeys(keys, revoked), cluster_id=cluster_id, clock=SYSTEM_CLOCK)
    server = Server(
        [*others, experiments],
        verifier=verifier,
        peers=forwarded,
        refusals=refusals,
        settings=_server_settings(options, port=port, runs_port=runs_port, remote=remote),
    )
    peers.serve_here(server.calls)
    await server.start()
    held.close()
    http.start()
    lines = await _announce(state, experiments, http, remote, cluster_id=cluster_id, address=address)
    ready(address, experiments.slot_count, lines)
    # Not before: a start takes a fifth longer with them. Who submits at once waits for what is left of it.
    loading = asyncio.create_task(asyncio.to_thread(load_models))
    if await _shutdown_signal() is signal.SIGINT:
        await experiments.drain(timeout=_DRAIN_SECONDS)
    await http.stop()
    await server.stop()
    await peers.close()
    await asyncio.gather(loading, return_exceptions=True)
    state.home.endpoint_file.unlink(missing_ok=True)


def _choose_ports(state: StateDirectory, options: Options, held: ExitStack) -> tuple[int, int]:
    """The port of people, and that of runs."""
    port = choose_port(state, held, asked=options.port)
    runs_port = choose_runs_port(state, held, abandon=options.port is not None, taken=port)
    # Before any run is launched, which looks there for the services of every later start.
    state.ports.runs.write(runs_port)
    return port, runs_port


def _server_settings(
    options: Options, *, port: int, runs_port: int, remote: RemoteAccess | None
) -> ServerSettings:
    return ServerSettings(
        port=port,
        runs=Listener(port=runs_port),
        second=None if remote is None else remote.listener,
        metrics_port=options.metrics_port,
        oldest_client=oldest_client(os.environ),
        streams=StreamLimits.from_environment(os.environ),
    )


async def _take_over_runs(experiments: ExperimentsService, term: Term) -> None:
    if term.runs_are_elsewhere:
        await experiments.lose_runs_of_this_machine()
    await asyncio.to_thread(term.note_runs)


def _environment(
    state: StateDirectory, blueprint: Blueprint, *, peers: Peers, cluster_id: str, term: Term | None
) -> Environment:
    return Environment(
        database_url=state.databases.url(blueprint.name),
        fence=None if term is None else term.fence,
        data_directory=state.data,
        home=state.home.path,
        peers=peers,
        cluster_id=cluster_id,
        role_seconds=_ROLE_SECONDS,
    )


def _create(
    blueprint: Blueprint, state: StateDirectory, *, peers: Peers, cluster_id: str, term: Term | None
) -> Service:
    upgrade(blueprint, state.databases.url(blueprint.name))
    return blueprint.create(_environment(state, blueprint, peers=peers, cluster_id=cluster_id, term=term))


def _experiments(
    state: StateDirectory,
    options: Options,
    environment: Environment,
    *,
    address: str,
    remote: RemoteAccess | None,
    http_url: str,
) -> ExperimentsService:
    upgrade(EXPERIMENTS, state.databases.url(EXPERIMENTS.name))
    settings = ExperimentsSettings(
        address=address,
        remote_tls=None if remote is None else remote.trusted,
        http_url=http_url,
        shared=remote is not None,
        certificates=() if remote is None else remote.certificates,
        runs_directory=state.runs,
        slots=options.slots,
        nodes=int(os.environ.get("RESOLUTE_LOCAL_NODES") or 1),
        log_wait=float(os.environ.get("RESOLUTE_LOG_WAIT") or 10),
        openid=OpenIdSettings.from_environment(os.environ),
        alerts=AlertSettings.from_environment(os.environ),
        secrets_key=SealingKey.from_environment(os.environ),
        resources=resources_of(os.environ, state.home.path),
        cluster_defaults={"checkpoint_storage": {"type": "shared_fs", "host_path": str(state.checkpoints)}},
    )
    return ExperimentsService(environment, settings)


async def _announce(
    state: StateDirectory,
    experiments: ExperimentsService,
    http: ClusterHttp,
    remote: RemoteAccess | None,
    *,
    cluster_id: str,
    address: str,
) -> list[str]:
    """Writes where the cluster is and its operator's token into the home; returns lines for people."""
    token = await experiments.operator_token(description=f"operator, in {state.home.token_file}")
    state.write_endpoint(
        address=address, http_url=http.url, page=http.has_page, cluster_id=cluster_id, token=token
    )
    lines = [*http.announcement]
    if http.url and http.has_page and token:
        link = f"{http.url}/sign-in?code={await experiments.operator_sign_in_code()}"
        lines.append(f"Sign-in: {link} signs a browser in once, within ten minutes")
    if remote is not None:
        state.ports.remote.write(remote.listener.port)
        lines.extend(remote.announcement)
    return lines


async def _shutdown_signal() -> signal.Signals:
    received: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

    def note(number: signal.Signals) -> None:
        if not received.done():
            received.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, note, number)
    return await received
