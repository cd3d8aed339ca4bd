"""What docs/services.md says works, over TLS and on PostgreSQL, though each service is killed in a search.

There is no systemd here: the units are read, and their commands are run as they stand there.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from deployment.units import UnitProcess, read_unit, replace_all
from faults.harness.cluster_processes import Role, processes_of
from support.certificates import Authority
from support.databases.postgres import PostgresServer
from support.pages.commands import ROOT, blocks_of
from support.ports import free_port
from support.waiting import wait_until

SERVICES = ("searcher", "metrics", "logs", "checkpoints", "experiments", "preemption")
GATEWAYS = ("gateway", "runs-gateway")
STEPS = 40
TRAIN = f"""
import time
from resolute import core
import resolute

info = resolute.get_cluster_info()
with core.init() as context:
    first = 0
    if info.latest_checkpoint:
        with context.checkpoint.restore_path(info.latest_checkpoint) as path:
            first = int((path / "step").read_text())
    for operation in context.searcher.operations():
        for step in range(first + 1, {STEPS} + 1):
            time.sleep(0.2)
            context.train.report_training_metrics(steps_completed=step, metrics={{"loss": 1.0 / step}})
            print(f"step {{step}}", flush=True)
            if step % 10 == 0:
                with context.checkpoint.store_path({{"steps_completed": step}}) as (path, uuid):
                    (path / "step").write_text(str(step))
        context.train.report_validation_metrics(steps_completed={STEPS}, metrics={{"loss": 1.0}})
        operation.report_completed(1.0)
"""
CONFIG = {
    "name": "apart",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
    "searcher": {"name": "random", "metric": "loss", "max_length": STEPS, "max_trials": 2},
    "max_restarts": 0,
}


@dataclass(frozen=True)
class Deployment:
    """The units, and a machine's directories that stand for those of the page."""

    folder: Path
    units: Mapping[str, UnitProcess]
    replaced: Mapping[str, str]

    def page_script(self, *, number: int) -> str:
        """A block of commands of the page, for this machine."""
        blocks = [block.code for block in blocks_of("docs/services.md") if not block.reason]
        return "set -euo pipefail\n" + replace_all(blocks[number], self.replaced)

    def run(self, script: str) -> str:
        """Runs commands of an operator."""
        done = subprocess.run(
            ["bash", "-c", script],
            env=self.operator(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def operator(self) -> dict[str, str]:
        """The environment of an operator."""
        base = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{base['PATH']}"
        authority = str(self.folder / "etc" / "authority.pem")
        return {
            **base,
            "PATH": path,
            "RESOLUTE_HOME": str(self.folder / "nobody"),
            "RESOLUTE_MASTER_CERT": authority,
        }

    def logs(self) -> str:
        """What the services said."""
        return "\n".join(
            f"--- {name}\n{unit.log.read_text()[-2000:]}"
            for name, unit in self.units.items()
            if unit.log.exists()
        )


@contextmanager
def deployed(folder: Path, database_url: str) -> Iterator[Deployment]:
    """Installs the units as the page says; nothing is started."""
    ports = {f":{number}": f":{free_port()}" for number in range(8080, 8091)}
    replaced = {
        "/opt/resolute/bin/python": sys.executable,
        "/etc/resolute": str(folder / "etc"),
        "/var/lib/resolute": str(folder / "var"),
        "postgresql+psycopg://resolute@127.0.0.1/resolute": database_url,
        **ports,
        **{before.replace(":", "PORT="): after.replace(":", "PORT=") for before, after in ports.items()},
    }
    (folder / "etc").mkdir()
    (folder / "var").mkdir()
    for file in (ROOT / "deploy/systemd/env").iterdir():
        text = replace_all(file.read_text(), replaced)
        text = re.sub(
            r"^RESOLUTE_CLUSTER_ID=.*", f"RESOLUTE_CLUSTER_ID={uuid.uuid4()}", text, flags=re.MULTILINE
        )
        (folder / "etc" / file.name).write_text(text)
    _protect(folder / "etc")
    units = {}
    for name in (*SERVICES, *GATEWAYS):
        file_name = f"resolute-{name}.service" if name in GATEWAYS else "resolute@.service"
        file = ROOT / "deploy/systemd" / file_name
        units[name] = read_unit(file, instance=name, replaced=replaced, log=folder / f"{name}.log")
    with ExitStack() as stack:
        stack.callback(_end_runs, folder)
        for unit in units.values():
            stack.callback(unit.stop)
        yield Deployment(folder, units, replaced)


def _protect(folder: Path) -> None:
    """Gives services and gateway a certificate; services let in only who shows one."""
    authority = Authority.create(folder)
    files = authority.issue(folder)
    settings = {
        "cluster": {"CERT": files.certificate, "KEY": files.key, "CA": authority.file},
        **{name: {"CLIENT_CA": authority.file} for name in SERVICES},
    }
    for name, variables in settings.items():
        with (folder / f"{name}.env").open("a") as file:
            file.writelines(f"RESOLUTE_TLS_{key}={value}\n" for key, value in variables.items())
    with (folder / "experiments.env").open("a") as file:
        file.write(f"RESOLUTE_ADVERTISED_CA={authority.file}\n")


def _end_runs(folder: Path) -> None:
    for process in processes_of(folder / "var" / "experiments"):
        if process.role in {Role.SUPERVISOR, Role.TRIAL, Role.ORPHAN_UPLOAD}:
            process.identity.send(signal.SIGKILL)


def start(deployment: Deployment, *names: str) -> None:
    """Starts units and waits until they listen."""
    before = {name: _starts(deployment.units[name]) for name in names}
    for name in names:
        deployment.units[name].start()
    wait_until(
        lambda: all(_starts(deployment.units[name]) > before[name] for name in names),
        what="services to listen",
    )


def _starts(unit: UnitProcess) -> int:
    return unit.log.read_text().count(" listens on ") if unit.log.exists() else 0


@pytest.mark.integration
def test_services_apart_run_a_search_though_each_of_them_is_killed(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    with deployed(tmp_path, postgres_server.new_database()) as deployment:
        deployment.run(deployment.page_script(number=0))
        start(deployment, *deployment.units)
        said = deployment.run(deployment.page_script(number=1))
        assert "admin" in said
        client = deployment.page_script(number=1).partition("\nresolute ")[0] + "\n"
        code = tmp_path / "code"
        code.mkdir()
        (code / "train.py").write_text(TRAIN)
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
        deployment.run(f"{client}resolute e create {tmp_path}/config.yaml {code}")
        wait_until(lambda: "step" in deployment.run(f"{client}resolute e logs 1"), what="the first step")
        for name in (*SERVICES, *GATEWAYS):
            deployment.units[name].kill()
            start(deployment, name)
        assert "COMPLETED" in deployment.run(f"{client}resolute e wait 1 && resolute e describe 1")
        for trial in (1, 2):
            log = deployment.run(f"{client}resolute t logs {trial}")
            assert [int(n) for n in re.findall(r"step (\d+)", log)] == [*range(1, STEPS + 1)]
        # Nothing failed, and no run was lost.
        trials = deployment.run(f"{client}resolute e list-trials 1 --csv")
        assert trials.count("COMPLETED") == 2
