"""The walk-through with timm: a script that runs as it is, and what each of the four steps brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.backends import missing
from support.clusters.distributed import DistributedScript, DistributedTrial, Submit
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import ExperimentState

STEPS = Path(__file__).parents[3] / "examples" / "timm"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
BUSY = 240.0
"""Seconds that a step may take where others train too."""
INSTALLED = Path(sys.prefix) / "timm"
if not (INSTALLED / "timm").is_dir():
    missing("timm is not installed: `make distributed` installs it")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2, PATH=PATH) as running:
        yield running


def finished(submit: Submit, step: str, *settings: str) -> DistributedTrial:
    trial = submit(DistributedScript(folder=STEPS, config=f"{step}.yaml", script=f"{step}.py"), *settings)
    trial.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    return trial


def assert_epochs(steps: Iterable[int], count: int) -> None:
    first, *_ = steps
    assert list(steps) == [first * epoch for epoch in range(1, count + 1)]


def test_step_0_runs_as_it_is(submit: Submit) -> None:
    log = finished(submit, "step0_run").log()
    assert "Training with a single process." in log
    hits = [float(share) for share in re.findall(r"Test: .* top1 ([\d.]+)", log)]
    assert len(hits) == 5
    assert hits[-1] > 80


def test_step_1_has_a_process_for_each_slot(submit: Submit) -> None:
    log = finished(submit, "step1_distributed").log()
    for rank in (0, 1):
        assert re.search(rf"\[rank={rank}\].*Process {rank}, total 2", log), log


def test_step_2_reports_metrics(submit: Submit) -> None:
    trial = finished(submit, "step2_metrics")
    for group in ("training", "validation"):
        assert_epochs(trial.metrics(group), 5)


def test_step_3_pauses_and_goes_on_with_the_next_epoch(submit: Submit) -> None:
    # An epoch takes a second; more of them leave time for the pause.
    entrypoint = "python3 -m determined.launch.torch_distributed python3 step3_checkpoints.py --epochs 15"
    step = DistributedScript(folder=STEPS, config="step3_checkpoints.yaml", script="step3_checkpoints.py")
    trial = submit(step, f"entrypoint={entrypoint}")
    trial.wait_for_step(1, timeout=BUSY)
    trial.experiment.pause()
    trial.wait_for(ExperimentState.PAUSED)
    trial.experiment.activate()
    trial.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    assert_epochs(trial.metrics("validation"), 15)
    began = [int(epoch) for epoch in re.findall(r"\[rank=0\].*Starting with epoch (\d+)", trial.log())]
    assert began[0] == 0
    assert 1 <= began[1] < 15


def test_step_4_searches_and_trains_as_long_as_the_search_says(submit: Submit) -> None:
    found = finished(submit, "step4_hyperparameters", "hyperparameters.lr.count=2", "searcher.max_length=2")
    trials = found.experiment.list_trials()
    assert sorted(trial.hparams["lr"] for trial in trials) == pytest.approx([0.01, 0.1])
    for trial in trials:
        assert_epochs([report.steps_completed for report in trial.iter_metrics("validation")], 2)


def test_the_script_runs_without_a_cluster_as_its_page_says(tmp_path: Path) -> None:
    page = (STEPS / "README.md").read_text()
    commands = re.findall(r"^    ((?:\.|python3) .*)$", page, re.MULTILINE)
    assert len(commands) == 3
    here = tmp_path / "timm"
    shutil.copytree(STEPS, here)
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)],
        cwd=here,
        env={**os.environ, "PATH": PATH, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"Train: epoch (\d)", done.stderr + done.stdout) == ["0", "1", "2"]
