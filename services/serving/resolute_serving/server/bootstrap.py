"""Runs one service alone: ``python -m resolute_<service>`` calls this."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.run.open_files import raise_limit
from resolute.contracts.tasks import end_tasks
from resolute.errors import ResoluteError
from resolute_serving.auth.keys import FetchedKeys
from resolute_serving.auth.service_tokens import ServiceTokens
from resolute_serving.auth.signing_keys import KeyFile
from resolute_serving.auth.tokens import KeySource, OwnKeys, RevokedTokens, TokenSigner, TokenVerifier
from resolute_serving.context import ServiceAccount
from resolute_serving.database import migrations
from resolute_serving.database.engine import create_engine
from resolute_serving.observability.logs import configure_logs
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.grpc_server import Server, ServerSettings
from resolute_serving.server.interpreter import put_calls_first
from resolute_serving.server.refusal_reports import RefusalReports
from resolute_serving.server.service import Blueprint, Environment
from resolute_serving.server.settings import Settings
from resolute_serving.server.token_renewal import TokenFile, TokenRenewal
from resolute_serving.tls import Listener


def main(blueprint: Blueprint) -> None:
    """Serves until SIGTERM or SIGINT; ``--upgrade`` brings the database up to date instead.

    Args:
        blueprint: The service.
    """
    parser = argparse.ArgumentParser(prog=f"python -m resolute_{blueprint.name}")
    parser.add_argument("--upgrade", action="store_true", help="migrate the database and exit")
    arguments = parser.parse_args()
    try:
        settings = Settings.from_environment(os.environ, service=blueprint.name)
        configure_logs(level=settings.log_level, service=blueprint.name)
        raise_limit(os.environ)
        put_calls_first()
        if arguments.upgrade:
            upgrade(blueprint, settings.database_url)
        else:
            asyncio.run(serve(blueprint, settings))
    except ResoluteError as error:
        sys.exit(f"resolute_{blueprint.name}: {error}")


def upgrade(blueprint: Blueprint, database_url: str) -> None:
    """Brings the database of a service to its newest schema."""
    if not blueprint.package:
        return
    engine = create_engine(database_url, name=blueprint.name, writes=True)
    try:
        migrations.upgrade(engine, package=blueprint.package, schema=blueprint.name)
    finally:
        engine.dispose()


async def serve(blueprint: Blueprint, settings: Settings) -> None:
    """Serves one service until a signal ends it, then stops gracefully."""
    if blueprint.package:
        engine = create_engine(settings.database_url, name=blueprint.name, writes=True)
        migrations.check(engine, package=blueprint.package)
        engine.dispose()
    peers = Peers(settings.addresses, token=_service_token(blueprint.name, settings), tls=settings.client_tls)
    revoked = RevokedTokens()
    environment = Environment(
        database_url=settings.database_url,
        data_directory=settings.data_directory,
        peers=peers,
        signing_key_file=settings.signing_key_file,
        cluster_id=settings.cluster_id,
        revoked=revoked,
    )
    verifier = TokenVerifier(
        _key_source(settings, revoked), cluster_id=settings.cluster_id, clock=SYSTEM_CLOCK
    )
    server = Server(
        [blueprint.create(environment)],
        verifier=verifier,
        refusals=environment.refusals,
        peers=settings.peers,
        settings=_server_settings(settings),
    )
    ended = shutdown_requested()
    await server.start()
    sys.stdout.write(f"{blueprint.name} listens on {settings.host}:{server.port}\n")
    sys.stdout.flush()
    background = [
        asyncio.create_task(_report_refusals(blueprint, environment), name="refusal-reports"),
        asyncio.create_task(_renew_token(settings, peers), name="token-renewal"),
    ]
    await ended.wait()
    await end_tasks(*background)
    await server.stop()
    await peers.close()


def _server_settings(settings: Settings) -> ServerSettings:
    runs = settings.runs_port
    return ServerSettings(
        host=settings.host,
        port=settings.port,
        runs=None
        if runs is None
        else Listener(host=settings.host, port=runs, tls=settings.tls, insecure=settings.insecure),
        tls=settings.tls,
        insecure=settings.insecure,
        reflection=settings.reflection,
        metrics_port=settings.metrics_port,
        oldest_client=settings.oldest_client,
        streams=settings.streams,
    )


async def _report_refusals(blueprint: Blueprint, environment: Environment) -> None:
    if blueprint.name != "experiments":  # which writes them down itself
        await RefusalReports(environment.refusals, peers=environment.peers).run()


def shutdown_requested() -> asyncio.Event:
    """Returns an event that SIGTERM and SIGINT set from now on."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    return ended


def _service_token(service: str, settings: Settings) -> Callable[[], str]:
    """Returns what gives the token by which a service calls the others."""
    if settings.signing_key_file is None:
        return TokenFile(settings.service_token_file)
    signer = TokenSigner(
        KeyFile(settings.signing_key_file), cluster_id=settings.cluster_id, clock=SYSTEM_CLOCK
    )
    return ServiceTokens(signer, ServiceAccount(service), clock=SYSTEM_CLOCK)


async def _renew_token(settings: Settings, peers: Peers) -> None:
    if settings.signing_key_file is None and settings.service_token_file is not None:
        await TokenRenewal(settings.service_token_file, peers=peers).run()


def _key_source(settings: Settings, revoked: RevokedTokens) -> KeySource:
    if settings.signing_key_file is not None:
        return OwnKeys(KeyFile(settings.signing_key_file), revoked)
    address = settings.addresses.get("experiments")
    if not address:
        sys.exit("RESOLUTE_EXPERIMENTS_ADDRESS is not set; tokens are verified with that service's keys")
    return FetchedKeys(address, clock=SYSTEM_CLOCK, tls=settings.client_tls)
