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
from support.embedded import EmbeddedCluster, embedded
from support.examples import ExampleExperiment

pytestmark = pytest.mark.xdist_group("world-timm")

STEPS = Path(__file__).parents[2] / "examples" / "timm"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
INSTALLED = Path(sys.prefix) / "timm"
if not (INSTALLED / "timm").is_dir():
    pytest.skip("timm is not installed: make worlds installs it", allow_module_level=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2, PATH=PATH) as running:
        yield running


def create(cluster: EmbeddedCluster, config: str, *options: str) -> ExampleExperiment:
    return ExampleExperiment.create(cluster, STEPS, config, *options)


def assert_epochs(steps: Iterable[int], count: int) -> None:
    first, *_ = steps
    assert list(steps) == [first * epoch for epoch in range(1, count + 1)]


def test_step_0_runs_as_it_is(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "step0_run.yaml", "-f")
    experiment.assert_completed()
    log = experiment.log
    assert "Training with a single process." in log
    hits = [float(share) for share in re.findall(r"Test: .* top1 ([\d.]+)", log)]
    assert len(hits) == 5
    assert hits[-1] > 80


def test_step_1_has_a_process_for_each_slot(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "step1_distributed.yaml", "-f")
    experiment.assert_completed()
    log = experiment.log
    for rank in (0, 1):
        assert re.search(rf"\[rank={rank}\].*Process {rank}, total 2", log), log


def test_step_2_reports_metrics(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "step2_metrics.yaml", "-f")
    experiment.assert_completed()
    for group in ("training", "validation"):
        assert_epochs(experiment.reports(group), 5)


def test_step_3_pauses_and_goes_on_with_the_next_epoch(cluster: EmbeddedCluster) -> None:
    # An epoch takes a second; more of them leave time for the pause.
    entrypoint = "python3 -m determined.launch.torch_distributed python3 step3_checkpoints.py --epochs 15"
    experiment = create(cluster, "step3_checkpoints.yaml", "--config", f"entrypoint={entrypoint}")
    done = experiment.pause_and_go_on()
    assert 1 <= done < 15
    assert_epochs(experiment.reports("validation"), 15)
    assert f"Starting with epoch {done}" in experiment.log


def test_step_4_searches_and_trains_as_long_as_the_search_says(cluster: EmbeddedCluster) -> None:
    options = ("--config", "hyperparameters.lr.count=2", "--config", "searcher.max_length=2")
    experiment = create(cluster, "step4_hyperparameters.yaml", *options, "-f")
    experiment.assert_completed()
    description = experiment.describe()
    rates = sorted(trial["trial"]["hparams"]["lr"] for trial in description["trials"])
    assert rates == pytest.approx([0.01, 0.1])
    assert len([report for report in description["metrics"] if report["group"] == "validation"]) == 4


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
