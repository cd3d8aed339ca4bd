"""Small blocks are put together, each row only a few times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.services.metrics import Metrics, blocks_of, metrics_on

from resolute_metrics.ingest.parsing import parse_batch
from resolute_metrics.ingest.writer import ingest
from resolute_metrics.limits import Limits
from resolute_metrics.store.blocks import full_rows, is_small
from resolute_metrics.store.schema import blocks


@pytest.fixture
def metrics(tmp_path: Path) -> Iterator[Metrics]:
    with metrics_on(f"sqlite:///{tmp_path / 'metrics.sqlite'}") as service:
        yield service


def _sizes(metrics: Metrics) -> list[int]:
    with metrics.database.engine.connect() as link:
        return list(link.execute(sa.select(blocks.c.row_count).order_by(blocks.c.first_step)).scalars())


def test_a_thousand_single_reports_end_in_few_blocks(metrics: Metrics) -> None:
    with metrics.database.engine.begin() as link:
        for step in range(1000):
            request = metrics.request(
                blocks_of([("training", step, {"loss": float(step)})], first=step), first=step
            )
            ingest(link, parse_batch(request), limits=Limits())
    sizes = _sizes(metrics)
    assert sum(sizes) == 1000
    assert len(sizes) < 40
    assert [step for step, _ in metrics.points("loss")] == list(range(1000))


def test_large_blocks_are_left_alone(metrics: Metrics) -> None:
    for first in range(0, 5000, 1000):
        metrics.send(
            blocks_of(
                [("training", step, {"loss": 1.0}) for step in range(first, first + 1000)], first=first
            ),
            first=first,
        )
    assert _sizes(metrics) == [1000] * 5


def test_blocks_are_full_by_rows_or_by_bytes() -> None:
    assert full_rows(1) == 8192
    assert full_rows(100_000) == 1
    assert is_small(1, 10)
    assert not is_small(1, 100_000)
    assert not is_small(8192, 1)
