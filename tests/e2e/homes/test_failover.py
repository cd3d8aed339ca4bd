"""The page on fail-over: its commands run on two homes, which are two machines to the cluster."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.databases.postgres import PostgresServer, postgres_server
from support.pages.commands import blocks_of
from support.ports import free_port
from support.processes.suspension import suspend
from support.waiting import wait_until

from resolute.contracts.run.lock import is_locked

__all__ = ["postgres_server"]
CONFIG = """
name: held
entrypoint: python3 train.py
max_restarts: 0
searcher: {name: single, metric: loss, max_length: 1}
"""
TRAIN = """
import os, pathlib, time
import resolute

info = resolute.get_cluster_info()
with resolute.core.init() as context:
    if not info.latest_checkpoint:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "state").write_text("of the first machine")
        print("has a checkpoint", flush=True)
        while True:
            time.sleep(0.1)
    with context.checkpoint.restore_path(info.latest_checkpoint) as path:
        print("continues", (path / "state").read_text(), flush=True)
    context.train.report_validation_metrics(steps_completed=2, metrics={"loss": 1.0})
    for operation in context.searcher.operations():
        operation.report_completed(1.0)
"""


@pytest.fixture
def machines(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[list[EmbeddedCluster]]:
    """Two homes; the first one has a cluster in PostgreSQL, which is not served."""
    shared = {"RESOLUTE_NO_HTTP": "", "RESOLUTE_CHECKPOINTS_ROOTS": str(tmp_path)}
    both = [EmbeddedCluster(tmp_path / name, environment=shared) for name in ("first", "second")]
    both[0].up()
    both[0].down()
    both[0].run("resolute", "db", "move", "--url", postgres_server.new_database(), timeout=180)
    yield both
    for machine in both:
        machine.down()


def test_commands_of_the_page_let_another_machine_take_over(
    machines: list[EmbeddedCluster], tmp_path: Path
) -> None:
    first, second = machines
    serve, stand_by, stop = (block.code for block in blocks_of("docs/failover.md"))
    on_page(first, serve, tmp_path)
    assert health(first) == 200
    said = on_page(second, stand_by, tmp_path)
    assert f"Resolute stands by in {second.home}; the cluster is served from {first.home}" in said
    assert "it stands by" in said
    assert (health(first), health(second)) == (200, 503)
    refused = second.run("resolute", "up", check=False)
    assert "another `resolute up`" in refused.stderr

    submit(first, tmp_path)
    wait_until(lambda: "has a checkpoint" in logs(first), what="a checkpoint")
    first.kill()
    wait_until(lambda: health(second) == 200, what="the second machine to serve")
    second.det("e", "wait", "1", timeout=180)
    assert "continues of the first machine" in logs(second)
    (trial,) = second.json("e", "list-trials", "1")
    assert (trial["state"], trial["restarts"]) == ("COMPLETED", 0)
    runs = first.home / "runs"
    assert len(list(runs.glob("*/0/lock"))) == 1

    said = on_page(first, serve, tmp_path)
    assert "Resolute stands by" in said
    wait_until(lambda: not living(first), what="the run of the first machine to be ended")
    on_page(second, stop, tmp_path)
    wait_until(lambda: health(first) == 200, what="the first machine to serve again")
    assert first.json("e", "describe", "1")[0]["experiment"]["state"] == "COMPLETED"
    wait_until(lambda: not list(runs.glob("*/*")), what="what was left there to be delivered")


def test_a_process_that_was_stopped_is_fenced_and_ends(
    machines: list[EmbeddedCluster], tmp_path: Path
) -> None:
    first, second = machines
    serve, stand_by, _ = (block.code for block in blocks_of("docs/failover.md"))
    on_page(first, serve, tmp_path)
    on_page(second, stand_by, tmp_path)
    pid = json.loads((first.home / "endpoint.json").read_text())["pid"]
    suspend(pid)
    wait_until(lambda: health(second) == 200, what="the second machine to serve")
    second.det("user", "create", "of-the-second")
    os.kill(pid, signal.SIGCONT)
    wait_until(
        lambda: "another process has taken over" in (first.home / "up.log").read_text(), what="its end"
    )
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the process to be gone")
    assert health(second) == 200
    refused = first.run("resolute", "up", check=False, timeout=120)
    assert f"another process serves the database: {second.home} on " in refused.stderr


def test_a_home_of_files_does_not_stand_by(tmp_path: Path) -> None:
    refused = EmbeddedCluster(tmp_path / "home").run("resolute", "up", "--standby", check=False)
    assert refused.returncode != 0
    assert "are files, which this machine alone can use; `resolute db move`" in refused.stderr


def on_page(machine: EmbeddedCluster, code: str, folder: Path) -> str:
    """Runs commands of the page on a machine whose address and ports are its own here."""
    host, other = ("127.0.0.2", "10.0.0.1") if machine.home.name == "first" else ("127.0.0.3", "10.0.0.2")
    ports = {"8080": port_of(machine, "grpc"), "8087": port_of(machine, "http")}
    code = code.replace(other, host)
    for shown, real in ports.items():
        code = code.replace(shown, str(real))
    variables = machine.variables() | {"PATH": f"{machine.bin}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "-euxc", code],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def port_of(machine: EmbeddedCluster, name: str) -> int:
    path = machine.home.with_name(f"{machine.home.name}-{name}")
    if not path.exists():
        path.write_text(str(free_port()))
    return int(path.read_text())


def health(machine: EmbeddedCluster) -> int:
    host = "127.0.0.2" if machine.home.name == "first" else "127.0.0.3"
    anyone = ssl._create_unverified_context()
    try:
        url = f"https://{host}:{port_of(machine, 'http')}/healthz"
        return int(urllib.request.urlopen(url, context=anyone, timeout=30).status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def submit(machine: EmbeddedCluster, folder: Path) -> None:
    code = folder / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    storage = f"checkpoint_storage: {{type: shared_fs, host_path: {folder}/checkpoints}}\n"
    (folder / "checkpoints").mkdir()
    (folder / "config.yaml").write_text(CONFIG + storage)
    machine.det("e", "create", str(folder / "config.yaml"), str(code))


def logs(machine: EmbeddedCluster) -> str:
    return machine.det("trial", "logs", "1", check=False).stdout


def living(machine: EmbeddedCluster) -> bool:
    return any(is_locked(lock) for lock in (machine.home / "runs").glob("*/*/lock"))
