"""Reports as scripts make them."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import determined as det
from resolute import core
from resolute.contracts.spool.format import Media
from resolute.core import DummyTrainContext, EarlyExitReason, TrainContext
from resolute.core.reporting.trial_record import LocalTrialRecord
from resolute.core.tensorboard import LocalTensorboard
from resolute.spool.omissions import Raised


class Reports:
    """Keeps what was reported."""

    def __init__(self) -> None:
        self.omissions = Raised()
        self.made: list[tuple[str, int, dict[str, Any]]] = []

    def report(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        self.made.append((group, steps, dict(metrics)))

    def flush(self, timeout: float | None = None) -> None: ...

    def confirm(self) -> None: ...

    def log_media(self, media: Media) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def train(reports: Reports) -> TrainContext:
    return TrainContext(reporter=reports, record=LocalTrialRecord(), tensorboard=LocalTensorboard())


def test_reports_go_to_their_groups(train: TrainContext, reports: Reports) -> None:
    train.report_training_metrics(1, {"loss": 0.5})
    train.report_validation_metrics(2, {"accuracy": 0.5})
    train.report_metrics("inference", 3, {"speed": 9})
    assert reports.made == [
        ("training", 1, {"loss": 0.5}),
        ("validation", 2, {"accuracy": 0.5}),
        ("inference", 3, {"speed": 9}),
    ]


def test_steps_have_two_names(train: TrainContext, reports: Reports) -> None:
    train.report_training_metrics(steps_completed=1, metrics={"loss": 1})
    train.report_training_metrics(latest_batch=2, metrics={"loss": 1})
    train.report_validation_metrics(latest_batch=3, metrics={"loss": 1})
    train.report_metrics(group="other", latest_batch=4, metrics={"loss": 1})
    assert [steps for _, steps, _ in reports.made] == [1, 2, 3, 4]


def test_steps_are_given_once(train: TrainContext) -> None:
    with pytest.raises(TypeError, match=r"steps_completed .or latest_batch"):
        train.report_training_metrics(metrics={"loss": 1})
    with pytest.raises(TypeError, match="only one of them"):
        train.report_training_metrics(1, {"loss": 1}, latest_batch=1)


def test_metrics_are_given(train: TrainContext) -> None:
    with pytest.raises(TypeError, match="metrics are missing"):
        train.report_training_metrics(1)


def test_metrics_of_single_batches_are_kept(train: TrainContext, reports: Reports) -> None:
    train.report_training_metrics(2, {"loss": 0.5}, [{"loss": 0.25}, {"loss": 0.75}])
    assert reports.made[0][2] == {"loss": 0.5, "batch_metrics": [{"loss": 0.25}, {"loss": 0.75}]}


class Pair:
    """A tensor of two numbers."""

    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements cannot be converted to a number")


@pytest.mark.parametrize("progress", [-0.1, 1.0000001, float("nan"), "half", None, 10**400, Pair()])
def test_progress_that_is_no_share_is_left_out(
    tmp_path: Path, progress: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        context.train.report_progress(progress)
    assert "left out of the reports: progress is" in caplog.text
    with det.core.init(checkpoint_storage=str(tmp_path)) as context:
        with pytest.raises(ValueError, match="a number from 0 to 1 was expected"):
            context.train.report_progress(progress)
        context.train.report_progress(np.float32(0.5))


def test_an_early_exit_has_a_known_reason(train: TrainContext) -> None:
    train.report_early_exit(EarlyExitReason.INVALID_HP)
    with pytest.raises(TypeError, match="EarlyExitReason"):
        train.report_early_exit("INVALID_HP")  # type: ignore[arg-type]


def test_metadata_are_replaced(train: TrainContext) -> None:
    assert train.get_metadata() == {}
    train.set_metadata({"a": 1})
    assert train.set_metadata({"b": 2}) == {"b": 2}
    assert train.get_metadata() == {"b": 2}


def test_off_cluster_reports_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="resolute.core")
    train = DummyTrainContext()
    train.report_training_metrics(5, {"loss": 0.5, "nested": {"a": 1}})
    train.report_progress(0.5)
    train.set_status("training")
    train.flush()
    train.upload_tensorboard_files()
    assert "training metrics at 5 steps: {'loss': 0.5, 'nested.a': 1}" in caplog.text
    assert "progress: 50.0 %" in caplog.text
    assert train.get_experiment_best_validation() is None
    assert train._get_last_validation() is None


def test_off_cluster_there_is_a_place_for_tensorboard_files() -> None:
    path = DummyTrainContext().get_tensorboard_path()
    assert isinstance(path, Path)
    assert path.is_dir()


def test_reasons_have_their_documented_values() -> None:
    assert EarlyExitReason.INVALID_HP.value == "EXITED_REASON_INVALID_HP"
    assert EarlyExitReason.USER_REQUESTED_STOP.value == "EXITED_REASON_USER_REQUESTED_STOP"
