"""The examples with DeepSpeed on a real cluster: two ranks train, are paused, and continue bit for bit."""

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
from support.backends import need_module
from support.clusters.distributed import DistributedScript, Submit
from support.clusters.embedded import EmbeddedCluster, embedded
from support.ports import free_port

from resolute.client import ExperimentState

need_module("deepspeed")

EXAMPLE = Path(__file__).parents[3] / "examples" / "deepspeed"
TRIAL = "model_def:DigitsTrial"
EPOCHS = 30
EPOCH = 22
"""Batches of one."""
BUSY = 240.0
"""Seconds that a few epochs may take where others train too."""
SHOWN = "import logging\nlogging.basicConfig(level=logging.INFO)"
LONG = (
    f"searcher.max_length.epochs={EPOCHS}",
    "reproducibility.experiment_seed=3",
    "min_checkpoint_period.epochs=5",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


def test_a_paused_trial_and_one_that_lost_a_rank_go_on_bit_for_bit(submit: Submit) -> None:
    whole, paused, killed = (submit(script("trial.yaml", TRIAL), *LONG) for _ in range(3))
    whole.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    paused.wait_for_step(EPOCH, timeout=BUSY)
    paused.experiment.pause()
    paused.wait_for(ExperimentState.PAUSED)
    assert len(paused.metrics("validation")) < EPOCHS
    killed.wait_for_step(6 * EPOCH, timeout=BUSY)
    killed.kill_rank(1)
    killed.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    paused.experiment.activate()
    paused.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    assert (paused.restarts, killed.restarts) == (0, 1)
    for group in ("training", "validation"):
        assert paused.metrics(group) == whole.metrics(group)
    assert killed.metrics("validation") == whole.metrics("validation")
    assert list(whole.metrics("validation")) == [EPOCH * epoch for epoch in range(1, EPOCHS + 1)]
    assert max(metrics["accuracy"] for metrics in whole.metrics("validation").values()) > 0.9
    files = {Path(name).name for name in paused.trial.list_checkpoints()[0].resources}
    assert {f"det_state_dict_rank{rank}.pth" for rank in (0, 1)} <= files
    assert {f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (0, 1)} <= files


def test_a_pipeline_of_two_stages_learns(submit: Submit) -> None:
    trial = submit(script("pipeline.yaml", "pipeline_def:PipelineTrial"))
    trial.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    losses = [metrics["validation_loss"] for metrics in trial.metrics("validation").values()]
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 2


def test_a_loop_of_ones_own_keeps_its_shards(submit: Submit) -> None:
    trial = submit(script("core_api.yaml", "core_api.py"), f"searcher.max_length={EPOCHS}")
    trial.wait_for_step(1, timeout=BUSY)
    trial.experiment.pause()
    trial.wait_for(ExperimentState.PAUSED)
    done = len(trial.metrics("validation"))
    trial.experiment.activate()
    trial.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    for words in ("stopped after epoch", "resumed with epoch"):
        assert trial.logged_steps(words) == [done, done]
    assert len(trial.metrics("validation")) == EPOCHS


def script(config: str, runs: str) -> DistributedScript:
    return DistributedScript(folder=EXAMPLE, config=config, script=runs)


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
