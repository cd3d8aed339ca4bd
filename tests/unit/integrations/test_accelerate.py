"""Accelerate's real Accelerator off cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from accelerate import Accelerator
from support.training.trials import Recorder

from resolute import core
from resolute.accelerate import ResoluteTracker


@pytest.fixture
def context(tmp_path: Path) -> Iterator[core.Context]:
    with core.init(checkpoint_storage=str(tmp_path)) as made:
        made.train._reporter = Recorder()
        yield made


@pytest.fixture
def accelerator(context: core.Context) -> Iterator[Accelerator]:
    made = Accelerator(cpu=True, log_with=ResoluteTracker(context))
    made.init_trackers("any name", config={"lr": 0.1})
    yield made
    made.end_training()


def test_what_is_logged_is_reported(context: core.Context, accelerator: Accelerator) -> None:
    accelerator.log({"loss": 0.5}, step=3)
    accelerator.log({"accuracy": 0.9}, step=3, log_kwargs={"resolute": {"group": "validation"}})
    reporter = context.train._reporter
    assert isinstance(reporter, Recorder)
    assert reporter.reports == [("training", 3, {"loss": 0.5}), ("validation", 3, {"accuracy": 0.9})]
    assert context.train.get_metadata() == {"config": {"lr": 0.1}}


def test_the_tracker_gives_what_reports(context: core.Context, accelerator: Accelerator) -> None:
    assert accelerator.get_tracker("resolute", unwrap=True) is context.train


def test_a_report_without_a_step_is_refused(accelerator: Accelerator) -> None:
    with pytest.raises(ValueError, match="needs step="):
        accelerator.log({"loss": 0.5})


def test_an_unknown_argument_is_refused(accelerator: Accelerator) -> None:
    with pytest.raises(ValueError, match="only group is known"):
        accelerator.log({"loss": 0.5}, step=1, log_kwargs={"resolute": {"gruop": "validation"}})
