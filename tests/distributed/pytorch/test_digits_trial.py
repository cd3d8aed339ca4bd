"""A trial by the trainer on two slots through the platform, against runs that it must equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.clusters.distributed import DIGITS, Submit, environment_of
from support.clusters.embedded import EmbeddedCluster, embedded
from support.ports import free_port

from resolute.client import ExperimentState

EPOCH = 23
"""Batches of one."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


def test_a_pause_in_the_midst_changes_nothing(submit: Submit) -> None:
    whole = submit(DIGITS)  # the example in full
    whole.wait_for(ExperimentState.COMPLETED)
    paused = submit(DIGITS)
    paused.wait_for_step(30)
    paused.experiment.pause()
    paused.wait_for(ExperimentState.PAUSED)
    assert max(paused.metrics("training")) < 8 * EPOCH
    paused.experiment.activate()
    paused.wait_for(ExperimentState.COMPLETED)
    for group in ("training", "validation"):
        assert paused.metrics(group) == whole.metrics(group)
    assert list(whole.metrics("validation")) == [EPOCH * epoch for epoch in range(1, 9)]
    assert max(metrics["accuracy"] for metrics in whole.metrics("validation").values()) > 0.9
    assert paused.restarts == whole.restarts == 0


def test_two_slots_that_meet_where_an_override_says_compute_what_one_does(submit: Submit) -> None:
    settings = ("searcher.max_length.epochs=1", "hyperparameters.dropout=0", "scheduling_unit=10")
    port = free_port()
    together = submit(
        DIGITS,
        *settings,
        f"environment.environment_variables=[CUSTOM_RDZV_ADDR=127.0.0.1:{port}]",
        "entrypoint=python3 -m determined.launch.torch_distributed --rdzv_endpoint=$CUSTOM_RDZV_ADDR -- "
        "--trial model_def:DigitsTrial",
    )
    assert environment_of(together.process_of(1))["MASTER_PORT"] == str(port)
    trials = [together, submit(DIGITS, *settings, "resources.slots_per_trial=1")]
    for trial in trials:
        trial.wait_for(ExperimentState.COMPLETED)
    # The last batch of an epoch is short, and ranks have each a share of another one: so far they are
    # equal. The first loss is that of the same weights. What follows is as near as Adam lets it be, which
    # divides each gradient by its own size: where one is nearly zero, its rounding error decides the
    # step, and processors round otherwise.
    for step in (10, 20):
        two, one = (losses(trial.metrics("training")[step]) for trial in trials)
        assert two == pytest.approx(one, rel=1e-3)
        if step == 10:
            assert two[1] == pytest.approx(one[1], rel=1e-6)


def losses(report: dict[str, Any]) -> list[float]:
    """Of a report: the mean, and each batch."""
    return [report["loss"], *(batch["loss"] for batch in report["batch_metrics"])]
