"""An experiment ran while any of its trials held slots: what several held at once counts once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from contract.experiments.lifecycle.test_lifecycle import Store, run_row
from sqlalchemy.engine import Connection
from support.databases.prepared import migrate

from resolute_experiments.store import runs, trials
from resolute_serving.database.engine import create_engine


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def held(store: Store, start: float, end: float | None) -> None:
    """Lets a new trial hold slots from a time on, and until another one where it has ended."""
    trial_id = store.create_trial()

    def work(connection: Connection) -> None:
        allocation = str(uuid.uuid4())
        row = run_row(trials.get(connection, trial_id=trial_id), allocation) | {"started_at": start}
        runs.insert(connection, row, placements=[[0]])
        if end is not None:
            runs.update(connection, allocation, ended_at=end)

    store.run(work)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(10.0, 20.0)], (10.0, None)),
        ([(10.0, 20.0), (100.0, 130.0)], (40.0, None)),
        ([(10.0, 40.0), (15.0, 20.0), (30.0, 50.0)], (40.0, None)),
        ([(10.0, 40.0), (15.0, 20.0), (25.0, 30.0)], (30.0, None)),
        ([(10.0, 20.0), (100.0, None)], (10.0, 100.0)),
        ([(10.0, 20.0), (100.0, None), (90.0, 120.0), (110.0, 130.0), (105.0, None)], (20.0, 100.0)),
    ],
)
def test_what_trials_held_at_once_counts_once_and_waiting_not_at_all(
    store: Store, spans: list[tuple[float, float | None]], expected: tuple[float, float | None]
) -> None:
    for start, end in spans:
        held(store, start, end)
    times = store.run(lambda c: runs.times_of_experiments(c, [store.experiment_id]))
    found = times[store.experiment_id]
    assert (found.ended_seconds, found.started_at) == expected


def test_an_experiment_whose_trials_never_ran_has_no_time(store: Store) -> None:
    store.create_trial()
    assert store.run(lambda c: runs.times_of_experiments(c, [store.experiment_id])) == {}
