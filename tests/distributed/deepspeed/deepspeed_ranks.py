"""Run by DeepSpeed's launcher: what two ranks do must be right, also when they are stopped and continue."""

from __future__ import annotations

import shutil
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import deepspeed
import torch
from deepspeed.pipe import PipelineModule
from support.training.trials import Noisy, local_core, newest_checkpoint, same
from torch import nn
from torch.utils.data import TensorDataset

from resolute import core, pytorch
from resolute.pytorch import Batch
from resolute.pytorch.backends.random_state import seed_all
from resolute.pytorch.deepspeed import DeepSpeedTrial, DeepSpeedTrialContext, ModelParallelUnit, Trainer
from resolute.testing import simulate_preemption

HERE = Path(sys.argv[1])
SEED = 7
LENGTH = 7
RATE = 0.1
POSITIONS = torch.arange(40) / 40
POINTS = TensorDataset(torch.stack([POSITIONS, torch.ones(40)], dim=1), 2 * POSITIONS.unsqueeze(1))


def engine_config(stage: int) -> dict[str, Any]:
    """One of DeepSpeed's configs, with all that a resume could lose."""
    return {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 2,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 1.0,
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5, "warmup_max_lr": 0.05}},
    }


class Counter(pytorch.PyTorchCallback):
    """Counts batches over all runs, on every rank."""

    def __init__(self) -> None:
        self.reports = 0

    def on_training_workload_end(self, avg_metrics: Any, batch_metrics: Any) -> None:
        self.reports += 1

    def state_dict(self) -> dict[str, Any]:
        return {"reports": self.reports}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.reports = state_dict["reports"]


class EngineTrial(DeepSpeedTrial):
    """Data parallel, with ZeRO of some stage, dropout, and noise in the data."""

    stage = 0
    stop_at = -1

    def __init__(self, context: DeepSpeedTrialContext) -> None:
        self.context = context
        torch.manual_seed(1)
        self.counter = Counter()
        self.engine = context.wrap_model_engine(self.build_engine())
        self.absolute = context.wrap_reducer(lambda values: sum(values) / len(values), name="mean")
        self.seen: list[int] = []
        self.signal: Any = None

    def build_engine(self) -> Any:
        model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.3), nn.Linear(8, 1))
        engine, *_ = deepspeed.initialize(
            model=model, optimizer=torch.optim.Adam(model.parameters()), config=engine_config(self.stage)
        )
        return engine

    def build_training_data_loader(self) -> pytorch.DataLoader:
        size = self.context.train_micro_batch_size_per_gpu
        return pytorch.DataLoader(Noisy(), batch_size=size, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(Noisy(), batch_size=self.context.train_micro_batch_size_per_gpu)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"counter": self.counter}

    def stop_if_due(self, batch_idx: int) -> None:
        if self.signal is not None and batch_idx == 3 and self.context.distributed.rank == 0:
            self.signal.request()  # only the chief sees it; all must stop after the same batch
        self.seen.append(batch_idx)

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.stop_if_due(batch_idx)
        x, y = self.context.to_device(next(dataloader_iter))
        loss = ((self.engine(x) - y) ** 2).mean()
        self.engine.backward(loss)
        self.engine.step()
        self.absolute.update(loss.item())
        return {"loss": loss, "lr": self.engine.get_lr()[0]}

    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:
        x, y = self.context.to_device(next(dataloader_iter))
        loss = ((self.engine(x) - y) ** 2).mean()
        self.absolute.update(loss.item())
        return {"validation_loss": loss}

    def weights(self) -> list[torch.Tensor]:
        parameters = list(self.engine.module.parameters())
        with deepspeed.zero.GatheredParameters(parameters):
            return [parameter.detach().clone() for parameter in parameters]


class Stage1(EngineTrial):
    stage = 1


class Stage2(EngineTrial):
    stage = 2


class Stage3(EngineTrial):
    stage = 3


class Pipeline(EngineTrial):
    """One copy of the model, one stage of it on each rank."""

    def build_engine(self) -> Any:
        layers = [nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 1)]
        loss = nn.MSELoss()
        model = PipelineModule(layers=layers, num_stages=2, loss_fn=loss, partition_method="uniform")
        optimizer = torch.optim.Adam(model.parameters())
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=engine_config(0))
        return engine

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.stop_if_due(batch_idx)
        self.stop_if_due(batch_idx)  # its one call trains both micro batches
        loss = self.engine.train_batch(dataloader_iter)
        self.absolute.update(loss.item())
        return {"loss": loss, "lr": self.engine.get_lr()[0]}

    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:
        loss = self.engine.eval_batch(dataloader_iter)
        self.absolute.update(loss.item())
        return {"validation_loss": loss}


def whole_model() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))


class Halves(nn.Module):
    """A model that is split between the ranks: each computes with half of the hidden units."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        into, bias, out = (weight.detach() for weight in whole_model().parameters())
        mine = slice(4 * rank, 4 * rank + 4)
        self.into = nn.Parameter(into[mine].clone())
        self.bias = nn.Parameter(bias[mine].clone())
        self.out = nn.Parameter(out[:, mine].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        part = torch.tanh(x @ self.into.T + self.bias) @ self.out.T
        return Summed.apply(part)  # type: ignore[no-untyped-call,no-any-return]


class Summed(torch.autograd.Function):
    """The sum over ranks, whose gradient every rank takes as it is."""

    @staticmethod
    def forward(ctx: Any, part: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
        total = part.clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return gradient


class Grid:
    """Says to DeepSpeed that both ranks have parts of one copy of the model."""

    def __init__(self) -> None:
        ranks = range(torch.distributed.get_world_size())
        own = [torch.distributed.new_group([rank]) for rank in ranks]
        self._data = own[torch.distributed.get_rank()]
        self._model = torch.distributed.new_group(list(ranks))

    def get_model_parallel_rank(self) -> int:
        return torch.distributed.get_rank()

    def get_model_parallel_world_size(self) -> int:
        return torch.distributed.get_world_size()

    def get_model_parallel_group(self) -> Any:
        return self._model

    def get_data_parallel_rank(self) -> int:
        return 0

    def get_data_parallel_world_size(self) -> int:
        return 1

    def get_data_parallel_group(self) -> Any:
        return self._data


class ModelParallel(EngineTrial):
    """One copy of the model over both ranks, by hand; only the second one reports."""

    def build_engine(self) -> Any:
        model = Halves(self.context.distributed.rank)
        config = {"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.0}
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, mpu=Grid(), config=config)
        return engine

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(POINTS, batch_size=2, shuffle=True)

    def __init__(self, context: DeepSpeedTrialContext) -> None:
        super().__init__(context)
        context.set_mpu(
            ModelParallelUnit(
                data_parallel_rank=0,
                data_parallel_world_size=1,
                should_report_metrics=context.distributed.rank == 1,
                should_build_data_loader=True,
            )
        )


def train(name: str, trial_class: Any, distributed: Any, **options: Any) -> tuple[Any, list[Any]]:
    core_context, recorder = local_core(HERE / name, distributed)
    context = DeepSpeedTrialContext(core_context, SEED, {}, distributed.size, 0, None, 0, False)
    seed_all(55 + distributed.rank + options.pop("disturb", 0))
    trial = trial_class(context)
    trial.signal = options.pop("signal", None)
    seed_all(75 + distributed.rank)
    options = {
        "max_length": Batch(LENGTH),
        "validation_period": Batch(3),
        "reporting_period": Batch(2),
        "checkpoint_policy": "none",
        **options,
    }
    Trainer(trial, context).fit(**options)
    return trial, recorder.reports


def resumes_exactly(trial_class: Any, distributed: Any) -> Any:
    name = trial_class.__name__
    whole, reports = train(f"whole-{name}", trial_class, distributed)
    with simulate_preemption() as signal:
        signal._after_checks = 10**9
        stopped, before = train(f"parts-{name}", trial_class, distributed, signal=signal)
    steps = distributed.allgather(stopped.seen[-1] + 1)
    assert 3 < steps[0] == steps[1] < LENGTH, steps
    checkpoint = newest_checkpoint(HERE / f"parts-{name}")
    resumed, after = train(f"parts-{name}", trial_class, distributed, latest_checkpoint=checkpoint, disturb=5)
    assert resumed.seen[0] == steps[0], (resumed.seen, steps)
    assert same(resumed.weights(), whole.weights())
    assert before + after == reports, (before, after, reports)
    assert resumed.counter.reports == whole.counter.reports
    files = {path.name for path in (HERE / f"parts-{name}" / checkpoint).rglob("*") if path.is_file()}
    assert {f"det_state_dict_rank{rank}.pth" for rank in (0, 1)} | {"load_data.json"} <= files, files
    return resumed


def parts_written_apart_fit_together(trial: Any, distributed: Any) -> None:
    """Where a store is no directory, every rank writes to one of its own."""
    name = type(trial).__name__
    mine = HERE / f"apart-{name}-{distributed.rank}"
    mine.mkdir()
    trial.save(trial.context, mine)
    before = trial.weights()
    distributed.allgather(None)
    if distributed.rank == 0:
        for rank in range(distributed.size):
            shutil.copytree(HERE / f"apart-{name}-{rank}", HERE / f"together-{name}", dirs_exist_ok=True)
    distributed.allgather(None)
    trial.load(trial.context, HERE / f"together-{name}")
    assert same(trial.weights(), before)


def computes_as_one_rank(trial: Any, distributed: Any) -> None:
    """The two halves of a model become what the whole one does."""
    whole = whole_model()
    optimizer = torch.optim.SGD(whole.parameters(), lr=RATE)
    loader = pytorch.DataLoader(POINTS, batch_size=2, shuffle=True).get_data_loader(seed=SEED)
    for x, y in islice(loader, LENGTH):
        optimizer.zero_grad()
        ((whole(x) - y) ** 2).mean().backward()
        optimizer.step()
    halves = zip(*distributed.allgather([weight.tolist() for weight in trial.weights()]), strict=True)
    into, bias, out = (torch.cat([torch.tensor(half) for half in pair], dim=-1) for pair in halves)
    into = torch.cat([into[:, :2], into[:, 2:]])
    for ours, theirs in zip((into, bias, out), whole.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6), (ours, theirs)


def main() -> None:
    deepspeed.init_distributed(auto_mpi_discovery=False)
    distributed = core.DistributedContext.from_deepspeed()
    for trial_class in (EngineTrial, Stage1, Stage2, Stage3, Pipeline, ModelParallel):
        trained = resumes_exactly(trial_class, distributed)
        parts_written_apart_fit_together(trained, distributed)
        print(trial_class.__name__, "is right", flush=True)
    computes_as_one_rank(trained, distributed)
    distributed.close()
    torch.distributed.destroy_process_group()
    (HERE / f"passed-{distributed.rank}").touch()


main()
