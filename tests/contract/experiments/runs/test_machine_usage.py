"""What the machines of runs did is kept as a whole, within bounds, and goes with its experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from contract.experiments.lifecycle.test_lifecycle import Store
from support.databases.prepared import migrate

from resolute.api.experiments.v1.allocations_service_pb2 import ReportMachineUsageRequest
from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute.errors import InvalidArgumentError
from resolute_experiments.servicers.checks.machine_usage import check_machine_usage
from resolute_experiments.store import experiments, runs
from resolute_serving.bounds.limits import limits_of
from resolute_serving.bounds.requests import read_message
from resolute_serving.database.engine import create_engine


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def test_the_last_report_of_each_container_is_kept_until_its_experiment_is_deleted(store: Store) -> None:
    first, second = (store.start(store.create_trial()) for _ in range(2))
    for run, rank, content in ((first, 0, b"a"), (first, 1, b"b"), (first, 0, b"c"), (second, 0, b"d")):
        store.run(lambda c: runs.record_machine_usage(c, run, rank, content))  # noqa: B023 - called at once
    assert store.run(lambda c: runs.read_machine_usage(c, first.allocation_id)) == {0: b"c", 1: b"b"}
    assert store.run(lambda c: runs.read_machine_usage(c, second.allocation_id)) == {0: b"d"}
    store.run(lambda c: experiments.delete_contents(c, store.experiment_id))
    assert store.run(lambda c: runs.read_machine_usage(c, first.allocation_id)) == {}


def usage(*, periods: int = 2, names: int = 1, name: str = "cpu", values: int = 2) -> MachineUsage:
    series = [MachineUsage.Series(name=name, values=[1.0] * values)] * names
    return MachineUsage(seconds=[5.0] * periods, series=series)


def test_usual_sizes_are_taken() -> None:
    check_machine_usage(MachineUsage())
    check_machine_usage(usage())
    check_machine_usage(usage(periods=500, values=500, names=200))
    unknown = MachineUsage.Series(name="cpu", values=[math.nan])
    check_machine_usage(MachineUsage(start_time=1.7e9, seconds=[5.0], series=[unknown]))


def test_the_largest_that_is_kept_passes_the_bounds_of_requests_too() -> None:
    request = ReportMachineUsageRequest(usage=usage(periods=500, values=500, names=200, name="n" * 100))
    limits = limits_of("/resolute.api.experiments.v1.AllocationsService/ReportMachineUsage")
    read = read_message(request.SerializeToString(), ReportMachineUsageRequest.FromString, limits)
    check_machine_usage(read.usage)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (usage(periods=501, values=501), "501 periods"),
        (usage(names=201), "201 series"),
        (usage(name="n" * 101), "more than 100 characters"),
        (usage(values=3), "'cpu' has 3 values for 2 periods"),
        # Who reads them computes with them: times of people, means, rounded numbers.
        (MachineUsage(start_time=1e300), "begins at 1e[+]300"),
        (MachineUsage(start_time=-1.0), "begins at -1"),
        (MachineUsage(start_time=math.nan), "begins at nan"),
        (MachineUsage(seconds=[5.0, 0.0]), "longer than 0 seconds"),
        (MachineUsage(seconds=[math.inf]), "never ends"),
        (MachineUsage(seconds=[math.nan]), "longer than 0 seconds"),
        (
            MachineUsage(seconds=[5.0], series=[MachineUsage.Series(name="cpu", values=[-math.inf])]),
            "'cpu' has an infinite value",
        ),
    ],
)
def test_more_is_refused(wrong: MachineUsage, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_machine_usage(wrong)
