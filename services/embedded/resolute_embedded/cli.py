"""`resolute up`, `resolute status` and `resolute down`: the cluster of this machine."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click

from resolute.client.connection.home import Home
from resolute.contracts.distribution import install_command
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.open_files import raise_limit
from resolute.errors import FailedPreconditionError, ResoluteError, UnavailableError
from resolute_embedded.home.private_home import make_private, open_private
from resolute_embedded.home.room import full_home, full_home_errors
from resolute_embedded.home.state_directory import StateDirectory
from resolute_serving.observability.disks import full_disks

_SERVER_MODULES = ("sqlalchemy", "alembic", "pydantic", "jwt", "structlog", "numpy", "grpc_health")
_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.02
_ANNOUNCED = ("Resolute is up", "Resolute stands by", "HTTP:", "Sign-in:", "Other machines:", "Fingerprint:")
_NO_REASON = "it printed nothing; `resolute up` without --detach shows how it ends"
_COLORS = {"ok": "green", "warning": "yellow", "fault": "red"}


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True)

_take_over_option = click.option(
    "--take-over",
    is_flag=True,
    help="The original is gone for good: its checkpoints are this cluster's own.",
)


class _SlotCount(click.IntRange):
    """A number of slots, with an error for users who name a kind of slot."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reads the number."""
        if isinstance(value, str) and not value.lstrip("-").isdigit():
            self.fail(
                f"{value!r} is not a number; without --slots they are the GPUs, or else the cores.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


@click.command()
@click.option(
    "--slots",
    type=_SlotCount(min=1),
    help="Number of slots [the GPUs of this machine, or else its cores].",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port to listen on [the previous one, or else a free one]."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65535),
    envvar="RESOLUTE_METRICS_PORT",
    help="Port of the metrics endpoint for Prometheus: /metrics on loopback [none].",
)
@click.option(
    "--http-port",
    type=click.IntRange(1, 65535),
    envvar="RESOLUTE_HTTP_PORT",
    help="Port of HTTP, for browsers and clients without gRPC [the previous one, or else a free one].",
)
@click.option("--no-http", is_flag=True, envvar="RESOLUTE_NO_HTTP", help="Serve gRPC alone.")
@click.option(
    "--host", default="", help="Address at which other machines reach the cluster, such as 0.0.0.0."
)
@click.option(
    "--remote-port",
    type=click.IntRange(1, 65535),
    help="Port of gRPC for other machines [the previous one, or else a free one].",
)
@click.option("--tls-cert", type=_FILE, help="PEM file of the certificate for other machines.")
@click.option("--tls-key", type=_FILE, help="PEM file of its key.")
@click.option(
    "--tls-self-signed", is_flag=True, help="Make that certificate, and print its SHA-256 fingerprint."
)
@click.option("--insecure", is_flag=True, help="Let other machines reach the cluster without TLS.")
@click.option(
    "--standby",
    is_flag=True,
    help="Serve once no other machine serves the cluster; wants its databases in PostgreSQL.",
)
@click.option("--detach", is_flag=True, help="Run the cluster in the background; return when it is up.")
@click.option("--log-file", type=click.Path(path_type=Path), hidden=True)
def up(
    slots: int | None,
    port: int | None,
    metrics_port: int | None,
    http_port: int | None,
    no_http: bool,
    standby: bool,
    detach: bool,
    log_file: Path | None,
    **remote: Any,
) -> None:
    """Start a cluster on this machine, with its state under $RESOLUTE_HOME."""
    _check_installed()
    state = _state()
    options = {
        "slots": slots,
        "port": port,
        "metrics_port": metrics_port,
        "http_port": http_port,
        "no_http": no_http,
        **remote,
    }
    with full_home_errors(state.home.path):
        make_private(state)
        if detach:
            _start_detached(state, {**options, "standby": standby})
        else:
            _serve(state, options, standby=standby, log_file=log_file)


@click.command()
@click.option("--keep-trials", is_flag=True, help="Leave trials running; the next `resolute up` adopts them.")
def down(keep_trials: bool) -> None:
    """Stop the cluster of this machine; running trials checkpoint first and resume at the next start."""
    state = _state()
    pid = state.lock.holder()
    if pid is None:
        click.echo(f"no cluster runs in {state.home.path}")
        return
    process = ProcessIdentity.of(pid)
    number = signal.SIGTERM if keep_trials else signal.SIGINT
    if process is None or not process.send(number):
        raise FailedPreconditionError(
            f"{state.home.path} is served by a process that its file `lock` does not name; end it by hand"
        )
    _wait_until(lambda: not state.lock.is_held(), seconds=_STOP_SECONDS, what=f"process {pid} to stop")
    click.echo(f"the cluster in {state.home.path} is down")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Show the cluster of this machine and the use of its slots."""
    state = _state()
    endpoint = state.home.read_endpoint()
    held = state.lock.is_held()
    if endpoint is None or not held:
        what = "a process stands by, or starts," if held else "no cluster runs"
        shown = json.dumps({"running": False, "standby": held})
        click.echo(shown if as_json else f"{what} in {state.home.path}")
        raise SystemExit(1)
    from resolute_embedded.status_report import read_status, show_status

    report = read_status(endpoint)
    click.echo(json.dumps(report) if as_json else show_status(report))


@click.group()
def db() -> None:
    """Manage the databases of the services."""


@db.command("upgrade")
@click.option("--url", default="", help="PostgreSQL database of all services [the SQLite files in the home].")
def db_upgrade(url: str) -> None:
    """Upgrade the databases of all services to the newest schema."""
    _check_installed()
    from resolute_embedded.home.backups import upgrade_databases

    names = upgrade_databases(url, _state())
    click.echo(f"up to date: {', '.join(names)}")


@db.command("move")
@click.option("--url", required=True, help="Empty PostgreSQL database, such as postgresql://USER@HOST/NAME.")
def db_move(url: str) -> None:
    """Move the databases of the home from SQLite into PostgreSQL; no cluster may serve it meanwhile.

    It can be interrupted and repeated. From then on `resolute up` serves them from there.
    """
    _check_installed()
    from resolute_embedded.home.database_move import move

    state = _state()
    rows = move(state, url)
    for service, count in rows.items():
        click.echo(f"{service}: {count} rows")
    click.echo(f"the databases of {state.home.path} are in PostgreSQL; `resolute up` serves them from there")


@db.command("restored")
@click.option("--url", required=True, help="PostgreSQL database of all services, restored from a dump.")
@_take_over_option
def db_restored(url: str, take_over: bool) -> None:
    """Prepare a database that was restored from a dump, before services that run separately use it.

    For a home, `resolute adopt-copy` does it.
    """
    _check_installed()
    from resolute_embedded.home.backups import begin_restored

    begin_restored(url, take_over=take_over)
    click.echo(f"the services can be started{_kept(take_over)}")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
def backup(directory: Path) -> None:
    """Back up the cluster of this machine to DIRECTORY, even while it runs; checkpoints are not copied."""
    _check_installed()
    from resolute_embedded.home.backups import back_up

    back_up(_state(), directory)
    click.echo(f"{directory} holds the cluster; `resolute restore {directory}` makes a new home of it")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@_take_over_option
def restore(directory: Path, take_over: bool) -> None:
    """Restore the backup in DIRECTORY into a new home.

    Trials that ran when it was made continue as new runs, from their last checkpoints. The files of
    checkpoints in the backup are read and never removed, until `resolute take-over`.
    """
    _check_installed()
    from resolute_embedded.home.backups import restore as restore_home

    state = _state()
    restore_home(directory, state, take_over=take_over)
    click.echo(f"{state.home.path} holds the cluster; `resolute up` serves it{_kept(take_over)}")


@click.command("adopt-copy")
@click.option(
    "--url", default="", help="PostgreSQL database of the copy, restored from a dump [the one it has]."
)
@_take_over_option
def adopt_copy(url: str, take_over: bool) -> None:
    """Make a copied or moved home a cluster of its own, which leaves its original alone.

    Trials continue as new runs, from their last checkpoints. The files of checkpoints that it knows are
    read and never removed, until `resolute take-over`.
    """
    _check_installed()
    from resolute_embedded.home.backups import adopt_copy as adopt

    state = _state()
    adopt(state, take_over=take_over, url=url)
    click.echo(f"{state.home.path} is a separate cluster now; `resolute up` serves it{_kept(take_over)}")


@click.command("take-over")
@click.option("--url", default="", help="PostgreSQL database of all services [the SQLite files in the home].")
def take_over(url: str) -> None:
    """Let a restored or copied cluster remove the checkpoints of its original, which is gone for good."""
    _check_installed()
    from resolute_embedded.home.backups import take_over as take_over_home

    count = take_over_home(url, _state())
    click.echo(f"{count} inherited checkpoints are this cluster's own now")


@click.command("rotate-key")
@click.option("--drop-old", is_flag=True, help="Instead end all that the keys before the current one signed.")
@click.option("--now", is_flag=True, help="Drop them although running trials may still need them.")
def rotate_key(drop_old: bool, now: bool) -> None:
    """Sign tokens with a new key from now on, even while the cluster runs; tokens of old keys stay valid."""
    _check_installed()
    from resolute_embedded.home.key_rotation import rotate_or_drop

    click.echo(rotate_or_drop(_state().signing_key, drop=drop_old, at_once=now))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--nodes", is_flag=True, help="Also run a job of seconds on the nodes of Slurm and Ray.")
def doctor(as_json: bool, nodes: bool) -> None:
    """Diagnose problems of the cluster of this machine and suggest fixes.

    Exits with 1 if a problem keeps it from working.
    """
    _check_installed()
    from resolute_embedded.doctor import Status, run_checks

    faults = 0
    shown = []
    for finding in run_checks(_state(), nodes=nodes):
        faults += finding.status is Status.FAULT
        if as_json:
            values = asdict(finding)
            # The key in JSON is older than the name in the code.
            values["verdict"] = values.pop("status").value
            shown.append(values)
            continue
        mark = click.style(f"{finding.status.value:<8}", fg=_COLORS[finding.status.value])
        click.echo(f"{mark} {finding.subject}: {finding.detail}")
        if finding.remedy:
            click.echo(f"{'':<9}{finding.remedy}")
    if as_json:
        click.echo(json.dumps(shown))
    if faults:
        raise SystemExit(1)


def _kept(take_over: bool) -> str:
    """What a command adds about the checkpoints of the original."""
    return "" if take_over else "; it removes no checkpoint of its original until `resolute take-over`"


def _check_installed() -> None:
    missing = [name for name in _SERVER_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise FailedPreconditionError(
            f"the services need packages that are not installed ({', '.join(missing)}); "
            f"run `{install_command('server')}`"
        )


def _state() -> StateDirectory:
    return StateDirectory(Home.from_environment(os.environ))


def _serve(
    state: StateDirectory, options: Mapping[str, Any], *, standby: bool, log_file: Path | None
) -> None:
    # Looking for garbage, of which imports make none, would take a quarter of the start.
    gc.disable()
    # structlog loads it for tracebacks in color, fifty modules; the log is JSON.
    if "rich" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]
        importlib.import_module("structlog")
        del sys.modules["rich"]
    import asyncio

    from resolute_embedded.cluster import Options, serve
    from resolute_embedded.home.identity import require_original
    from resolute_embedded.home.turns import served_alone
    from resolute_embedded.network.remote_access import RemoteOptions
    from resolute_embedded.standby import stand_by
    from resolute_serving.observability.logs import configure_logs, log_file_bytes
    from resolute_serving.server.interpreter import put_calls_first

    put_calls_first()
    raise_limit(os.environ)
    configure_logs(
        level=os.environ.get("RESOLUTE_LOG_LEVEL", "WARNING"),
        service="embedded",
        file=log_file,
        file_bytes=log_file_bytes(os.environ),
    )
    lock = state.lock
    lock.acquire()
    try:
        require_original(state)
        state.remove_leftovers()
        if state.databases.are_moved:
            # A move may have been killed before it did.
            state.databases.set_files_aside()
        names = {field.name for field in fields(RemoteOptions)}
        remote = RemoteOptions(**{name: value for name, value in options.items() if name in names})
        others = {name: value for name, value in options.items() if name not in names}
        asked, ready = Options(**others, remote=remote), _announce(state)
        if standby:
            asyncio.run(stand_by(state, asked, waits=_announce_standby(state), ready=ready))
        else:
            with served_alone(state) as term:
                asyncio.run(serve(state, asked, ready=ready, term=term))
    finally:
        lock.release()


def _announce(state: StateDirectory) -> Callable[[str, int, Sequence[str]], None]:
    def announce(address: str, slots: int, lines: Sequence[str]) -> None:
        for line in lines:
            click.echo(line)
        click.echo(f"Resolute is up at {address} with {slots} slots; its state is in {state.home.path}")
        sys.stdout.flush()

    return announce


def _announce_standby(state: StateDirectory) -> Callable[[str], None]:
    def announce(active: str) -> None:
        click.echo(f"Resolute stands by in {state.home.path}; the cluster is served from {active}")
        sys.stdout.flush()

    return announce


def _start_detached(state: StateDirectory, options: Mapping[str, Any]) -> None:
    if state.lock.is_held():
        state.lock.acquire()  # raises the error that names the holder
    command = [sys.executable, "-m", "resolute_embedded", "--log-file", str(state.log)]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        command += [option] if value is True else [option, str(value)] if value else []
    if state.output.exists():
        state.output.replace(state.output.with_name(f"{state.output.name}.1"))
    with open(state.output, "wb", opener=open_private) as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "RESOLUTE_HOME": str(state.home.path)},
        )
    _wait_until(
        lambda: process.poll() is not None or _announced(state.output),
        seconds=_START_SECONDS,
        what="the cluster to start",
    )
    tail = state.output.read_bytes().decode(errors="replace").strip()
    if process.poll() is not None:
        # On a full disk the reason may have found no room either.
        reason = tail or (full_home(state.home.path) if full_disks([state.home.path]) else _NO_REASON)
        raise UnavailableError(f"the cluster did not start:\n{reason}")
    for line in tail.splitlines():
        if line.startswith(_ANNOUNCED):
            click.echo(line)


def _announced(output: Path) -> bool:
    lines = output.read_bytes()
    return b"Resolute is up" in lines or b"Resolute stands by" in lines


def _wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"waited {seconds:.0f} s for {what}; look into up.log and up.out in the home directory"
            )
        time.sleep(_POLL_SECONDS)


def run_up() -> None:
    """Runs `up` in this process: what a detached start executes."""
    try:
        up.main(standalone_mode=False)
    except ResoluteError as error:
        sys.exit(str(error))
