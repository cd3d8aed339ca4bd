"""Hooks into checkpoints."""

import csv
from pathlib import Path

from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from resolute.pytorch import PyTorchCallback


class AveragedWeights(PyTorchCallback):
    """Keeps a running mean of the weights, which evaluates better than the latest ones.

    It is a state like any other: a trial that is paused and goes on has the mean that it had.
    """

    def __init__(self, model, decay):
        self.model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))

    def state_dict(self):
        return self.model.state_dict()

    def load_state_dict(self, state_dict):
        self.model.load_state_dict(state_dict)


class ConfusionTable(PyTorchCallback):
    """Writes what the latest validation took for what, as a file of each checkpoint."""

    def __init__(self, confusion):
        self.confusion = confusion

    def on_checkpoint_save_start(self, checkpoint):
        # Whoever loads the weights elsewhere can see what they are for.
        checkpoint["classes"] = [str(digit) for digit in range(10)]

    def on_checkpoint_write_end(self, checkpoint_dir):
        if self.confusion.latest is not None:
            with (Path(checkpoint_dir) / "confusion.csv").open("w", newline="") as file:
                csv.writer(file).writerows(self.confusion.latest.tolist())
