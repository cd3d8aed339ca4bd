"""What a person does wrong on a cluster that runs: each is told what to do, and none is a success."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster

TRAIN = """
import resolute

with resolute.core.init(hparams={"lr": 0.1}) as context:
    context.train.report_validation_metrics(1, {"loss": context.hparams["lr"]})
"""
CONFIG = """
name: mistaken
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_trials: 2}
hyperparameters: {lr: {type: log, base: 10, minval: -3, maxval: -1}}
max_restarts: 0
"""
SUBMIT = ("e", "create", "config.yaml", "-f", "--config")
HALVING = "{name: adaptive_asha, metric: loss, max_trials: 2, max_length: 4}"
SUBMISSIONS = {
    "entrypoint=python3 trian.py": "did you mean 'train.py'?",
    "entrypoint=train:MyTrial": "the entrypoint 'train:MyTrial' names a class that train does not have",
    "entrypoint=python3 silent.py": "a script reports it by context.train.report_validation_metrics(steps",
    "entrypoint=/usr/bin/python3 -I train.py": "begin the entrypoint with python3, which is",
    "entrypoint=python3 data.py": "there is no file /nowhere/cifar.bin",
    "entrypoint=python3 misnamed.py": "KeyError: 'learning_rate'",
    "searcher.metric=Loss": "validations have: loss; did you mean 'loss'?",
    "resources.slots_per_trial=80": "resources.slots_per_trial: found 80; expected at most",
    "searcher.max_trials=abc": 'searcher.max_trials: found "abc"; expected an integer',
    "workspace=vision": "project: missing; expected both workspace and project, or neither",
    "resources.devices=[gpu]": 'resources.devices[0]: found "gpu"; expected a map with host_path',
}
"""Overrides of the config, with what the command says."""
LINES = {
    "e delete EXPERIMENT": (2, "there is no terminal to answer at; --yes answers"),
    "e delete 999999 --yes": (1, "experiment 999999 does not exist; `resolute experiment list --all` shows"),
    "e activate EXPERIMENT": (1, "is COMPLETED and cannot become ACTIVE; only a PAUSED"),
    "e kill EXPERIMENT": (1, "only an experiment that has not ended can be killed"),
    "e download EXPERIMENT": (1, "has no checkpoint: its script saved none"),
    "model describe nowhere": (1, "`resolute model list` lists all models"),
    "trial download TRIAL": (2, "Give exactly one of --best, --latest and --uuid"),
    "trial plot TRIAL accuracy": (2, "the trial never reported accuracy; its metrics are: loss"),
    "e create .": (1, "cannot read the config .: Is a directory; the config comes before the directory"),
    "e create config.yaml -i nowhere": (1, "cannot read nowhere: No such file or directory"),
    "e create config.yaml --template none": (1, "`resolute template list` lists all templates"),
    "user login nobody": (2, "--password-stdin reads it from standard input"),
    "up --detach": (1, "stop it with `resolute down`, or let RESOLUTE_HOME name another directory"),
}
"""Commands about an ended experiment and its first trial, with their exit codes and what they say."""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "silent.py").write_text("print('accuracy 0.93')\n")
    (tmp_path / "data.py").write_text("open('/nowhere/cifar.bin')\n")
    (tmp_path / "misnamed.py").write_text(TRAIN.replace('hparams["lr"]', 'hparams["learning_rate"]'))
    return tmp_path


@pytest.mark.timeout(400)
def test_mistakes_on_a_cluster_are_told(cluster: EmbeddedCluster, code: Path) -> None:
    said = cluster.det("e", "create", "config.yaml", "-f", cwd=code).stdout
    experiment = re.search(r"experiment (\d+)", said)[1]  # type: ignore[index]
    trial = min(cluster.json("t", "list", experiment), key=lambda row: row["id"])["id"]
    wrong = {}
    for override, wanted in SUBMISSIONS.items():
        done = cluster.det(*SUBMIT, override, cwd=code, check=False)
        if done.returncode != 1 or wanted not in done.stdout + done.stderr:
            wrong[override] = done
    for line, (exit_code, wanted) in LINES.items():
        words = line.replace("EXPERIMENT", experiment).replace("TRIAL", str(trial)).split()
        done = cluster.det(*words, cwd=code, check=False)
        if done.returncode != exit_code or wanted not in done.stdout + done.stderr:
            wrong[line] = done
    assert not wrong


@pytest.mark.timeout(200)
def test_a_search_by_operations_that_no_trial_completes_is_no_success(
    cluster: EmbeddedCluster, code: Path
) -> None:
    silent = ("--config", "entrypoint=python3 silent.py")
    done = cluster.det(*SUBMIT, f"searcher={HALVING}", *silent, cwd=code, check=False)
    assert done.returncode == 1
    warning = "warning: no trial has reported searcher.metric 'loss', nor any other validation metric"
    assert done.stdout.splitlines()[-1].startswith(warning)
