"""The trainer of PyTorch against the real services: what only a cluster decides."""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from support.clusters.trial_cluster import Trial, cluster
from support.training.trials import LineTrial, Noisy, local_context, same, weights

import resolute
from resolute import pytorch
from resolute.api.searcher.v1 import search_spec_pb2
from resolute.core.system_metrics import MachineSampler
from resolute.pytorch import Batch, Trainer
from resolute.pytorch.backends.random_state import seed_all

LENGTH = 8
"""What the only operation of the search asks for, in batches."""


class Judged(LineTrial):
    """Its validation gives the metric that the search decides by, as it is told."""

    losses: Any = (4.0, 2.0, 3.0, 1.0)

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.validations = 0

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]
        return {"loss": self.losses[self.validations % len(self.losses)]}

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        trial = self

        class Counting(pytorch.PyTorchCallback):
            def on_validation_end(self, metrics: dict[str, Any]) -> None:
                trial.validations += 1

        return {"counting": Counting()}


def fit(trial_class: Any = Judged, **options: Any) -> Any:
    """Trains as a script of a trial does."""
    with pytorch.init(hparams={"global_batch_size": 8}) as context:
        trial = trial_class(context)
        seed_all(5)
        Trainer(trial, context).fit(**options)
    return trial


def steps(trial: Trial, group: str) -> list[int]:
    return [step for step, _ in trial.series(group, "loss")]


def saved_steps(trial: Trial) -> list[int]:
    """How far training was in each checkpoint."""
    files = trial.path.glob("checkpoints/*/metadata.json")
    return sorted(json.loads(file.read_text())["steps_completed"] for file in files)


def by_time(trial: Trial, monkeypatch: pytest.MonkeyPatch, searcher: dict[str, Any]) -> None:
    trial.time_metric = "batches"
    trial.config = {"searcher": searcher}
    trial.enter(monkeypatch)


def test_a_search_by_time_leaves_the_length_to_the_script(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_time(trial, monkeypatch, {})
    trained = fit(max_length=Batch(5), reporting_period=Batch(2), validation_period=Batch(3))
    assert trained.seen == list(range(5))
    assert steps(trial, "training") == [2, 3, 4, 5]
    assert steps(trial, "validation") == [3, 5]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (None, ValueError, r"max_length is missing: this search is driven by time"),
        (5, TypeError, r"max_length is 5; pytorch\.Batch\(number\) or pytorch\.Epoch\(number\) was expected"),
    ],
)
def test_a_search_by_time_wants_a_length(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, given: Any, error: type[Exception], message: str
) -> None:
    by_time(trial, monkeypatch, {})
    with pytest.raises(error, match=message):
        fit(max_length=given)


def test_the_length_of_an_older_config_counts_and_is_warned_of(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_time(trial, monkeypatch, {"max_length": {"batches": 4}})
    with pytest.warns(FutureWarning, match=r"searcher\.max_length of the config is deprecated here"):
        assert fit().seen == list(range(4))


def test_the_search_decides_how_long_and_the_intervals_when(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        trained = fit(max_length=Batch(3), reporting_period=Batch(3), validation_period=Batch(4))
    assert "max_length has no effect on a cluster" in caplog.text
    assert trained.seen == list(range(LENGTH))
    assert steps(trial, "training") == [3, 4, 6, 8]
    assert steps(trial, "validation") == [4, 8]
    assert trial.services.notes.statuses[-1] in {"training", "checkpointing"}


def test_the_policy_best_keeps_each_validation_that_is_better_than_all_before(trial: Trial) -> None:
    fit(validation_period=Batch(2))
    assert steps(trial, "validation") == [2, 4, 6, 8]
    assert saved_steps(trial) == [2, 4, 8]  # 3.0 after 6 batches is worse than 2.0 after 4


def test_the_policy_none_keeps_the_end_only(trial: Trial) -> None:
    fit(validation_period=Batch(2), checkpoint_policy="none")
    assert saved_steps(trial) == [LENGTH]


def test_a_trial_can_be_validated_before_its_first_batch(trial: Trial) -> None:
    fit(step_zero_validation=True)
    assert steps(trial, "validation") == [0, LENGTH]


def test_the_share_of_training_that_waits_for_data_is_reported(trial: Trial) -> None:
    never = threading.Event()
    stalls: list[float] = []
    trained: list[float] = []

    class Stalling(Noisy):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            began = time.perf_counter()
            never.wait(0.15)  # long beside what a busy machine adds
            batch = [self[index] for index in indices]
            stalls.append(time.perf_counter() - began)
            return batch

    class Stalled(Judged):
        def build_training_data_loader(self) -> pytorch.DataLoader:
            return pytorch.DataLoader(Stalling(), batch_size=8)

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            began = time.perf_counter()
            returned = super().train_batch(batch, epoch_idx, batch_idx)
            # Of a batch 38 % is the stall, as far as a busy machine wakes in time.
            never.wait(max(0.0, began + stalls[-1] * 62 / 38 - time.perf_counter()))
            trained.append(time.perf_counter() - began)
            return returned

    fit(Stalled, reporting_period=Batch(4), validation_period=Batch(8))
    parts = [(sum(stalls[first : first + 4]), sum(trained[first : first + 4])) for first in (0, 4)]
    shares = [stall / (stall + training) for stall, training in parts]
    waits = trial.series("throughput", "data_wait")
    assert [step for step, _ in waits] == [4, 8]
    assert [share for _, share in waits] == pytest.approx(shares, abs=0.03)
    assert all(0.1 < share <= 0.4 for share in shares), "the stall was planted"
    assert all(rate < 1 / 0.39 for _, rate in trial.series("throughput", "batches_per_second"))


def test_tokens_and_the_use_of_the_slots_are_reported_of_a_trial_that_says_its_costs(trial: Trial) -> None:
    class Costly(Judged):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.set_batch_cost(tokens=10, flops=3.0, peak_flops=6.0)

    fit(Costly, reporting_period=Batch(4))
    rates = [value for _, value in trial.series("throughput", "batches_per_second")]
    tokens = [value for _, value in trial.series("throughput", "tokens_per_second")]
    used = [value for _, value in trial.series("throughput", "mfu")]
    assert len(rates) == 2
    assert tokens == pytest.approx([10 * rate for rate in rates])
    assert used == pytest.approx([rate / 2 for rate in rates])


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"other": 1.0}, "configured to use metric 'loss', but the validation gave other"),
        ({"loss": torch.tensor([1.0, 2.0])}, "which must be a scalar, not a list"),
    ],
)
def test_a_searcher_metric_that_is_missing_or_no_number_is_named(
    trial: Trial, metrics: dict[str, Any], message: str
) -> None:
    class Wrong(Judged):
        def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]
            return metrics

    with pytest.raises(RuntimeError, match=message):
        fit(Wrong)


def test_a_test_of_one_batch_is_for_off_cluster(trial: Trial) -> None:
    with pytest.raises(ValueError, match="test_mode is for training off cluster"):
        fit(test_mode=True)


def test_a_length_without_a_unit_is_refused(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    trial.config["searcher"]["max_length"] = 8
    trial.enter(monkeypatch)
    with pytest.raises(ValueError, match="Searcher units must be configured"):
        fit()


def test_hyperparameters_are_not_filled_in_by_themselves(trial: Trial) -> None:
    with pytorch.init() as context, pytest.raises(ValueError, match=r"get_cluster_info\(\)\.trial\.hparams"):
        context.get_hparams()


def test_several_slots_need_a_launch_layer(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    info = resolute.get_cluster_info()
    assert info is not None
    monkeypatch.setattr(info, "slot_ids", [0, 1])
    with pytest.raises(ValueError, match="must wrap your training script"), pytorch.init():
        pass


def test_the_launch_layer_of_deepspeed_needs_a_trial_of_it(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = resolute.get_cluster_info()
    assert info is not None
    monkeypatch.setattr(info, "slot_ids", [0, 1])
    monkeypatch.setenv("USE_DEEPSPEED", "1")
    with pytest.raises(ValueError, match="deepspeed use a DeepSpeedTrial"), pytorch.init():
        pass


def test_a_trial_that_is_preempted_goes_on_in_its_next_run(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Preempted(Judged):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            if batch_idx == 4:
                trial.flags.set_signal(revision=2, preempt=True)
            return super().train_batch(batch, epoch_idx, batch_idx)

    stopped = fit(Preempted, reporting_period=Batch(2))
    assert stopped.seen == [0, 1, 2, 3, 4]
    assert trial.flags.acknowledged_revision == 2
    (checkpoint,) = {file.parent.name for file in trial.path.glob("checkpoints/*/metadata.json")}
    trial.end()
    second = dataclasses.replace(trial, run=2)
    try:
        second.enter(monkeypatch)
        resumed = fit(reporting_period=Batch(2), latest_checkpoint=checkpoint)
        assert resumed.seen == [5, 6, 7]
        assert steps(second, "training") == [2, 4, 6, 8]
        assert steps(second, "validation") == [8]
        assert same(weights(resumed), weights(trained_alone(tmp_path / "alone")))
    finally:
        second.end()


def trained_alone(directory: Path) -> Judged:
    """A trial that was trained as long without a cluster and without a stop, with the seed of the other."""
    context, _ = local_context(directory, seed=3)
    trial = Judged(context)
    seed_all(5)
    Trainer(trial, context).fit(max_length=Batch(LENGTH), reporting_period=Batch(2), checkpoint_policy="none")
    return trial


def test_training_anew_beside_a_checkpoint_is_warned_of(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    info = resolute.get_cluster_info()
    monkeypatch.setattr(info, "_latest_checkpoint", "5ca1ab1e")
    with caplog.at_level(logging.WARNING):
        fit()
    assert "fit() was called without it: training begins anew" in caplog.text


def test_a_trial_that_fails_on_its_way_to_the_next_length_begins_at_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Judged):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            if batch_idx == 6:
                raise OSError("the disk is full")
            return super().train_batch(batch, epoch_idx, batch_idx)

    halving = search_spec_pb2.AsyncHalvingMethod(
        num_rungs=2, max_length=12, max_trials=1, divisor=3, stop_once=True
    )
    with cluster(tmp_path, max_length=12, halving=halving) as trial:
        trial.enter(monkeypatch)
        with pytest.raises(OSError, match="disk"):
            fit(Failing, checkpoint_policy="none")
        assert steps(trial, "validation") == [4]
        assert saved_steps(trial) == [4]
        (checkpoint,) = {file.parent.name for file in trial.path.glob("checkpoints/*/metadata.json")}
        assert fit(checkpoint_policy="none", latest_checkpoint=checkpoint).seen == list(range(4, 12))
        assert saved_steps(trial) == [4, 12]


def test_the_machine_is_sampled_while_a_trial_trains_if_asked_for(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled = threading.Event()
    measure = MachineSampler.sample

    def noting(sampler: MachineSampler) -> Any:
        samples = measure(sampler)
        sampled.set()
        return samples

    class Waiting(Judged):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            assert sampled.wait(60)
            return super().train_batch(batch, epoch_idx, batch_idx)

    monkeypatch.setattr(MachineSampler, "sample", noting)
    fit(Waiting, profiling_enabled=True)
    assert [step for step, _ in trial.series("memory", "agent.memory_free")] == [1]
