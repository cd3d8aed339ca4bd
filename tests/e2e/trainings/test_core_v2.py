"""Scripts that the cluster does not run are live on it: reports, lines, checkpoints, their end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest
from support.clocks import ManualClock
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

from resolute.client import TrialState
from resolute.client.connection.session import Session
from resolute.client.services import Services
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.core.unmanaged.sidecar import Sidecar
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.shipping import SpoolShipper

pytestmark = pytest.mark.sampled(2, group="clusters of their own", files=True)

COMPAT = Path(__file__).resolve().parents[3] / "compat"
SCRIPT = """
import sys
from determined.experimental import core_v2

core_v2.init(
    config=core_v2.Config(
        name="laptop", hparams={"lr": 0.1}, labels=["night"],
        searcher={"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": 10},
        external_experiment_id="night", external_trial_id=sys.argv[1],
    ),
)
info = core_v2.info
first = 0
if info.latest_checkpoint is not None:
    with core_v2.checkpoint.restore_path(info.latest_checkpoint) as path:
        first = int((path / "step").read_text())
print(f"begins at {first}", flush=True)
for step in range(first, first + 100):
    core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / (step + 1)})
core_v2.train.report_validation_metrics(steps_completed=step, metrics={"accuracy": step / 1000})
with core_v2.checkpoint.store_path({"steps_completed": step + 1}) as (path, storage_id):
    (path / "step").write_text(str(step + 1))
assert core_v2.train.get_experiment_best_validation() >= step / 1000
assert core_v2.url_reverse_webui_exp_view().endswith(f"/det/experiments/{info.trial.experiment_id}")
print("half way", file=sys.stderr, flush=True)
print("waits", flush=True)
how = sys.stdin.readline().strip()
if how == "fail":
    raise ValueError("the data is gone")
if how == "close":
    core_v2.close()
"""
CONTEXT_SCRIPT = """
from resolute import core_v2

with core_v2.init_context(config=core_v2.Config(name="with")) as context:
    context.train.report_metrics("mine", 1, {"x": 2.0})
    assert not context.preempt.should_preempt()
    assert [op.length for op in context.searcher.operations() if op.report_completed(1.0) is None] == [1]
"""
OFFLINE_SCRIPT = """
import os, sys
from resolute import core_v2

core_v2.init(
    config=core_v2.Config(name="offline", external_experiment_id="offline", external_trial_id="only")
)
info = core_v2.info
first = 0
if info.latest_checkpoint is not None:
    with core_v2.checkpoint.restore_path(info.latest_checkpoint) as path:
        first = int((path / "step").read_text())
print(f"begins at {first} in trial {info.trial.trial_id}", flush=True)
for step in range(first, first + 2):
    core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / (step + 1)})
with core_v2.checkpoint.store_path({"steps_completed": step + 1}) as (path, storage_id):
    (path / "step").write_text(str(step + 1))
core_v2.train.set_metadata({"at": sys.argv[1]})
if "kill" in sys.argv:
    os.kill(os.getpid(), 9)
"""
_END_SECONDS = 240.0
"""Longer than a script may wait itself: for what it sends of earlier runs, and for its sidecar."""


class Script:
    """A running script."""

    def __init__(self, cluster: EmbeddedCluster, path: Path, *arguments: str) -> None:
        variables = cluster.variables()
        paths = [str(COMPAT), *filter(None, [variables.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, str(path), *arguments],
            env={**variables, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def _out(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def waits(self) -> list[str]:
        """What it said until it waits."""
        lines: list[str] = []
        while not lines or lines[-1] != "waits":
            line = self._out.readline()
            assert line, self._process.communicate()[1]
            lines.append(line.strip())
        return lines

    def end(self, how: str = "") -> tuple[int, str]:
        """Lets it end; gives its exit code and errors."""
        _, errors = self._process.communicate(f"{how}\n", timeout=_END_SECONDS)
        return self._process.returncode, errors

    def output(self, *, code: int = 0) -> tuple[str, str]:
        """Waits for its end; gives what it printed and its errors."""
        out, errors = self._process.communicate(timeout=_END_SECONDS)
        assert self._process.returncode == code, errors
        return out, errors

    def kill(self) -> None:
        """Ends it at once."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("v2") / "home", slots=1) as running:
        yield running


@pytest.fixture
def cluster(shared_cluster: EmbeddedCluster, tmp_path: Path) -> EmbeddedCluster:
    """The cluster; scripts of a test find only runs of that test."""
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    return replace(shared_cluster, environment={**shared_cluster.environment, **data})


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


@contextmanager
def running(cluster: EmbeddedCluster, script: Path, trial: str) -> Iterator[tuple[Script, list[str], int]]:
    """A script that waits, what it said, and the number of its trial."""
    process = Script(cluster, script, trial)
    try:
        said = process.waits()
        numbers = [item["id"] for item in cluster.json("experiment", "list-trials", "1")]
        yield process, said, max(numbers)
    finally:
        process.kill()


def described(cluster: EmbeddedCluster, trial: int) -> dict[str, Any]:
    found: dict[str, Any] = cluster.json("trial", "describe", str(trial), "--metrics-summary")[0]
    return found


def ended(cluster: EmbeddedCluster, trial: int, state: str) -> dict[str, Any]:
    return (
        wait_until(
            lambda: (found := described(cluster, trial))["trial"]["state"] == state and found, what=state
        )
        or {}
    )


def counts(found: dict[str, Any]) -> dict[str, int]:
    return {item["name"]: item["count"] for item in found["metrics_summary"]}


@pytest.mark.integration
def test_a_script_is_live_on_the_cluster_and_goes_on_where_it_stopped(
    cluster: EmbeddedCluster, script: Path, tmp_path: Path
) -> None:
    with running(cluster, script, "resumed") as (process, said, trial):
        assert said == ["begins at 0", "waits"]
        live = wait_until(
            lambda: (found := described(cluster, trial)) and counts(found).get("loss") == 100 and found,
            what="the reports",
        )
        assert (live or {})["trial"]["state"] == "RUNNING"
        assert cluster.json("experiment", "describe", "1")[0]["experiment"]["state"] == "ACTIVE"
        assert "runs outside of the cluster" in cluster.det("e", "pause", "1", check=False).stderr
        code, errors = process.end("close")
        assert (code, "half way" in errors) == (0, True)
    found = described(cluster, trial)
    assert found["trial"]["state"] == "COMPLETED"
    assert found["trial"]["hparams"] == {"lr": 0.1}
    lines = cluster.run("resolute", "trial", "logs", str(trial), "--json").stdout.splitlines()
    written = {(line["stdtype"], line["message"]) for line in map(json.loads, lines)}
    assert {("stdout", "begins at 0"), ("stderr", "half way"), ("stdout", "waits")} <= written
    assert cluster.json("experiment", "list", "--all")[0]["labels"] == ["night"]

    with running(cluster, script, "resumed") as (process, said, again):
        assert (again, said[0]) == (trial, "begins at 100")
        assert process.end()[0] == 0
    found = described(cluster, trial)
    assert found["trial"]["state"] == "COMPLETED"
    assert [run["outcome"] for run in found["trial"]["runs"]] == ["COMPLETED", "COMPLETED"]
    assert counts(found)["loss"] == 200
    assert not list(Path(cluster.environment["XDG_DATA_HOME"]).glob("resolute/unmanaged/*"))


@pytest.mark.integration
def test_an_error_and_a_kill_are_told_apart_and_lose_nothing(cluster: EmbeddedCluster, script: Path) -> None:
    with running(cluster, script, "failing") as (process, _, trial):
        code, errors = process.end("fail")
        assert (code, "ValueError: the data is gone" in errors) == (1, True)
    found = ended(cluster, trial, "ERROR")
    assert found["trial"]["runs"][0]["failure"] == "ValueError: the data is gone"
    with running(cluster, script, "killed") as (process, _, trial):
        process.kill()
    found = ended(cluster, trial, "ERROR")
    assert "without saying how" in found["trial"]["runs"][0]["failure"]
    assert counts(found)["loss"] == 100


@pytest.mark.integration
def test_what_was_reported_while_the_cluster_was_down_arrives_when_it_is_back(
    cluster: EmbeddedCluster, script: Path
) -> None:
    with running(cluster, script, "outage") as (process, _, trial):
        cluster.kill()
        process.kill()
        cluster.up()
    assert counts(ended(cluster, trial, "ERROR"))["loss"] == 100


@pytest.mark.integration
def test_a_context_can_be_had_without_the_singleton(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(CONTEXT_SCRIPT)
    assert Script(cluster, path).end() == (0, "")
    newest = cluster.json("experiment", "list", "--all")[0]
    assert (newest["name"], newest["state"]) == ("with", "COMPLETED")


@pytest.mark.integration
def test_the_block_of_the_page_runs(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    page = (COMPAT.parent / "docs" / "core-v2.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "train.py").write_text(block)
    code, _ = Script(cluster, tmp_path / "train.py").end()
    assert code == 0
    newest = cluster.json("experiment", "list", "--all")[0]
    assert (newest["name"], newest["state"], newest["labels"]) == ("mnist", "COMPLETED", ["laptop"])


@pytest.mark.integration
def test_a_person_who_ends_a_run_asks_its_script_to_stop(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    clock = ManualClock()
    run = OfflineRun.create(tmp_path, run_id=str(uuid.uuid4()), name="stopped", now=clock.time())
    files = RunDirectory(run.directory)
    files.prepare()
    flags = Flags(files.flags_file)
    with ExitStack() as stack, Session.find(environment=cluster.variables()) as ours:
        services = Services(ours)
        begun = services.trials.begin(run)
        write_atomically(files.token_file, begun.token)
        session = stack.enter_context(Session(replace(ours.endpoint, token=files.read_token)))
        identity = RunIdentity(begun.trial.uuid, begun.run, begun.trial.experiment_uuid)
        turns: list[bool] = []

        def wait(_: float) -> None:
            """The script looks at its signal, and ends when it is told to."""
            turns.append(flags.preempt)
            assert len(turns) < 10, "the script is never told"
            if len(turns) == 1:
                services.trials.kill(begun.trial.uuid)
            if flags.preempt:
                ExitRecord(exit_code=0, end_time=clock.time()).write(run.exit_file)
            clock.advance(25.0)

        sidecar = Sidecar(
            run,
            trainer=ProcessIdentity.of(os.getpid()),
            identity=identity,
            trials=Services(session).trials,
            shipping=session.stub(lambda channel: SpoolShipper(channel, run.spool, identity, clock=clock)),
            outage_timeout=30.0,
            clock=clock,
            wait=wait,
        )
        assert sidecar.serve()
        # A heartbeat a minute: three looks without news, then the one that has it.
        assert turns == [False, False, False, True]
        assert services.trials.get(begun.trial.uuid).state is TrialState.CANCELED


@pytest.mark.integration
@pytest.mark.sampled(2, group="scripts without their cluster")
def test_with_no_cluster_in_reach_a_run_is_recorded_and_the_next_start_sends_it(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path, data = tmp_path / "train.py", tmp_path / "data"
    path.write_text(OFFLINE_SCRIPT)
    nowhere = EmbeddedCluster(tmp_path / "nowhere", environment={"XDG_DATA_HOME": str(data)})
    runs = data / "resolute" / "unmanaged"

    out, errors = Script(nowhere, path, "first").output()
    (first,) = runs.iterdir()
    assert out == "begins at 0 in trial 0\n"
    assert f"recorded in {first}" in errors
    # The same trial again: it goes on from what was recorded, and is killed.
    out, _ = Script(nowhere, path, "second", "kill").output(code=-9)
    assert out == "begins at 2 in trial 0\n"
    assert len(list(runs.iterdir())) == 2

    out, _ = Script(cluster, path, "third").output()
    assert out.startswith("begins at 4 in trial ")
    wait_until(lambda: not list(runs.iterdir()), what="everything to have arrived")
    trial = int(out.split()[-1])
    found = described(cluster, trial)
    assert [run["outcome"] for run in found["trial"]["runs"]] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert "without saying how" in found["trial"]["runs"][1]["failure"]
    assert counts(found)["loss"] == 6
    lines = cluster.run("resolute", "trial", "logs", str(trial), "--json").stdout
    assert "begins at 0" in lines
    assert found["trial"]["state"] == "COMPLETED"


@pytest.mark.integration
@pytest.mark.sampled(2, group="scripts without their cluster")
def test_a_run_that_was_recorded_can_be_sent_by_the_command_any_number_of_times(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path, runs = tmp_path / "train.py", tmp_path / "runs"
    path.write_text(OFFLINE_SCRIPT.replace('"offline"', '"by command"'))
    # Named, and away: nobody listens on the port for what is discarded.
    away = EmbeddedCluster(
        tmp_path / "nowhere",
        environment={"RESOLUTE_OFFLINE_DIR": str(runs), "RESOLUTE_MASTER": "127.0.0.1:9"},
    )
    Script(away, path, "only").output()

    first = cluster.run("resolute", "sync", str(runs)).stdout
    assert cluster.run("resolute", "sync", str(runs)).stdout == first
    trial = int(re.findall(r"trial (\d+)", first)[0])
    found = described(cluster, trial)
    assert (found["trial"]["state"], counts(found)["loss"]) == ("COMPLETED", 2)
    experiment = re.findall(r"experiment (\d+)", first)[0]
    (listed,) = cluster.json("experiment", "list-checkpoints", experiment)
    identifier = listed["uuid"]
    cluster.run("resolute", "checkpoint", "download", identifier, "-o", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "step").read_text() == "2"


def test_parts_without_a_trial_say_what_is_missing() -> None:
    from resolute import core_v2

    with pytest.raises(RuntimeError, match=r"call core_v2\.init"):
        core_v2.train.report_training_metrics(1, {})
    core_v2.close()
