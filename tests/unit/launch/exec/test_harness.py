"""A Trial class that a config names, run as the launcher and the command line run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from resolute import import_from_path
from resolute_launch.exec.harness import load_class

ROOT = Path(__file__).resolve().parents[4]
MODEL = """
import torch
from determined.pytorch import DataLoader, PyTorchTrial
from .data import PAIRS

class LineTrial(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(optimizer)

    def build_training_data_loader(self):
        return DataLoader(PAIRS, batch_size=self.context.get_per_slot_batch_size())

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        print("trained batch", batch_idx)
        loss = ((self.model(batch[0]) - batch[1]) ** 2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss

    def evaluate_batch(self, batch):
        return {"validation_loss": (self.model(batch[0]) - batch[1]).abs().mean()}
"""


def run(directory: Path, entrypoint: str) -> subprocess.CompletedProcess[str]:
    (directory / "model_def.py").write_text(MODEL)
    (directory / "data.py").write_text("import torch\nPAIRS = [(torch.ones(2), torch.ones(1))] * 8\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "compat"),
        "XDG_DATA_HOME": str(directory / "home"),
        "DET_HPARAMS": json.dumps({"lr": 0.1, "global_batch_size": 4}),
        "DET_EXPERIMENT_CONFIG": json.dumps({"entrypoint": entrypoint}),
        "DET_TRIAL_SEED": "3",
    }
    command = [sys.executable, "-m", "determined.exec.harness", entrypoint]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_without_a_cluster_one_batch_is_trained_with_relative_imports(tmp_path: Path) -> None:
    done = run(tmp_path, "model_def:LineTrial")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["trained batch 0", ""]
    assert len(list(tmp_path.glob("home/**/state_dict.pth"))) == 1


@pytest.mark.parametrize(
    ("entrypoint", "message"),
    [("no_such:LineTrial", "which is not in the model"), ("model_def:Missing", "does not have")],
)
def test_a_class_that_is_not_there_is_named(tmp_path: Path, entrypoint: str, message: str) -> None:
    done = run(tmp_path, entrypoint)
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("entrypoint", "file", "source"),
    [
        (":MNistTrial", "__init__.py", "from .trials import MNistTrial"),
        (":MNistTrial", "anything.py", "class MNistTrial: ..."),
        ("model_def:CIFAR10Trial", "model_def.py", "class CIFAR10Trial: ..."),
        ("determined_lib/trial.py:FileTrial", "determined_lib/trial.py", "class FileTrial: ..."),
        ("./model_def.py:FileTrial", "model_def.py", "class FileTrial: ..."),
        (
            "determined_lib.trial:trial_classes.NestedTrial",
            "determined_lib/trial.py",
            "class trial_classes:\n    class NestedTrial: ...",
        ),
    ],
    ids=["of a package", "of a single file", "of a module", "of a file below", "of a file", "nested"],
)
def test_the_documented_forms_of_an_entrypoint_are_found(
    entrypoint: str, file: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(source + "\n")
    if file == "__init__.py":
        (tmp_path / "trials.py").write_text("class MNistTrial: ...\n")
    monkeypatch.chdir(tmp_path)
    with import_from_path(tmp_path):
        found = load_class(entrypoint)
    assert found.__qualname__ == entrypoint.partition(":")[2]
