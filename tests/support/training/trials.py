"""Small trials for tests of the trainer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

from resolute import core, pytorch
from resolute.contracts.spool.format import Media
from resolute.info import ClusterInfo
from resolute.pytorch import Batch, PyTorchTrialContext
from resolute.pytorch.backends import random_state
from resolute.spool.omissions import Raised

RECORDS = 40


class Noisy(Dataset[Any]):
    """Points of a line, each with noise that is drawn when it is read."""

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        noise = torch.rand(1) * 0.1 + float(np.random.random()) * 0.01
        x = torch.tensor([index / RECORDS, 1.0]) + noise
        return x, x.sum(dim=0, keepdim=True) * 2


class LineTrial(pytorch.PyTorchTrial):
    """Has all that a resume could lose: dropout, momentum, a scheduler, buffers, noise in the data."""

    workers = 0
    fail_at = -1

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        self.model = context.wrap_model(model)
        self.optimizer = context.wrap_optimizer(
            torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        )
        scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=2, gamma=0.9)
        context.wrap_lr_scheduler(scheduler, pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)
        self.absolute = context.wrap_reducer(
            lambda values: float(np.mean(values)), name="absolute", for_validation=False
        )
        self.seen: list[int] = []
        self.state: dict[str, Any] = {}

    def build_training_data_loader(self) -> pytorch.DataLoader:
        size = self.context.get_per_slot_batch_size()
        return pytorch.DataLoader(Noisy(), batch_size=size, shuffle=True, num_workers=self.workers)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(Noisy(), batch_size=8, num_workers=self.workers)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == self.fail_at:
            raise KeyboardInterrupt
        x, y = batch
        loss = ((self.model(x) - y) ** 2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.absolute.update(loss.item())
        self.seen.append(batch_idx)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]  # the older form
        x, y = batch
        return {"validation_loss": ((self.model(x) - y) ** 2).mean() + torch.rand(()) * 0.0}


def weights(trial: Any) -> list[torch.Tensor]:
    """Everything that training has made of a trial's model."""
    return weights_of(trial.context.models[0])


def weights_of(module: Any) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in module.state_dict().values()]


def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def state_of(trial: Any) -> dict[str, Any]:
    """All that decides how training continues, as it is now on this rank."""
    context = trial.context
    scaler = context._precision.scaler
    return copy.deepcopy(
        {
            "weights": [parameter.detach() for model in context.models for parameter in model.parameters()],
            "optimizers": [optimizer.state_dict() for optimizer in context.optimizers],
            "schedulers": [scheduler.state_dict() for scheduler in context.lr_schedulers],
            "scaler": None if scaler is None else scaler.state_dict(),
            "random": random_state.capture(context.device),
        }
    )


def equal(left: Any, right: Any) -> bool:
    """Whether two values are the same, bit for bit, however nested."""
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and torch.equal(left, right)
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


class ScaledTrial(LineTrial):
    """With a scaler too, whose scale changes as training continues."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3))
        super().__init__(context)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        x, y = batch
        loss = ((self.model(x) - y) ** 2).mean()
        self.context.backward(self.scaler.scale(loss))
        self.context.step_optimizer(self.optimizer, scaler=self.scaler)
        if (batch_idx + 1) % self.context._aggregation_frequency == 0:
            self.scaler.update()
        self.absolute.update(loss.item())
        self.seen.append(batch_idx)
        return {"loss": loss}


class Recorder:
    """Takes the place of the reporter off cluster and keeps what is reported."""

    def __init__(self) -> None:
        self.omissions = Raised()
        self.reports: list[tuple[str, int, dict[str, Any]]] = []

    def report(self, group: str, steps: int, metrics: Any) -> None:
        self.reports.append((group, steps, dict(metrics)))

    def flush(self, timeout: float | None = None) -> None: ...

    def confirm(self) -> None: ...

    def log_media(self, media: Media) -> None: ...

    def close(self) -> None: ...

    def of(self, group: str) -> list[tuple[int, dict[str, Any]]]:
        return [(steps, metrics) for kind, steps, metrics in self.reports if kind == group]


def local_core(directory: Path, distributed: Any = None) -> tuple[core.Context, Recorder]:
    """The Core API off cluster, with checkpoints in a directory and reports in a recorder."""
    recorder = Recorder()
    core_context = core._dummy_init(checkpoint_storage=str(directory), distributed=distributed)
    core_context.train._reporter = recorder
    core_context.start()
    return core_context, recorder


def local_context(directory: Path, **options: Any) -> tuple[PyTorchTrialContext, Recorder]:
    """A context off cluster whose checkpoints are in a directory."""
    core_context, recorder = local_core(directory, options.pop("distributed", None))
    context = PyTorchTrialContext(
        core_context,
        trial_seed=options.pop("seed", 7),
        hparams=options.pop("hparams", {"global_batch_size": 8}),
        slots_per_trial=core_context.distributed.size,
        num_gpus=0,
        exp_conf=options.pop("exp_conf", None),
        aggregation_frequency=options.pop("aggregation_frequency", 1),
        steps_completed=0,
        managed_training=False,
        debug_enabled=False,
        enable_tensorboard_logging=False,
        **options,
    )
    return context, recorder


def as_foreign_checkpoint(directory: Path, checkpoint: str) -> None:
    """Makes a checkpoint one that somebody copied here, of which nobody knows what was in it."""
    (directory / ".records" / f"{checkpoint}.json").unlink()


def newest_checkpoint(directory: Path) -> str:
    """Identifier of the checkpoint of the most steps, of those that were finished."""
    import json

    def is_finished(checkpoint: str) -> bool:
        record = directory / ".records" / f"{checkpoint}.json"
        return not record.exists() or bool(json.loads(record.read_text())["finished"])

    found = {
        path.parent.name: json.loads(path.read_text())["steps_completed"]
        for path in directory.glob("*/metadata.json")
        if is_finished(path.parent.name)
    }
    return max(found, key=lambda name: found[name])


NEVER = Batch(10**9)


def notebook_info() -> ClusterInfo:
    """What a notebook of a cluster knows: it is a task, and no trial."""
    return ClusterInfo(
        master_url="http://127.0.0.1:1",
        cluster_id="cluster",
        agent_id="agent",
        slot_ids=[0],
        task_id="task",
        allocation_id="allocation",
        session_token="",
        task_type="NOTEBOOK",
    )
