"""The examples with DeepSpeed on a real cluster: two ranks train, are paused, and go on bit for bit."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.embedded import EmbeddedCluster, embedded
from support.examples import ExampleExperiment
from support.ports import free_port

pytestmark = pytest.mark.xdist_group("world-deepspeed-trial")
pytest.importorskip("deepspeed", reason="DeepSpeed is not installed: make worlds installs it")

EXAMPLE = Path(__file__).parents[2] / "examples" / "deepspeed"
EPOCHS = 60
SHOWN = "import logging\nlogging.basicConfig(level=logging.INFO)"
LONG = ("--config", f"searcher.max_length.epochs={EPOCHS}", "--config", "reproducibility.experiment_seed=3")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


def create(cluster: EmbeddedCluster, config: str, *options: str) -> ExampleExperiment:
    return ExampleExperiment.create(cluster, EXAMPLE, config, *options)


def test_a_paused_trial_goes_on_bit_for_bit(cluster: EmbeddedCluster) -> None:
    whole = create(cluster, "trial.yaml", *LONG, "-f")
    whole.assert_completed()
    paused = create(cluster, "trial.yaml", *LONG)
    assert 1 <= paused.pause_and_go_on() < EPOCHS
    for group in ("validation", "training"):
        assert paused.reports(group) == whole.reports(group)
    validations = whole.reports("validation")
    assert len(validations) == EPOCHS
    assert max(metrics["accuracy"] for metrics in validations.values()) > 0.9


def test_a_pipeline_of_two_stages_learns(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "pipeline.yaml", "-f")
    experiment.assert_completed()
    losses = [metrics["validation_loss"] for metrics in experiment.reports("validation").values()]
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 2


def test_a_loop_of_ones_own_keeps_its_shards(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "core_api.yaml", "--config", f"searcher.max_length={EPOCHS}")
    done = experiment.pause_and_go_on()
    log = experiment.log
    for words in ("stopped after epoch", "resumed with epoch"):
        assert re.findall(rf"{words} (\d+)", log) == [str(done)] * 2
    assert len(experiment.reports("validation")) == EPOCHS


def run(command: str, *, home: Path, cwd: Path = EXAMPLE, **variables: str) -> str:
    """Runs a command as at a prompt, without a cluster; returns what it logs."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "RESOLUTE_"))}
    settings = {
        "XDG_DATA_HOME": str(home),
        "PYTHONPATH": str(EXAMPLE.parents[1] / "compat"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "OMP_NUM_THREADS": "1",
        "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
    }
    done = subprocess.run(
        shlex.split(command),
        cwd=cwd,
        env={**given, **settings, **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("launcher", ["python3", "deepspeed"])
def test_the_script_runs_without_a_cluster_as_its_page_says(launcher: str, tmp_path: Path) -> None:
    page = (EXAMPLE / "README.md").read_text()
    (command,) = re.findall(rf"^    ({launcher} .*)$", page, re.MULTILINE)
    said = run(command.replace("2 train.py", f"2 --master_port {free_port()} train.py"), home=tmp_path)
    assert len(re.findall("validation metrics at", said)) == 2, "the chief alone reports, once an epoch"


def test_one_batch_of_the_class_is_trained_as_a_test(tmp_path: Path) -> None:
    hparams = json.dumps({"hidden": 8, "overwrite": {}})
    said = run("python3 -m determined.exec.harness model_def:DigitsTrial", home=tmp_path, DET_HPARAMS=hparams)
    assert re.findall(r"(\w+) metrics at 1 steps", said) == ["training", "validation"]


def test_what_the_page_shows_works_as_it_is_shown(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "deepspeed.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "page.py").write_text("\n".join([SHOWN, *blocks]))
    assert len(re.findall("validation metrics at", run("python3 page.py", home=tmp_path, cwd=tmp_path))) == 2
