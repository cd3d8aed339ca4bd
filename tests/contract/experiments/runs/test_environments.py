"""Environments of runs are kept once, and the first report of a run stands, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import Store
from support.databases.prepared import migrate

from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment
from resolute.errors import InvalidArgumentError
from resolute_experiments.servicers.checks.environments import MAX_PACKAGES, check_environment
from resolute_experiments.store import runs, schema
from resolute_serving.database.engine import create_engine


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def test_equal_environments_are_kept_once_and_the_first_of_a_run_stands(store: Store) -> None:
    first, second = (store.start(store.create_trial()).allocation_id for _ in range(2))
    store.run(lambda c: runs.record_environment(c, first, b"torch 2.5"))
    store.run(lambda c: runs.record_environment(c, second, b"torch 2.5"))
    count = sa.select(sa.func.count()).select_from(schema.environments)
    assert store.run(lambda c: c.execute(count).scalar()) == 1
    store.run(lambda c: runs.record_environment(c, first, b"torch 2.6"))
    assert store.run(lambda c: runs.read_environment(c, first)) == b"torch 2.5"
    assert store.run(lambda c: c.execute(count).scalar()) == 1, "a run could fill the database otherwise"
    third = store.start(store.create_trial()).allocation_id
    assert store.run(lambda c: runs.read_environment(c, third)) is None


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        (RunEnvironment(packages=[RunEnvironment.Package()] * (MAX_PACKAGES + 1)), "environment.packages"),
        (RunEnvironment(gpus=["a"] * 101), "environment.gpus"),
        (RunEnvironment(platform="x" * 300_000), "300"),
    ],
    ids=["packages", "gpus", "bytes"],
)
def test_an_environment_is_bounded(environment: RunEnvironment, named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=named):
        check_environment(environment)
    check_environment(RunEnvironment(packages=[RunEnvironment.Package(name="numpy", version="2.1")]))
