"""How long trials train in steps."""

from __future__ import annotations

from typing import Any

import pytest

from resolute_experiments.specs.trial_length import longest_steps


@pytest.mark.parametrize(
    ("length", "config", "hparams", "steps"),
    [
        ({"batches": 100}, {}, {}, 100),
        (100, {}, {}, 100),
        ({"records": 640}, {}, {"global_batch_size": 64}, 10),
        ({"epochs": 2}, {"records_per_epoch": 320}, {"global_batch_size": 64}, 10),
        ({"records": 640}, {}, {}, None),
        ({"records": 640}, {}, {"global_batch_size": "64"}, None),
        ({"epochs": 2}, {}, {"global_batch_size": 64}, None),
        (0, {}, {}, None),
        (None, {}, {}, None),
    ],
)
def test_a_length_in_steps(
    length: Any, config: dict[str, Any], hparams: dict[str, Any], steps: float | None
) -> None:
    searcher = {"name": "single", "max_length": length}
    assert longest_steps({"searcher": searcher, **config}, hparams) == steps
