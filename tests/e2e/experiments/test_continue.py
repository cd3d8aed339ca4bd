"""Ended experiments continue as themselves, and new ones begin from what is there."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.api.experiments.v1 import continuation_service_pb2 as pb
from resolute.api.experiments.v1 import continuation_service_pb2_grpc, experiment_pb2
from resolute.api.searcher.v1 import searcher_service_pb2, searcher_service_pb2_grpc
from resolute.rpc.channel import open_channel

PAGE = (Path(__file__).parents[3] / "docs" / "continuing.md").read_text()
SCRIPT = """
import json, os, pathlib, sys, time
import determined as det

info = det.get_cluster_info()
hparams = info.trial.hparams
with det.core.init() as core:
    step = begun = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            state = json.loads((path / "state").read_text())
        step = begun = state["step"] if state["trial"] == info.trial.trial_id else 0
        print("weights of trial", state["trial"], "at step", state["step"])

    def save():
        with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "state").write_text(json.dumps({"step": step, "trial": info.trial.trial_id}))

    for op in core.searcher.operations():
        while step < op.length:
            step += 1
            time.sleep(hparams.get("pause", 0.0))
            core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
            if core.preempt.should_preempt():
                save()
                sys.exit(0)
            if step == hparams.get("fails_at") and not pathlib.Path(hparams["mended"]).exists():
                save()
                sys.exit(3)
        loss = (hparams["x"] + 1) / step
        core.train.report_validation_metrics(steps_completed=step, metrics={"loss": loss})
        save()
        op.report_completed(loss)
"""
ASHA = """
name: asha
entrypoint: python3 train.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
reproducibility: {experiment_seed: 3}
searcher:
  name: adaptive_asha
  metric: loss
  mode: aggressive
  max_rungs: 2
  divisor: 2
  max_length: 8
  max_trials: 4
  max_concurrent_trials: 2
"""
SINGLE = """
name: crashing
entrypoint: python3 train.py
max_restarts: 0
hyperparameters: {x: 0.5, fails_at: 3, mended: MENDED, pause: 0.05}
searcher: {name: single, metric: loss, max_length: 6}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "asha.yaml").write_text(ASHA)
    (folder / "single.yaml").write_text(SINGLE.replace("MENDED", str(folder.parent / "mended")))
    (folder / "train.py").write_text(SCRIPT)
    return folder


@pytest.fixture(scope="module")
def finished(shared_cluster: EmbeddedCluster, project: Path) -> str:
    """An adaptive search that was completed."""
    asha = submit(shared_cluster, project, "asha.yaml")
    assert wait(shared_cluster, asha) == "COMPLETED"
    return asha


def shown(cluster: EmbeddedCluster, command: str, **ids: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the page, on an experiment and a trial of this cluster."""
    assert f"\n{command}\n" in PAGE
    words = command.replace(" 7", f" {ids.get('experiment')}").replace(" 12", f" {ids.get('trial')}").split()
    return cluster.run(*words, "--yes")


def submit(cluster: EmbeddedCluster, project: Path, config: str, *more: str) -> str:
    created = cluster.det("e", "create", config, ".", *more, cwd=project)
    return created.stdout.split()[-1]


def wait(cluster: EmbeddedCluster, experiment: str) -> str:
    cluster.det("e", "wait", experiment, check=False, timeout=120)
    return str(described(cluster, experiment)["state"])


def described(cluster: EmbeddedCluster, experiment: str) -> dict[str, Any]:
    return dict(cluster.json("e", "describe", experiment)[0]["experiment"])


def trials(cluster: EmbeddedCluster, experiment: str) -> list[dict[str, Any]]:
    return list(cluster.json("e", "list-trials", experiment))


def steps(cluster: EmbeddedCluster, trial: int) -> list[int]:
    told: Any = cluster.json("t", "describe", str(trial), "--metrics")[0]
    return [report["steps_completed"] for report in told["metrics"] if report["group"] == "training"]


@contextmanager
def calling(cluster: EmbeddedCluster) -> Iterator[grpc.Channel]:
    content = json.loads((cluster.home / "endpoint.json").read_text())
    token = Path(content["token_path"]).read_text().strip()
    with open_channel(content["address"], token=lambda: token) as channel:
        yield channel


def replays(cluster: EmbeddedCluster, experiment: str) -> bool:
    search_id = described(cluster, experiment)["uuid"]
    with calling(cluster) as channel:
        stub = searcher_service_pb2_grpc.SearcherServiceStub(channel)
        return stub.ReplaySearch(searcher_service_pb2.ReplaySearchRequest(search_id=search_id)).equal


def test_what_cannot_go_on_says_why(cluster: EmbeddedCluster, finished: str) -> None:
    def refusal(*more: str) -> str:
        return cluster.run("det", "e", "continue", finished, *more, "--yes", check=False).stderr

    assert "none of its trials failed" in refusal()
    assert "more than the 4 that the search has" in refusal("--config", "searcher.max_trials=3")
    assert "cannot change in an experiment that goes on" in refusal("--config", "searcher.divisor=3")
    assert described(cluster, finished)["state"] == "COMPLETED"


@pytest.mark.sampled(2, group="continued experiments")
def test_a_trial_gives_its_weights_and_a_fork_only_the_config(
    cluster: EmbeddedCluster, finished: str
) -> None:
    source = trials(cluster, finished)[0]
    command = "resolute trial continue 12 --config searcher.max_length=5"
    made = shown(cluster, command, trial=str(source["id"]))
    assert f"kept: from checkpoint {source['latest_checkpoint']}" in made.stderr
    assert "step counter:  begins at zero" in made.stderr
    warm = made.stdout.split()[-1]
    assert wait(cluster, warm) == "COMPLETED"
    (trial,) = trials(cluster, warm)
    assert trial["hparams"] == source["hparams"]
    assert steps(cluster, trial["id"]) == [1, 2, 3, 4, 5]
    logs = cluster.det("t", "logs", str(trial["id"])).stdout
    assert f"weights of trial {source['id']}" in logs

    forked = shown(cluster, "resolute experiment fork 7 --config name=other", experiment=warm)
    assert "weights:       not kept" in forked.stderr
    cold = forked.stdout.split()[-1]
    assert wait(cluster, cold) == "COMPLETED"
    assert described(cluster, cold)["name"] == "other"
    (trial,) = trials(cluster, cold)
    assert "weights of trial" not in cluster.det("t", "logs", str(trial["id"])).stdout


@pytest.mark.sampled(2, group="continued experiments")
def test_a_finished_asha_is_given_more_trials_and_a_greater_length(
    cluster: EmbeddedCluster, finished: str
) -> None:
    asha = finished
    before = {trial["id"]: steps(cluster, trial["id"]) for trial in trials(cluster, asha)}
    assert len(before) == 4
    command = "resolute experiment continue 7 --config searcher.max_trials=6 --config searcher.max_length=16"
    done = shown(cluster, command, experiment=asha)
    assert "search state:  kept, with 6 trials and 16 as the greatest length from now on" in done.stderr
    assert wait(cluster, asha) == "COMPLETED"
    after = {trial["id"]: steps(cluster, trial["id"]) for trial in trials(cluster, asha)}
    assert len(after) == 6
    assert max(map(len, after.values())) == 16, "somebody trains to the new length"
    for trial, made in after.items():
        assert made == list(range(1, len(made) + 1)), f"trial {trial}: each step once, across its ends"
        assert len(made) >= len(before.get(trial, []))
    assert any(len(after[trial]) == 16 for trial in before), "a trial that had ended trained on, as itself"
    assert described(cluster, asha)["progress"] == 1.0
    assert replays(cluster, asha)


@pytest.mark.sampled(2, group="continued experiments")
def test_a_failed_trial_is_tried_again_as_itself_from_its_checkpoint(
    cluster: EmbeddedCluster, project: Path
) -> None:
    single = submit(cluster, project, "single.yaml")
    assert wait(cluster, single) == "ERROR"
    failed = described(cluster, single)
    (trial,) = trials(cluster, single)
    shown = cluster.det("e", "describe", single).stdout
    assert f"trial {trial['id']} failed: the entrypoint ended with exit code 3" in " ".join(shown.split())
    assert failed["progress"] < 1.0
    asked = cluster.run("det", "e", "continue", single, check=False)
    assert asked.returncode != 0, "nobody said yes"
    assert "weights:       kept" in asked.stderr
    assert f"trial {trial['id']} (ERROR) continues at step 3" in asked.stderr
    assert described(cluster, single)["state"] == "ERROR", "asking changes nothing"
    (project.parent / "mended").touch()
    longer = ("--config", "searcher.max_length=9", "--config", "max_restarts=1")
    followed = cluster.det("e", "continue", single, *longer, "--yes", "-f").stdout
    assert "weights of trial" in followed
    assert wait(cluster, single) == "COMPLETED"
    (again,) = trials(cluster, single)
    assert (again["id"], again["state"], again["run"]) == (trial["id"], "COMPLETED", 2)
    assert steps(cluster, trial["id"]) == list(range(1, 10))


@pytest.mark.sampled(2, group="continued experiments")
def test_a_paused_and_a_cancelled_search_go_on_where_they_were(
    cluster: EmbeddedCluster, project: Path
) -> None:
    slow = ("--config", "hyperparameters.pause=0.15", "--config", "searcher.max_trials=3")
    asha = submit(cluster, project, "asha.yaml", *slow, "--paused")
    more = ("--config", "searcher.max_trials=9", "--yes")
    assert "under way" in cluster.det("e", "continue", asha, *more, check=False).stderr
    cluster.det("e", "continue", asha, "--yes")
    wait_until(lambda: any(len(steps(cluster, t["id"])) > 1 for t in trials(cluster, asha)), what="steps")
    cluster.det("e", "cancel", asha)
    assert wait(cluster, asha) == "CANCELED"
    shown(cluster, "resolute experiment continue 7", experiment=asha)
    assert wait(cluster, asha) == "COMPLETED"
    ended = trials(cluster, asha)
    assert [trial["state"] for trial in ended] == ["COMPLETED"] * 3
    for trial in ended:
        made = steps(cluster, trial["id"])
        assert made == list(range(1, len(made) + 1)), f"trial {trial['id']}: each step once"
    assert replays(cluster, asha)


def test_the_page_s_program_runs(cluster: EmbeddedCluster, finished: str) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    source = trials(cluster, finished)[0]["id"]
    program = program.replace("(7)", f"({finished})").replace("(12)", f"({source})")
    cluster.run("python3", "-c", program + "    print(warm.id, cold.id, experiment.state.name)")
    assert wait(cluster, finished) == "COMPLETED"
    assert len(trials(cluster, finished)) == 8


def test_a_repeated_request_changes_nothing_more(cluster: EmbeddedCluster, finished: str) -> None:
    before = described(cluster, finished)
    count = len(trials(cluster, finished))
    key = experiment_pb2.ExperimentKey(experiment_id=before["uuid"])
    more = f"searcher: {{max_trials: {count + 1}}}"
    again = pb.ContinueExperimentRequest(experiment=key, request_id=str(uuid.uuid4()), config_yaml=more)
    fork = pb.ForkExperimentRequest(experiment=key, request_id=str(uuid.uuid4()))
    with calling(cluster) as channel:
        stub = continuation_service_pb2_grpc.ContinuationServiceStub(channel)
        for _ in range(2):
            assert stub.ContinueExperiment(again).continuation.max_trials == count + 1
        forks = {stub.ForkExperiment(fork).experiment.number for _ in range(2)}
    assert len(forks) == 1
    cluster.det("e", "kill", str(forks.pop()))
    assert wait(cluster, finished) == "COMPLETED"
    assert len(trials(cluster, finished)) == count + 1
