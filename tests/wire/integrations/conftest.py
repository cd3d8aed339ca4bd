"""A trial on a small cluster, whose search asks for a few batches first and for more later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clusters.trial_cluster import Trial, cluster

from resolute.api.searcher.v1 import search_spec_pb2

Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a cluster and makes this process its one trial, until the block ends."""

    @contextmanager
    def started(
        *,
        max_length: int,
        unit: str = "batches",
        rungs: int = 1,
        time_driven: bool = False,
        metric: str = "loss",
        folder: str = ".",
    ) -> Iterator[Trial]:
        halving = search_spec_pb2.AsyncHalvingMethod(
            num_rungs=rungs, max_length=max_length, max_trials=1, divisor=3, stop_once=True
        )
        (tmp_path / folder).mkdir(exist_ok=True)
        with cluster(tmp_path / folder, max_length=max_length, unit=unit, halving=halving) as trial:
            trial.time_metric = "batches" if time_driven else ""
            trial.metric = metric
            trial.enter(monkeypatch)
            yield trial

    return started
