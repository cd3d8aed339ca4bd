from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from support.training.trials import LineTrial, local_context
from torch import nn

import resolute
from resolute import ClusterInfo, pytorch
from resolute.core import DummyDistributedContext
from resolute.pytorch import LRScheduler
from resolute.pytorch.backends.gradient_exchange import SingleRank, choose_backend, import_horovod
from resolute.trial_errors import InternalException, InvalidExperimentException


@pytest.fixture
def context(tmp_path: Path) -> pytorch.PyTorchTrialContext:
    return local_context(tmp_path)[0]


def test_hyperparameters_are_those_given(context: pytorch.PyTorchTrialContext) -> None:
    assert context.get_hparams() == {"global_batch_size": 8}
    assert context.get_global_batch_size() == context.get_per_slot_batch_size() == 8
    with pytest.raises(ValueError, match="no hyperparameter 'lr'"):
        context.get_hparam("lr")


def test_the_batch_of_all_slots_is_not_for_a_loader(
    context: pytorch.PyTorchTrialContext, caplog: pytest.LogCaptureFixture
) -> None:
    assert context.get_hparam("global_batch_size") == 8
    assert "get_per_slot_batch_size" in caplog.text


def test_what_was_not_given_says_how_to_give_it(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path, hparams=None)
    for ask in (context.get_hparams, context.get_global_batch_size, context.get_per_slot_batch_size):
        with pytest.raises(ValueError, match=r"pytorch\.init\(hparams=...\)"):
            ask()
    with pytest.raises(ValueError, match=r"pytorch\.init\(exp_conf=...\)"):
        context.get_experiment_config()
    configured, _ = local_context(tmp_path, exp_conf={"data": {"url": "x"}})
    assert configured.get_data_config() == {"url": "x"}


@pytest.mark.parametrize("size", ["many", 1.5, True])
def test_the_size_of_a_batch_is_a_whole_number(tmp_path: Path, size: Any) -> None:
    with pytest.raises(InvalidExperimentException, match=f"is {size!r}; a whole number was expected"):
        local_context(tmp_path, hparams={"global_batch_size": size})


def test_every_slot_needs_a_record(tmp_path: Path) -> None:
    class Two(DummyDistributedContext):
        def __init__(self) -> None:
            super().__init__()
            self.size = 2

    with pytest.raises(InvalidExperimentException, match="is 1, and the trial has 2 slots"):
        local_context(tmp_path, hparams={"global_batch_size": 1}, distributed=Two(), backend=SingleRank())
    with pytest.raises(ValueError, match="USE_TORCH_DISTRIBUTED"):
        choose_backend(Two(), {})
    with pytest.raises(ValueError, match="init_process_group"):
        choose_backend(Two(), {"USE_TORCH_DISTRIBUTED": "true"})


@pytest.mark.skipif(importlib.util.find_spec("horovod") is not None, reason="Horovod is installed here")
def test_a_missing_horovod_is_named() -> None:
    with pytest.raises(ImportError, match="USE_HOROVOD asks for Horovod"):
        import_horovod()


def test_a_context_off_cluster_can_be_drawn_from_a_config() -> None:
    rate = {"type": "log", "minval": -4, "maxval": -2, "base": 10}
    config = {
        "hyperparameters": {"lr": rate, "global_batch_size": 12},
        "reproducibility": {"experiment_seed": 3},
        "optimizations": {"aggregation_frequency": 2},
        "data": {"url": "somewhere"},
    }
    first, second = (pytorch.PyTorchTrialContext.from_config(config) for _ in range(2))
    assert 1e-4 <= first.get_hparam("lr") <= 1e-2
    assert first.get_hparams() == second.get_hparams()
    assert first.get_per_slot_batch_size() == 12
    assert first.get_data_config() == {"url": "somewhere"}
    assert first.get_trial_seed() == 3


def test_there_is_no_current_batch_before_training(context: pytorch.PyTorchTrialContext) -> None:
    for ask in (
        context.current_train_batch,
        context.current_train_epoch,
        context.is_epoch_start,
        context.is_epoch_end,
    ):
        with pytest.raises(InternalException, match="training has not begun"):
            ask()
    assert context.get_initial_batch() == 0


def test_schedulers_need_wrapped_optimizers(context: pytorch.PyTorchTrialContext) -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises(InvalidExperimentException, match="wrap_optimizer"):
        context.wrap_lr_scheduler(scheduler, LRScheduler.StepMode.STEP_EVERY_BATCH)
    context.wrap_optimizer(optimizer)
    assert context.wrap_lr_scheduler(scheduler, LRScheduler.StepMode.STEP_EVERY_BATCH) is scheduler
    with pytest.raises(InvalidExperimentException, match="at least 1"):
        context.wrap_optimizer(optimizer, backward_passes_per_step=0)


def batch_of(context: pytorch.PyTorchTrialContext, number: int) -> None:
    context._batch_idx = number


def test_aggregated_gradients_are_averaged_clipped_and_reset(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path, aggregation_frequency=2)
    model = context.wrap_model(nn.Linear(1, 1, bias=False))
    nn.init.zeros_(model.weight)
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    seen: list[float] = []

    def clip(parameters: Any) -> None:
        for parameter in parameters:
            seen.append(parameter.grad.item())
            parameter.grad.clamp_(max=1.5)

    for number, scale in enumerate((1.0, 3.0)):
        batch_of(context, number)
        context.backward((model(torch.ones(1, 1)) * scale).sum())
        context.step_optimizer(optimizer, clip_grads=clip)
    assert seen == [2.0]
    assert model.weight.item() == -1.5
    assert model.weight.grad is None
    with pytest.raises(InvalidExperimentException, match="auto_zero_grads"):
        context.step_optimizer(optimizer, auto_zero_grads=False)


def test_mixed_precision_casts_the_forward_pass(context: pytorch.PyTorchTrialContext) -> None:
    context.experimental.use_amp()
    model = context.wrap_model(nn.Linear(2, 2))
    expected = torch.float16 if context.device.type == "cuda" else torch.bfloat16
    assert model(torch.ones(1, 2, device=context.device)).dtype is expected


def test_one_model_alone_may_cast_its_forward_pass(context: pytorch.PyTorchTrialContext) -> None:
    other, model = (context.wrap_model(nn.Linear(2, 2)) for _ in range(2))
    assert context.autocast_forward_pass(model) is model
    expected = torch.float16 if context.device.type == "cuda" else torch.bfloat16
    batch = torch.ones(1, 2, device=context.device)
    assert (model(batch).dtype, other(batch).dtype) == (expected, torch.float32)


def test_options_of_torch_are_passed_on(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path)
    scaler = {"init_scale": 4.0, "growth_interval": 3}
    context.experimental.use_amp(autocast_options={"dtype": torch.float16}, scaler_options=scaler)
    model = context.wrap_model(nn.Linear(2, 2))
    batch = torch.ones(1, 2, device=context.device)
    assert model(batch).dtype is torch.float16
    assert context._precision.scaler.get_scale() == 4.0
    alone = context.autocast_forward_pass(nn.Linear(2, 2), autocast_options={"enabled": False})
    assert alone(batch.cpu()).dtype is torch.float32
    records: Any = list(range(4))
    loader = pytorch.DataLoader(records, in_order=False).get_data_loader()
    assert loader.in_order is False
    with pytest.raises(TypeError, match="in_ordr"):
        pytorch.DataLoader(records, in_ordr=False).get_data_loader()


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (
            {"find_unused": True},
            "ddp_options has find_unused; torch's DistributedDataParallel takes .*unused_",
        ),
        ({"static_graph": True}, "aggregation_frequency is 2: torch does not aggregate"),
    ],
)
def test_options_that_would_fail_on_several_ranks_are_refused_on_one(
    tmp_path: Path, options: dict[str, Any], refusal: str
) -> None:
    context, _ = local_context(tmp_path, aggregation_frequency=2)
    with pytest.raises(InvalidExperimentException, match=refusal):
        context.wrap_model(nn.Linear(2, 2), ddp_options=options)
    model = context.wrap_model(nn.Linear(2, 2), ddp_options={"find_unused_parameters": True})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(InvalidExperimentException, match="backward_passes_per_step: give it to wrap_optim"):
        context.wrap_optimizer(optimizer, horovod_options={"backward_passes_per_step": 2})
    context.wrap_optimizer(optimizer, horovod_options={"num_groups": 2})


@pytest.mark.parametrize("option", ["find_unused_parameters", "static_graph"])
def test_an_error_of_torch_that_asks_for_an_option_says_how_a_trial_gives_it(
    tmp_path: Path, option: str
) -> None:
    class Failing(LineTrial):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            raise RuntimeError(f"pass {option}=True to torch.nn.parallel.DistributedDataParallel")

    context, _ = local_context(tmp_path)
    with pytest.raises(RuntimeError, match=rf'ddp_options=\{{"{option}": True\}}'):
        pytorch.Trainer(Failing(context), context).fit(max_length=pytorch.Batch(1))


def test_a_sharded_model_is_refused_with_what_trains_it(tmp_path: Path) -> None:
    from torch.distributed.fsdp import fully_shard

    context, _ = local_context(tmp_path)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/ranks", world_size=1, rank=0)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        sharded: Any = fully_shard(nn.Linear(1, 1), mesh=mesh)
        with pytest.raises(InvalidExperimentException, match=r"resolute\.pytorch\.sharded"):
            context.wrap_model(sharded)
    finally:
        torch.distributed.destroy_process_group()


def test_ways_of_mixed_precision_exclude_each_other_and_come_first(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path)
    context.wrap_model(nn.Linear(1, 1))
    for late in (context.experimental.use_amp, lambda: context.wrap_scaler(torch.amp.GradScaler("cpu"))):
        with pytest.raises(InvalidExperimentException, match=r"before the first wrap_model\(\)"):
            late()
    twice, _ = local_context(tmp_path)
    twice.experimental.use_amp()
    with pytest.raises(InvalidExperimentException, match="one only"):
        twice.wrap_scaler(torch.amp.GradScaler("cpu"))
    with pytest.raises(InvalidExperimentException, match="cannot be combined"):
        twice.configure_apex_amp([], [])


def test_a_missing_apex_names_what_there_is_instead(context: pytorch.PyTorchTrialContext) -> None:
    with pytest.raises(InvalidExperimentException, match=r"experimental\.use_amp\(\)"):
        context.configure_apex_amp([], [])


def test_a_scaler_of_the_trial_steps_the_optimizer(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path)
    scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", init_scale=8.0))
    model = context.wrap_model(nn.Linear(1, 1, bias=False))
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    before = model.weight.item()
    batch_of(context, 0)
    seen: list[float] = []

    context.backward(scaler.scale(model(torch.ones(1, 1)).sum()))
    context.step_optimizer(
        optimizer,
        clip_grads=lambda ps: seen.extend(p.grad.item() for p in ps if p.grad is not None),
        scaler=scaler,
    )
    scaler.update()
    assert seen == [1.0]
    assert model.weight.item() == pytest.approx(before - 1.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: none is here")
def test_a_gpu_is_chosen_and_losses_are_scaled(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path)
    assert context.device.type == "cuda"
    context.experimental.use_amp()
    model = context.wrap_model(nn.Linear(1, 1))
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    batch_of(context, 0)
    context.backward(model(torch.ones(1, 1, device=context.device)).sum())
    context.step_optimizer(optimizer)
    context._precision.end_batch()
    assert context._precision.scaler.get_scale() > 1


def test_asking_to_stop_takes_a_bool(context: pytorch.PyTorchTrialContext) -> None:
    context.set_stop_requested(True)
    assert context.get_stop_requested()
    with pytest.raises(AssertionError):
        context.set_stop_requested("yes")  # type: ignore[arg-type]


def test_init_off_cluster_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytorch.init(hparams={"lr": 1.0}, aggregation_frequency=2) as context:
        assert context.get_hparam("lr") == 1.0
        assert context.distributed.size == 1
        assert context.get_trial_id() == 0
        assert context.get_tensorboard_path().is_dir()


def test_a_model_comes_before_apex(context: pytorch.PyTorchTrialContext) -> None:
    context._precision.apex = object()  # as configure_apex_amp() leaves it where apex is installed
    with pytest.raises(
        InvalidExperimentException, match=r"wrap_model\(\) must come before configure_apex_amp"
    ):
        context.wrap_model(nn.Linear(1, 1))
    with pytest.raises(InvalidExperimentException, match="once only"):
        context.configure_apex_amp([], [])


@pytest.mark.filterwarnings("ignore:Using backward")
def test_backward_takes_the_arguments_of_torch(context: pytorch.PyTorchTrialContext) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    context.backward(x * x, gradient=torch.tensor([1.0, 10.0]), retain_graph=True)
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 40.0]
    again = torch.tensor([1.0, 2.0], requires_grad=True)
    context.backward((again**3).sum(), create_graph=True)
    assert again.grad is not None
    (second,) = torch.autograd.grad(again.grad.sum(), again)
    assert second.tolist() == [6.0, 12.0]
    again.grad = None


def test_tensorboard_can_be_switched(context: pytorch.PyTorchTrialContext) -> None:
    context.set_enable_tensorboard_logging(True)
    assert context.get_enable_tensorboard_logging() is True
    with pytest.raises(AssertionError, match="a bool"):
        context.set_enable_tensorboard_logging("yes")  # type: ignore[arg-type]


def test_a_notebook_of_a_cluster_trains_as_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = ClusterInfo("http://a", "cluster", "agent", [0], "task", "allocation", "", "NOTEBOOK")
    monkeypatch.setattr(resolute, "get_cluster_info", lambda: notebook)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytorch.init(hparams={"global_batch_size": 8}) as context:
        assert context.get_trial_id() == context.get_experiment_id() == 0
        trial = LineTrial(context)
        with pytest.raises(ValueError, match="max_length must be given off cluster"):
            pytorch.Trainer(trial, context).fit()
        pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(1), test_mode=True)
    assert trial.seen == [0]
