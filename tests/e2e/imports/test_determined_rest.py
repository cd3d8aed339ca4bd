"""The table of docs/gateway.md that maps Determined's REST calls: each line of it is run by bash and curl."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.services.gateway import need_http

pytestmark = pytest.mark.sampled(2, group="clusters of their own", files=True)

need_http()

PAGE = (Path(__file__).parents[3] / "docs/gateway.md").read_text()
CALLS = re.findall(r"^\| `(?:GET|POST|PATCH|DELETE) /api/v1/[^`]*` \| `(call [^`]+)` \|$", PAGE, re.MULTILINE)
DEFINITION = re.search(r"^(URL=.*?^})$", PAGE, re.MULTILINE | re.DOTALL)
CONFIG = """
name: mapped
entrypoint: sleep 600
searcher: {name: single, metric: loss}
"""


@pytest.fixture(scope="module")
def with_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster that serves HTTP, with an experiment that runs and two that are paused."""
    folder = tmp_path_factory.mktemp("mapped")
    (folder / "c.yaml").write_text(CONFIG)
    (folder / "code").mkdir()
    with embedded(folder / "h", slots=2, RESOLUTE_NO_HTTP="") as cluster:
        cluster.det("e", "create", "c.yaml", "code", cwd=folder)
        # Trial 1 is to be that of experiment 1: on a busy machine another's may come first.
        with cluster.client() as client:
            client.get_experiment(1).await_first_trial()
        for _ in range(2):
            cluster.det("e", "create", "c.yaml", "code", "--paused", cwd=folder)
        yield cluster


@pytest.fixture(scope="module")
def identifiers(with_http: EmbeddedCluster) -> dict[str, str]:
    """The variables that the page names, of experiment 1."""
    with with_http.client() as client:
        trial = client.get_experiment(1).await_first_trial()
    described = with_http.json("e", "describe", "1")[0]["experiment"]
    return {"EXPERIMENT": described["uuid"], "TRIAL": trial.uuid}


def test_the_table_is_found() -> None:
    assert len(CALLS) >= 40


def test_each_call_is_answered(with_http: EmbeddedCluster, identifiers: dict[str, str]) -> None:
    """Later lines of the table act on what earlier ones have made."""
    assert DEFINITION is not None
    variables = {**with_http.variables(), **identifiers}
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    for call in CALLS:
        told = subprocess.run(
            ["bash", "-c", f"set -e\n{DEFINITION[1]}\n{call}"],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert told.returncode == 0, f"{call}: {told.stdout}{told.stderr}"
        assert told.stdout.startswith("{"), call


ASKS = """
import json, os, shutil, subprocess, urllib.error, urllib.request

import determined as det
from determined.experimental import client

info = det.get_cluster_info()
with urllib.request.urlopen(info.master_url + "/.well-known/resolute.json") as answer:
    found = {"discovered": json.load(answer)["cluster_id"] == info.cluster_id}
try:
    urllib.request.urlopen(f"{info.master_url}/api/v1/trials/{info.trial.trial_id}")
except urllib.error.HTTPError as refusal:
    found["rest"] = refusal.code
client.login(master=info.master_url)
found["trial"] = client.get_trial(info.trial.trial_id).experiment_id == info.trial.experiment_id
found["type"] = os.environ["DET_TASK_TYPE"]
print("marked line", flush=True)
det_command = [shutil.which("det"), "task", "logs", "-f", os.environ["DET_TASK_ID"]]
with subprocess.Popen(det_command, stdout=subprocess.PIPE, text=True) as logs:
    found["log"] = any("marked line" in line for line in logs.stdout)
    logs.kill()
print("found", json.dumps(found))
"""


def test_a_trial_reaches_its_cluster_by_the_url_of_the_master(
    with_http: EmbeddedCluster, tmp_path: Path
) -> None:
    (tmp_path / "ask.py").write_text(ASKS)
    (tmp_path / "c.yaml").write_text(CONFIG.replace("sleep 600", "python3 ask.py"))
    created = with_http.det("e", "create", "c.yaml", ".", cwd=tmp_path).stdout
    number = created.split("Created experiment ")[1].split()[0]
    with_http.run("det", "e", "wait", number, timeout=120, check=False)
    with with_http.client() as client:
        lines = [str(line) for line in client.get_experiment(int(number)).await_first_trial().iter_logs()]
    found = [json.loads(line.split("found ")[1]) for line in lines if "found {" in line]
    expected = {"discovered": True, "rest": 410, "trial": True, "type": "TRIAL", "log": True}
    assert found == [expected], "\n".join(lines)
