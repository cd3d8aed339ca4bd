from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.training.ranks.threads import rank_results
from torch.utils.data import TensorDataset

from resolute.core import DistributedContext
from resolute.pytorch import TorchBatchProcessor, TorchBatchProcessorContext, torch_batch_process

DATA = TensorDataset(torch.arange(10.0))
log: list[Any] = []


class Summing(TorchBatchProcessor):
    def __init__(self, context: TorchBatchProcessorContext) -> None:
        log.clear()
        self.context = context
        self.model = context.prepare_model_for_inference(torch.nn.Identity())
        assert not self.model.training

    def process_batch(self, batch: Any, batch_idx: int) -> None:
        (values,) = self.context.to_device(batch)
        log.append((batch_idx, self.model(values).sum().item()))

    def on_checkpoint_start(self) -> None:
        with self.context.upload_path() as directory:
            (directory / "sums.json").write_text(json.dumps(log))

    def on_finish(self) -> None:
        log.append("finished")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_every_batch_is_processed_once_and_results_are_kept(home: Path) -> None:
    torch_batch_process(Summing, DATA, batch_size=4, checkpoint_interval=2)
    assert log == [(0, 6.0), (1, 22.0), (2, 17.0), "finished"]
    kept = sorted(home.glob("**/rank_0/sums.json"), key=lambda path: path.stat().st_size)
    assert [len(json.loads(path.read_text())) for path in kept] == [2, 4]


def test_only_so_many_batches_are_processed(home: Path) -> None:
    torch_batch_process(Summing, DATA, batch_size=4, max_batches=1)
    assert log == [(0, 6.0), "finished"]


@pytest.mark.parametrize("most", [0, -1, 4])
def test_a_limit_that_is_none_is_warned_of(home: Path, caplog: pytest.LogCaptureFixture, most: int) -> None:
    torch_batch_process(Summing, DATA, batch_size=4, max_batches=most)
    assert len(log) == 4
    assert f"max_batches is {most}, and each rank has 3 batches" in caplog.text


def test_types_that_cannot_be_moved_are_warned_of_once(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Summing):
        def process_batch(self, batch: Any, batch_idx: int) -> None:
            self.context.to_device("text")
            self.context.to_device("text", {str})

    torch_batch_process(Odd, DATA, batch_size=5)
    assert caplog.text.count("str") == 1


def test_ranks_share_the_data_and_end_together(home: Path) -> None:
    seen: dict[int, list[float]] = {0: [], 1: []}

    class Shared(TorchBatchProcessor):
        def __init__(self, context: TorchBatchProcessorContext) -> None:
            self.context = context

        def process_batch(self, batch: Any, batch_idx: int) -> None:
            seen[self.context.distributed.rank] += batch[0].tolist()

        def on_finish(self) -> None:
            rank = self.context.distributed.rank
            with self.context.upload_path() as directory:
                (directory / "seen.json").write_text(json.dumps(seen[rank]))

    def work(distributed: DistributedContext) -> None:
        torch_batch_process(
            Shared, DATA, batch_size=2, checkpoint_interval=2, distributed_context=distributed
        )

    rank_results(2, work)
    assert seen == {0: [0, 1, 4, 5, 8, 9], 1: [2, 3, 6, 7]}
    for rank in (0, 1):
        (kept,) = home.glob(f"**/rank_{rank}/seen.json")
        assert json.loads(kept.read_text()) == seen[rank]


def test_what_makes_no_sense_is_refused(home: Path) -> None:
    with pytest.raises(ValueError, match="shuffle"):
        torch_batch_process(Summing, DATA, dataloader_kwargs={"shuffle": True})
    with pytest.raises(ValueError, match="at least 1"):
        torch_batch_process(Summing, DATA, checkpoint_interval=0)
    with pytest.raises(TypeError, match="a length"):
        torch_batch_process(Summing, object())  # type: ignore[arg-type]
