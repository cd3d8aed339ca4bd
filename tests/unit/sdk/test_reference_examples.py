"""Every public name in the reference of Python has an example, and these examples run."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from support.pages.reference_examples import (
    CLIENT,
    OTHER_LIBRARIES,
    WITHOUT_CLUSTER,
    class_of_example,
    has_example,
    offered,
    run_examples,
)

import resolute
from resolute import pytorch

MODEL = """
import keras
import numpy
from resolute.keras import TFKerasTrial

class SumTrial(TFKerasTrial):
    def build_model(self):
        layers = [keras.Input((4,)), keras.layers.Dense(1)]
        model = self.context.wrap_model(keras.Sequential(layers, name="sums"))
        model.compile(optimizer="adam", loss="mse")
        return model

    def build_training_data_loader(self):
        x = numpy.ones((32, 4))
        return x, x.sum(axis=1)

    def build_validation_data_loader(self):
        return self.build_training_data_loader()
"""


def test_every_public_name_has_an_example() -> None:
    names = offered(CLIENT, *WITHOUT_CLUSTER, *OTHER_LIBRARIES)
    assert [name for name, value in names.items() if not has_example(value)] == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to run in, with no cluster in reach."""
    monkeypatch.chdir(tmp_path)
    for variable in ("RESOLUTE_MASTER", "DET_MASTER", "RESOLUTE_OFFLINE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    # Where DeepSpeed is installed, it would say among the output of examples which accelerator it has chosen.
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def test_the_examples_run_one_by_one_without_a_cluster(folder: Path) -> None:
    del folder
    count, failures = run_examples(
        *WITHOUT_CLUSTER, given={"Line": class_of_example(pytorch.PyTorchTrial, "Line")}
    )
    assert failures == ""
    assert count >= 40


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_examples_for_other_libraries_run_one_by_one(folder: Path) -> None:
    count, failures = run_examples(*OTHER_LIBRARIES, given={"path": keras_checkpoint(folder)})
    assert failures == ""
    assert count >= 15


def keras_checkpoint(folder: Path) -> Path:
    """Trains one batch of a model, and gives its checkpoint."""
    from resolute.keras.trial import training
    from resolute.runtime.experiment_config import ExperimentConfig

    code = folder / "code"
    code.mkdir()
    (code / "sums_model.py").write_text(MODEL)
    with resolute.import_from_path(code):
        trial = importlib.import_module("sums_model").SumTrial
        training.test_one_batch(trial, ExperimentConfig({}), hparams={"global_batch_size": 16})
    described = (folder / "data" / "resolute" / "checkpoints").rglob("load_data.json")
    return next(described).parent
