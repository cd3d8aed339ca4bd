"""What a person sees of a training, at a terminal and elsewhere; and what TensorBoard does."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.training.trials import LineTrial, local_context
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from resolute import pytorch
from resolute.pytorch import Batch, Trainer
from resolute.trials.display import NullDisplay, choose_display


class Terminal:
    """A real terminal, and the person who reads what it shows."""

    def __init__(self) -> None:
        self._ours, theirs = os.openpty()
        self.stream = os.fdopen(theirs, "w")
        self._shown = b""
        self._reader = threading.Thread(target=self._read, name="test-terminal")
        self._reader.start()

    def close(self) -> str:
        """Closes it, and returns what was shown."""
        self.stream.close()
        self._reader.join()
        os.close(self._ours)
        return self._shown.decode()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # what reading says once the other end is closed
            while some := os.read(self._ours, 1 << 12):
                self._shown += some


@contextlib.contextmanager
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Makes standard error a terminal; gives a list that what was shown is put into at the end."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    shown: list[str] = []
    terminal = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.stream)
        try:
            yield shown
        finally:
            shown.append(terminal.close())


def fit(directory: Path) -> None:
    context, _ = local_context(directory)
    Trainer(LineTrial(context), context).fit(
        max_length=Batch(6), validation_period=Batch(3), reporting_period=Batch(2), checkpoint_policy="none"
    )
    context._core.close()


def test_at_a_terminal_there_is_a_bar_and_a_line_for_each_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(threading.enumerate())
    with at_a_terminal(monkeypatch) as shown:
        fit(tmp_path)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown[0])
    assert "6/6" in text
    assert "after 3 batches: validation_loss" in text
    assert "after 6 batches: validation_loss" in text
    assert shown[0].rstrip().endswith("\x1b[?25h")  # the cursor is there again
    assert set(threading.enumerate()) <= before


def test_elsewhere_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    fit(tmp_path)
    assert written.getvalue() == ""


@pytest.mark.parametrize("where", [{"on_cluster": True, "rank": 0}, {"on_cluster": False, "rank": 1}])
def test_on_a_cluster_and_beside_the_chief_it_is_quiet(monkeypatch: pytest.MonkeyPatch, where: Any) -> None:
    with at_a_terminal(monkeypatch):
        assert isinstance(choose_display(**where), NullDisplay)


class Board(LineTrial):
    """Writes something of its own, too."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        returned = super().train_batch(batch, epoch_idx, batch_idx)
        self.context.get_tensorboard_writer().add_scalar("mine/doubled", returned["loss"] * 2, batch_idx)
        return returned


@pytest.mark.parametrize("enabled", [True, False])
def test_tensorboard_shows_the_metrics_and_what_the_trial_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # files of one process are in one directory
    hparams = {"global_batch_size": 8}
    with pytorch.init(hparams=hparams, enable_tensorboard_logging=enabled) as context:
        trial = Board(context)
        Trainer(trial, context).fit(max_length=Batch(4), reporting_period=Batch(2), checkpoint_policy="none")
        board = EventAccumulator(str(context.get_tensorboard_path()))
    board.Reload()
    mine = {"mine/doubled": 4}
    metrics = {"training/loss": 2, "training/absolute": 2, "validation/validation_loss": 1}
    shown = {tag: len(board.Scalars(tag)) for tag in board.Tags()["scalars"]}
    assert shown == {**mine, **(metrics if enabled else {})}
    if enabled:
        assert [event.step for event in board.Scalars("training/loss")] == [2, 4]
