"""What of training with DeepSpeed needs no DeepSpeed: configs, units, errors that say what to do."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.training.trials import LineTrial, local_context, local_core

from resolute import core
from resolute.contracts.distribution import install_command
from resolute.pytorch import deepspeed
from resolute.pytorch.metrics.aggregation import TrainingMetrics
from resolute.trial_errors import InvalidExperimentException


def context_of(directory: Path, **optimizations: Any) -> deepspeed.DeepSpeedTrialContext:
    core_context, _ = local_core(directory)
    config = {"optimizations": optimizations}
    return deepspeed.DeepSpeedTrialContext(core_context, 7, {}, 1, 0, config, 0, False)


class Unwrapped(deepspeed.DeepSpeedTrial):
    def __init__(self, context: deepspeed.DeepSpeedTrialContext) -> None: ...

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any: ...

    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> Any: ...

    def build_training_data_loader(self) -> None: ...

    def build_validation_data_loader(self) -> None: ...


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepspeed", None)


@pytest.mark.usefixtures("absent")
def test_without_deepspeed_a_training_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match=re.escape(install_command("deepspeed"))), deepspeed.init():
        pass
    with pytest.raises(ImportError, match="needs DeepSpeed"):
        context_of(tmp_path).wrap_model_engine(object())


def test_a_config_is_overwritten_leaf_by_leaf_and_stays_as_it_was() -> None:
    base = {"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.1, "eps": 1e-8}}}
    before = json.loads(json.dumps(base))
    merged = deepspeed.overwrite_deepspeed_config(
        base, {"train_batch_size": 16, "optimizer": {"params": {"lr": 0.2}}, "fp16": {"enabled": True}}
    )
    assert merged == {
        "train_batch_size": 16,
        "optimizer": {"type": "Adam", "params": {"lr": 0.2, "eps": 1e-8}},
        "fp16": {"enabled": True},
    }
    assert base == before
    merged["optimizer"]["params"]["eps"] = 1
    assert base == before


def test_a_config_is_read_from_a_file_that_names_every_key_once(tmp_path: Path) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 1}}')
    merged = deepspeed.overwrite_deepspeed_config(str(path), {"zero_optimization": {"stage": 2}})
    assert merged == {"train_batch_size": 8, "zero_optimization": {"stage": 2}}
    path.write_text('{"zero_optimization": {"stage": 1, "stage": 2}}')
    with pytest.raises(ValueError, match="more than one value of stage"):
        deepspeed.overwrite_deepspeed_config(path, {})
    with pytest.raises(TypeError, match="a list"):
        deepspeed.overwrite_deepspeed_config([], {})  # type: ignore[arg-type]


@dataclass
class Grid:
    stage: int
    slice: int = 0

    def get_pipe_parallel_rank(self) -> int:
        return self.stage

    def get_pipe_parallel_world_size(self) -> int:
        return 3

    def get_slice_parallel_rank(self) -> int:
        return self.slice

    def get_data_parallel_rank(self) -> int:
        return 1

    def get_data_parallel_world_size(self) -> int:
        return 2


def test_the_ends_of_a_pipeline_need_data_and_every_rank_reports() -> None:
    units = [deepspeed.make_deepspeed_mpu(grid) for grid in (Grid(0), Grid(1), Grid(2), Grid(2, slice=1))]
    assert [unit.should_build_data_loader for unit in units] == [True, False, True, False]
    assert {(unit.data_parallel_rank, unit.data_parallel_world_size) for unit in units} == {(1, 2)}
    assert all(unit.should_report_metrics for unit in units)


def test_without_model_parallelism_every_rank_has_its_share_of_the_data() -> None:
    unit = deepspeed.make_data_parallel_mpu(core.DummyDistributedContext())
    assert unit == deepspeed.ModelParallelUnit(0, 1, True, True)


@pytest.mark.parametrize(
    ("optimizations", "said"),
    [
        ({"mixed_precision": "O1"}, "set fp16 or bf16 in DeepSpeed's config"),
        ({"aggregation_frequency": 2}, "gradient_accumulation_steps in DeepSpeed's config"),
    ],
)
def test_what_deepspeeds_config_decides_is_refused_in_the_experiments(
    tmp_path: Path, optimizations: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidExperimentException, match=said):
        context_of(tmp_path, **optimizations)


def test_settings_of_other_frameworks_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    context_of(tmp_path, gradient_compression=True)
    assert "optimizations.gradient_compression has no effect" in caplog.text


def test_sizes_and_units_are_known_once_an_engine_is_wrapped(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    for ask in ("train_micro_batch_size_per_gpu", "num_micro_batches_per_slot"):
        with pytest.raises(InvalidExperimentException, match=rf"wrap_model_engine\(\).*{ask}"):
            getattr(context, ask)
    with pytest.raises(InvalidExperimentException, match="after the first wrap_model_engine"):
        context.set_mpu(deepspeed.ModelParallelUnit(0, 1, True, True))
    assert not context.use_pipeline_parallel


def test_a_trainer_takes_deepspeed_trials_with_an_engine_only(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    with pytest.raises(TypeError, match=r"derived from resolute\.pytorch\.deepspeed\.DeepSpeedTrial"):
        deepspeed.Trainer(LineTrial(local_context(tmp_path / "line")[0]), context)
    with pytest.raises(InvalidExperimentException, match="has wrapped no engine"):
        deepspeed.Trainer(Unwrapped(context), context)


def test_ranks_without_metrics_do_not_count_in_means() -> None:
    silent: list[dict[str, Any]] = [{}, {}]
    metrics = TrainingMetrics(lambda mine: [silent, mine, [{"loss": 3.0}, {"loss": 5.0}]])
    metrics.add({"loss": 1.0})
    metrics.add({"loss": 3.0})
    averages, batches = metrics.take()
    assert averages == {"loss": 3.0}
    assert batches == [{"loss": 2.0}, {"loss": 4.0}]
