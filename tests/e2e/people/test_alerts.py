"""Alerts of a whole cluster: the end of an experiment, and what a script says, reach a real server."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.services.stand_ins.alert_receivers import SECRET, receivers
from support.waiting import wait_until

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory

SCRIPT = """
import math
import determined as det

with det.core.init() as core:
    core.alert(title="Halfway", description="All is well.", level="warn")
    core.train.report_validation_metrics(steps_completed=1, metrics={"loss": math.nan})
    raise RuntimeError("the data are gone")
"""
CONFIG = {
    "name": "told",
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss"},
    "max_restarts": 0,
}
RULES = """
rules:
- {on: experiment, states: [ERROR], to: [own]}
- {on: alert, to: [own]}
- {on: metric, nan: true, to: [own]}
"""


def test_people_are_told_of_failures_values_and_what_scripts_say(tmp_path: Path) -> None:
    with (
        receivers() as servers,
        embedded(
            tmp_path / "home", RESOLUTE_ALERTS_ALLOWED="127.0.0.1", RESOLUTE_PAGE_URL="http://page"
        ) as own,
    ):
        endpoint = {"name": "own", "type": "webhook", "url": f"{servers.url}/webhook", "secret": SECRET}
        document = tmp_path / "alerts.yaml"
        document.write_text(f"endpoints: {json.dumps([endpoint])}\n{RULES}")
        own.run("resolute", "alert", "set", str(document))
        shown = own.run("resolute", "alert", "describe").stdout
        assert "(hidden)" in shown
        assert SECRET not in shown
        own.run("resolute", "alert", "test", "own")
        project = tmp_path / "project"
        project.mkdir()
        (project / "train.py").write_text(SCRIPT)
        (project / "config.yaml").write_text(json.dumps(CONFIG))
        own.det("e", "create", "config.yaml", ".", cwd=project)
        bodies = servers.received.bodies["webhook"]
        wait_until(lambda: len(bodies) == 4, what="all to be told")
        told = {body["on"]: body for body in bodies.values()}
        assert "the data are gone" in told["experiment"]["text"]
        assert told["experiment"]["state"] == "ERROR"
        assert told["experiment"]["link"] == "http://page/experiments/1"
        assert (told["alert"]["title"], told["alert"]["level"]) == ("Halfway", "warn")
        assert "not a number at step 1" in told["metric"]["text"]
        assert all(len(times) == 1 for times in servers.received.times["webhook"].values())
        log = own.run("resolute", "alert", "log").stdout
        assert "Halfway" in log
        for path in (tmp_path / "home").rglob("*"):
            if path.is_file() and path.stat().st_size < 10_000_000:
                assert SECRET.encode() not in path.read_bytes(), path


TRAINS = "import time\nprint('trains', flush=True)\nwhile True: time.sleep(0.1)\n"
OF_CLUSTER = """
rules:
- {on: quota, percent: 50, to: [own]}
- {on: node_lost, to: [own]}
- {on: token, seconds: 604800, to: [own]}
- {on: certificate, seconds: 400000000, to: [own]}
"""


@pytest.mark.timeout(300)
def test_operators_are_told_of_quotas_lost_machines_tokens_and_certificates(tmp_path: Path) -> None:
    own = EmbeddedCluster(tmp_path / "home", environment={"RESOLUTE_ALERTS_ALLOWED": "127.0.0.1"})
    with receivers() as servers:
        own.run("resolute", "up", "--detach", "--slots", "1", "--tls-self-signed", timeout=90)
        try:
            endpoint = {"name": "own", "type": "webhook", "url": f"{servers.url}/webhook", "secret": SECRET}
            document = tmp_path / "alerts.yaml"
            document.write_text(f"endpoints: {json.dumps([endpoint])}\n{OF_CLUSTER}")
            own.run("resolute", "alert", "set", str(document))
            own.run("resolute", "user", "create", "ada")
            own.run("resolute", "token", "create", "ada", "--days", "2", "--description", "notebook")
            own.run("resolute", "workspace", "set-quota", "Uncategorized", "--experiments", "2")
            project = tmp_path / "project"
            project.mkdir()
            (project / "train.py").write_text(TRAINS)
            (project / "config.yaml").write_text(json.dumps(CONFIG))
            own.det("e", "create", "config.yaml", ".", cwd=project)
            wait_until(lambda: "trains" in own.det("t", "logs", "1", check=False).stdout, what="a run")
            (run,) = (RunDirectory(path) for path in (tmp_path / "home/runs").glob("*.1/0"))
            supervisor = ProcessIdentity.from_json(read_json(run.supervisor_file))
            assert supervisor is not None
            supervisor.send(signal.SIGKILL)
            bodies = servers.received.bodies["webhook"]
            wait_until(lambda: len({body["on"] for body in bodies.values()}) == 4, what="all to be told")
            told = {body["on"]: body["text"] for body in bodies.values()}
            assert told["quota"].startswith("Workspace Uncategorized uses 1 of 2, its quota of experiments")
            assert told["node_lost"].startswith("Run 1 was lost with its machine or its supervisor")
            assert "(notebook) ends in" in told["token"]
            assert "certificate.pem) ends in 36" in told["certificate"]
            assert all(len(times) == 1 for times in servers.received.times["webhook"].values())
        finally:
            own.down()
