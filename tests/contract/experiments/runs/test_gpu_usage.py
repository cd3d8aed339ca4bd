"""What the containers of a run say about its GPUs is added up in its row, on both databases."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from contract.experiments.lifecycle.test_lifecycle import Store
from support.databases.prepared import migrate

from resolute.api.experiments.v1.run_pb2 import GpuUsage
from resolute.errors import InvalidArgumentError
from resolute_experiments.servicers.checks.gpu_usage import added_usage, check_usage
from resolute_experiments.servicers.messages.experiments import run_message
from resolute_experiments.store import runs
from resolute_serving.database.engine import create_engine


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def test_the_containers_of_a_run_are_added_up(store: Store) -> None:
    allocation = store.start(store.create_trial()).allocation_id
    assert not run_message(store.run(lambda c: runs.get(c, allocation))).HasField("gpu_usage")
    for usage in (
        GpuUsage(busy_seconds=1.5, measured_seconds=2.0),
        GpuUsage(energy_joules=700.0, busy_seconds=0.0, measured_seconds=3.0),
        GpuUsage(energy_joules=50.0, busy_seconds=2.5, measured_seconds=3.0),
    ):
        check_usage(usage)
        run = store.run(lambda c: runs.get(c, allocation))
        columns = added_usage(run, usage)
        store.run(lambda c, columns=columns: runs.update(c, allocation, **columns))  # type: ignore[misc]
    message = run_message(store.run(lambda c: runs.get(c, allocation)))
    assert message.gpu_usage == GpuUsage(energy_joules=750.0, busy_seconds=4.0, measured_seconds=8.0)


@pytest.mark.parametrize(
    ("usage", "named"),
    [
        (GpuUsage(energy_joules=math.nan), "energy_joules"),
        (GpuUsage(measured_seconds=math.inf), "measured_seconds"),
        (GpuUsage(busy_seconds=-1), "busy_seconds"),
        (GpuUsage(energy_joules=1e300), "energy_joules"),
        (GpuUsage(busy_seconds=2, measured_seconds=1), "busy_seconds"),
    ],
)
def test_what_cannot_be_true_is_refused(usage: GpuUsage, named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=named):
        check_usage(usage)
