"""What callbacks are given, what of them is in a checkpoint, and their older forms."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from support.training.ranks.threads import rank_results
from support.training.trials import LineTrial, as_foreign_checkpoint, local_context, newest_checkpoint

from resolute.core import DistributedContext
from resolute.pytorch import Batch, Epoch, PyTorchCallback, Trainer
from resolute.pytorch.backends.gradient_exchange import SingleRank


def fit(directory: Path, *callbacks: PyTorchCallback, **options: Any) -> Any:
    """Trains with callbacks, by default for two epochs of five batches and with one checkpoint at the end."""

    class TrialWithCallbacks(LineTrial):
        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {f"callback{number}": callback for number, callback in enumerate(callbacks)}

    context, recorder = local_context(directory)
    trial: Any = TrialWithCallbacks(context)
    options = {"max_length": Epoch(2), "checkpoint_policy": "none", **options}
    Trainer(trial, context).fit(**options)
    trial.reports = recorder
    return trial


class Given(PyTorchCallback):
    """Keeps what it is given, by hook."""

    def __init__(self) -> None:
        self.given: dict[str, list[Any]] = {}

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        self.note("startup", (first_batch_idx, checkpoint_uuid))

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        self.note("epoch_start", epoch_idx)

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.note("epoch_end", epoch_idx)

    def on_training_workload_end(
        self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]
    ) -> None:
        self.note("training", (avg_metrics, batch_metrics))

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        self.note("outputs", outputs)

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.note("validation", metrics)

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        self.note("written", sorted(path.name for path in Path(checkpoint_dir).iterdir()))

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        self.note("uploaded", uuid)

    def note(self, hook: str, value: Any) -> None:
        self.given.setdefault(hook, []).append(value)


def test_hooks_are_given_what_happened(tmp_path: Path) -> None:
    callback = Given()
    trial = fit(tmp_path, callback, reporting_period=Batch(4))
    given = callback.given
    assert given["startup"] == [(0, None)]
    assert given["epoch_start"] == given["epoch_end"] == [0, 1]
    averages = [averages for averages, _ in given["training"]]
    assert averages == [metrics for _, metrics in trial.reports.of("training")]
    assert [len(batches) for _, batches in given["training"]] == [4, 4, 2]
    first, batches = given["training"][0]
    assert first["loss"] == pytest.approx(sum(batch["loss"] for batch in batches) / 4)
    assert given["validation"] == [metrics for _, metrics in trial.reports.of("validation")]
    assert [len(outputs) for outputs in given["outputs"]] == [5]
    assert "state_dict.pth" in given["written"][0]
    assert given["uploaded"] == [newest_checkpoint(tmp_path)]


def test_a_run_that_goes_on_in_the_midst_of_an_epoch_begins_none(tmp_path: Path) -> None:
    fit(tmp_path, max_length=Batch(3))
    checkpoint = newest_checkpoint(tmp_path)
    callback = Given()
    fit(tmp_path, callback, latest_checkpoint=checkpoint)
    assert callback.given["startup"] == [(3, checkpoint)]
    assert callback.given["epoch_start"] == [1]
    assert callback.given["epoch_end"] == [0, 1]


class Counting(PyTorchCallback):
    """Has a state."""

    def __init__(self) -> None:
        self.epochs = 0

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.epochs += 1

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": self.epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epochs = state_dict["epochs"]


def test_the_state_of_a_callback_is_kept_by_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(tmp_path, Counting())
    checkpoint = newest_checkpoint(tmp_path)
    state = torch.load(tmp_path / checkpoint / "state_dict.pth", weights_only=False)
    assert state["callbacks"] == {"callback0": {"epochs": 2}}
    known, new = Counting(), Counting()
    with caplog.at_level(logging.WARNING):
        fit(tmp_path, known, new, latest_checkpoint=checkpoint, max_length=Epoch(3))
    assert (known.epochs, new.epochs) == (3, 1)
    assert "no state of the callback 'callback1': it starts anew" in caplog.text


def test_callbacks_may_change_what_is_saved_and_what_is_loaded(tmp_path: Path) -> None:
    class Changing(PyTorchCallback):
        def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
            checkpoint["more"] = "kept"

        def on_checkpoint_load_start(self, checkpoint: dict[str, Any] | None) -> None:
            assert checkpoint is not None
            assert checkpoint["more"] == "kept"
            for weights in checkpoint["models_state_dict"][0].values():
                weights.zero_()

    fit(tmp_path, Changing())
    checkpoint = newest_checkpoint(tmp_path)
    trial = fit(tmp_path, Changing(), latest_checkpoint=checkpoint)
    assert not any(weights.any() for weights in trial.model.state_dict().values())


def test_a_checkpoint_without_random_numbers_is_taken_up_and_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetting(PyTorchCallback):
        def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
            del checkpoint["rng_state"]

    fit(tmp_path, Forgetting(), max_length=Batch(3))
    checkpoint = newest_checkpoint(tmp_path)
    (tmp_path / checkpoint / "rank_state_0.pth").unlink()
    as_foreign_checkpoint(tmp_path, checkpoint)
    with caplog.at_level(logging.WARNING):
        assert fit(tmp_path, latest_checkpoint=checkpoint).seen == list(range(3, 10))
    assert "the checkpoint has no random numbers" in caplog.text


def test_an_epoch_start_without_an_argument_is_called_and_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Older(PyTorchCallback):
        epochs = 0

        def on_training_epoch_start(self) -> None:  # type: ignore[override]
            self.epochs += 1

    callback = Older()
    with caplog.at_level(logging.WARNING):
        fit(tmp_path, callback)
    assert callback.epochs == 2
    assert "Older.on_training_epoch_start() takes no argument: give it one, epoch_idx" in caplog.text


def test_the_older_name_of_the_end_of_a_write_still_works(tmp_path: Path) -> None:
    class Older(PyTorchCallback):
        def on_checkpoint_end(self, checkpoint_dir: str) -> None:
            (Path(checkpoint_dir) / "mine").touch()

    with pytest.warns(FutureWarning, match="rename it to on_checkpoint_write_end"):
        fit(tmp_path, Older())
    assert (tmp_path / newest_checkpoint(tmp_path) / "mine").exists()


def test_every_callback_is_shut_down_once_even_if_one_of_them_fails(tmp_path: Path) -> None:
    class Ending(PyTorchCallback):
        ended = 0

        def __init__(self, failure: Exception | None = None) -> None:
            self.failure = failure

        def on_trial_shutdown(self) -> None:
            self.ended += 1
            if self.failure is not None:
                raise self.failure

    callbacks = [Ending(), Ending(OSError("first")), Ending(OSError("second")), Ending()]
    with pytest.raises(OSError, match="first"):
        fit(tmp_path, *callbacks)
    assert [callback.ended for callback in callbacks] == [1, 1, 1, 1]


def test_every_rank_hears_of_validations_and_uploads_and_the_chief_alone_of_files(tmp_path: Path) -> None:
    class Stopping(LineTrial):
        """Asks to stop on its second rank only."""

        def __init__(self, context: Any) -> None:
            super().__init__(context)
            self.callback = Given()

        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {"given": self.callback}

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            self.context.set_stop_requested(self.context.distributed.rank == 1 and batch_idx == 1)
            return super().train_batch(batch, epoch_idx, batch_idx)

    def work(distributed: DistributedContext) -> tuple[list[int], dict[str, list[Any]]]:
        context, _ = local_context(tmp_path, distributed=distributed, backend=SingleRank())
        trial = Stopping(context)
        every = Batch(2)
        Trainer(trial, context).fit(every, every, Epoch(9), reporting_period=every, checkpoint_policy="none")
        return trial.seen, trial.callback.given

    (steps, chief), (others, worker) = rank_results(2, work)
    assert steps == others == [0, 1]
    for hook in ("startup", "epoch_start", "training", "validation", "uploaded"):
        assert worker[hook] == chief[hook]
    assert len(chief["validation"]) == len(chief["written"]) == 1
    assert "written" not in worker
