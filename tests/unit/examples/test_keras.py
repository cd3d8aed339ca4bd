"""What docs/keras.md shows, and the examples in Keras: all of it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "keras.md"

pytestmark = [
    pytest.mark.integration,
    # Keras gives its arrays of torch to h5py, which asks for them in NumPy's newer way.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning"),
]


def test_the_blocks_of_the_page_run_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resolute.keras.trial import training
    from resolute.runtime.experiment_config import ExperimentConfig

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    found = [path.name for path in (tmp_path / "resolute" / "checkpoints").glob("*/*")]
    assert found.count("model_checkpoint.weights.h5") == 2

    hparams = {"global_batch_size": 16, "lr": 0.1}
    training.test_one_batch(names["SumTrial"], ExperimentConfig({}), hparams=hparams)


@pytest.mark.sampled(1, group="processes with other libraries")
@pytest.mark.parametrize("name", ["keras_iris", "keras_digits"])
def test_every_example_trains_a_batch_and_makes_a_checkpoint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = ROOT / "examples" / name
    config = yaml.safe_load((folder / "const.yaml").read_text())
    command = ["train.py", "--epochs", "1"]
    if name == "keras_digits":
        command = ["-m", "resolute_launch.harness", config["entrypoint"]]
        monkeypatch.setenv("DET_HPARAMS", json.dumps(config["hyperparameters"]))
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "validation metrics at " in done.stderr
    assert len(list((tmp_path / "resolute" / "checkpoints").glob("*/metadata.json"))) >= 1
