"""Training in two parts equals training in one, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.training.kill_and_resume import assert_resume_is_exact
from support.training.trials import (
    LineTrial,
    ScaledTrial,
    equal,
    local_context,
    newest_checkpoint,
    same,
    state_of,
    weights,
)

from resolute.pytorch import Batch, Epoch, Trainer
from resolute.pytorch.backends.random_state import seed_all
from resolute.testing import simulate_preemption
from resolute.trials.units import TrainUnit

EPOCH = 5


class Workers(LineTrial):
    workers = 2


def train(
    directory: Path,
    length: TrainUnit,
    *,
    trial_class: type[LineTrial] = LineTrial,
    checkpoint: str | None = None,
    aggregation: int = 1,
    disturb: int = 0,
    **periods: Any,
) -> tuple[LineTrial, list[Any]]:
    torch.manual_seed(100 + disturb)  # what a process starts with must not matter once it resumes
    context, recorder = local_context(directory, aggregation_frequency=aggregation)
    trial = trial_class(context)
    seed_all(55 + disturb)
    options = {
        "validation_period": Batch(3),
        "reporting_period": Batch(2),
        "checkpoint_policy": "none",
        **periods,
    }
    Trainer(trial, context).fit(max_length=length, latest_checkpoint=checkpoint, **options)
    context._core.close()
    trial.state = state_of(trial)
    return trial, recorder.reports


def assert_equal(one: Any, other: Any) -> None:
    assert same(weights(one), weights(other))
    assert equal(one.state, other.state)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("aggregation", [1, 2])
@pytest.mark.parametrize("stop", [3, EPOCH, 6], ids=lambda stop: f"after-{stop}-batches")
def test_a_trial_that_is_preempted_after_any_batch_goes_on_as_if_it_had_not_been(
    tmp_path: Path, stop: int, aggregation: int
) -> None:
    whole, reports = train(tmp_path / "whole", Batch(14), aggregation=aggregation)
    with simulate_preemption() as signal:
        signal._after_checks = 10**9

        class Stopping(LineTrial):
            def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
                if batch_idx == stop - 1:
                    signal.request()
                return super().train_batch(batch, epoch_idx, batch_idx)

        stopped, before = train(tmp_path / "parts", Batch(14), trial_class=Stopping, aggregation=aggregation)
        assert signal.acknowledged
    assert stopped.seen == list(range(stop))
    checkpoint = newest_checkpoint(tmp_path / "parts")
    resumed, after = train(
        tmp_path / "parts", Batch(14), checkpoint=checkpoint, aggregation=aggregation, disturb=9
    )
    assert resumed.seen == list(range(stop, 14))
    assert_equal(resumed, whole)
    assert before + after == reports


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trial_class", [LineTrial, Workers, ScaledTrial])
@pytest.mark.parametrize("half", [EPOCH, 6])
def test_training_n_and_n_more_equals_training_2n(
    tmp_path: Path, half: int, trial_class: type[LineTrial]
) -> None:
    periods: dict[str, Any] = {"validation_period": Batch(half), "reporting_period": Batch(half)}
    whole, reports = train(tmp_path / "whole", Batch(2 * half), trial_class=trial_class, **periods)
    _, before = train(tmp_path / "parts", Batch(half), trial_class=trial_class, **periods)
    checkpoint = newest_checkpoint(tmp_path / "parts")
    resumed, after = train(
        tmp_path / "parts",
        Batch(2 * half),
        trial_class=trial_class,
        checkpoint=checkpoint,
        disturb=4,
        **periods,
    )
    assert_equal(resumed, whole)
    assert before + after == reports


def test_a_trial_that_fails_goes_on_from_its_checkpoint_as_if_it_had_not_been(tmp_path: Path) -> None:
    class Killed(LineTrial):
        fail_at = 9

    periods: dict[str, Any] = {"checkpoint_period": Batch(4)}
    whole, reports = train(tmp_path / "whole", Batch(12), **periods)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", Batch(12), trial_class=Killed, **periods)
    checkpoint = newest_checkpoint(tmp_path / "parts")
    resumed, after = train(tmp_path / "parts", Batch(12), checkpoint=checkpoint, disturb=2, **periods)
    assert resumed.seen[0] == 8
    assert_equal(resumed, whole)
    assert after == [report for report in reports if report[1] > 8]


@pytest.mark.integration
def test_a_process_that_is_killed_goes_on_from_its_checkpoint_as_if_it_had_not_been(tmp_path: Path) -> None:
    assert_resume_is_exact(tmp_path, "alone")


def test_a_validation_more_or_less_does_not_change_training(tmp_path: Path) -> None:
    often, _ = train(tmp_path / "often", Epoch(2), validation_period=Batch(1))
    seldom, _ = train(tmp_path / "seldom", Epoch(2), validation_period=None)
    assert_equal(often, seldom)
