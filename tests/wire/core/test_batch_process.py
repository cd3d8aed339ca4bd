"""Going through a data set as a trial that is stopped on its way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.clusters.trial_cluster import Trial
from torch.utils.data import TensorDataset

import resolute
from resolute import core
from resolute.pytorch import TorchBatchProcessor, TorchBatchProcessorContext, torch_batch_process
from resolute.trial_errors import InvalidCheckpointException

DATA = TensorDataset(torch.arange(12.0))


def process(processor: type[TorchBatchProcessor]) -> None:
    torch_batch_process(processor, DATA, batch_size=2, checkpoint_interval=2)


class Doubling(TorchBatchProcessor):
    """Leaves a file for each batch."""

    def __init__(self, context: TorchBatchProcessorContext) -> None:
        self.context = context

    def process_batch(self, batch: Any, batch_idx: int) -> None:
        with self.context.upload_path() as directory:
            (directory / f"{batch_idx}.txt").write_text(str((batch[0] * 2).tolist()))


def checkpoints(trial: Trial) -> list[Path]:
    """Directories of the trial's checkpoints, that of the fewest batches first."""
    files = trial.path.glob("checkpoints/*/metadata.json")
    ordered = sorted(files, key=lambda file: json.loads(file.read_text())["steps_completed"])
    return [file.parent for file in ordered]


def run_again(trial: Trial, checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Makes this process the next run of the trial, which begins with a checkpoint."""
    trial.end()
    second = dataclasses.replace(trial, run=2)
    second.enter(monkeypatch)
    monkeypatch.setattr(resolute.get_cluster_info(), "_latest_checkpoint", checkpoint)
    return second


def test_a_run_that_is_preempted_is_gone_on_with_and_its_files_are_kept(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Preempted(Doubling):
        def process_batch(self, batch: Any, batch_idx: int) -> None:
            super().process_batch(batch, batch_idx)
            if batch_idx == 2:
                trial.flags.set_signal(revision=2, preempt=True)

    process(Preempted)
    (first,) = checkpoints(trial)[-1:]
    assert sorted(path.name for path in (first / "rank_0").iterdir()) == [f"{i}.txt" for i in range(4)]
    second = run_again(trial, first.name, monkeypatch)
    try:
        process(Doubling)
        files = {path.name: path.read_text() for path in (checkpoints(second)[-1] / "rank_0").iterdir()}
        assert files == {f"{i}.txt": f"[{4.0 * i}, {4.0 * i + 2}]" for i in range(6)}
    finally:
        second.end()


def test_a_checkpoint_of_something_else_is_refused(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    with core.init() as context, context.checkpoint.store_path({"steps_completed": 1}) as (directory, uuid):
        (directory / "model.pt").touch()
    monkeypatch.setattr(resolute.get_cluster_info(), "_latest_checkpoint", uuid)
    with pytest.raises(InvalidCheckpointException, match="was not made by torch_batch_process"):
        process(Doubling)


def test_reducers_of_a_processor_are_reported_as_its_validation(trial: Trial) -> None:
    class Summing(TorchBatchProcessor):
        def __init__(self, context: TorchBatchProcessorContext) -> None:
            self.total = context.wrap_reducer(sum, name="total")

        def process_batch(self, batch: Any, batch_idx: int) -> None:
            self.total.update(float(batch[0].sum()))

    torch_batch_process(Summing, DATA, checkpoint_interval=9, dataloader_kwargs={"batch_size": 4})
    assert trial.series("validation", "total") == [(3, 66.0)]


def test_the_size_of_batches_is_given_once() -> None:
    with pytest.raises(ValueError, match="give it once"):
        torch_batch_process(Doubling, DATA, batch_size=2, dataloader_kwargs={"batch_size": 2})
