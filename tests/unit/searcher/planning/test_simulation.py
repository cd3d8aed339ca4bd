"""Searches in virtual time: what they run, in which order, and on how many slots."""

from __future__ import annotations

import math

import pytest
from support.services.searcher import adaptive, spec

from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.errors import InvalidArgumentError
from resolute_searcher.log.entry import Entry
from resolute_searcher.planning.curves import RecordedCurve, RecordedCurves, SyntheticCurves, synthetic_curves
from resolute_searcher.planning.preview import preview
from resolute_searcher.planning.simulation import Simulation, simulate
from resolute_searcher.state_machine.replay import replay
from resolute_searcher.wire.spec import spec_from


def played(message: spec_pb.SearchSpec, *, slots: int = 0) -> Simulation:
    asked = spec_from(message)
    entries: list[Entry] = []
    told = simulate(asked, synthetic_curves(asked), slots=slots, on_entry=entries.append)
    assert replay(asked, entries).equal
    assert told.events == len(entries)
    assert told.total_units == sum(trial.length for trial in told.trials)
    assert sum(rung.ended for rung in told.rungs) == len(told.trials)
    return told


def halving(**fields: object) -> spec_pb.SearchSpec:
    defaults = {
        "num_rungs": 3,
        "max_length": 16,
        "max_trials": 20,
        "divisor": 4.0,
        "max_concurrent_trials": 4,
    }
    timed = {"time_metric": "batches"} if fields.get("time_driven") else {}
    return spec(async_halving=spec_pb.AsyncHalvingMethod(**{**defaults, **fields}), **timed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "message",
    [
        spec(single=spec_pb.SingleMethod(max_length=10)),
        spec(single=spec_pb.SingleMethod()),
        spec(random=spec_pb.RandomMethod(max_length=10, max_trials=9, max_concurrent_trials=2)),
        halving(),
        halving(stop_once=True),
        halving(time_driven=True),
        halving(max_length=1),
        halving(max_length=2, num_rungs=5, max_concurrent_trials=0),
        adaptive(),
        adaptive(time_driven=True, max_trials=30),
    ],
    ids=lambda message: str(message.WhichOneof("method")) if isinstance(message, spec_pb.SearchSpec) else "",
)
@pytest.mark.parametrize("slots", [0, 1, 3])
def test_every_search_plays_to_its_end(message: spec_pb.SearchSpec, slots: int) -> None:
    if message.adaptive_asha.time_driven:
        message.time_metric = "batches"
    told = played(message, slots=slots)
    assert len(told.trials) == sum(b.trials for b in preview(spec_from(message)).brackets)
    if slots == 1:
        assert math.isclose(told.duration, told.total_units)


def test_equal_specs_give_equal_simulations() -> None:
    assert played(adaptive()) == played(adaptive())


def test_fewer_slots_take_longer() -> None:
    message = spec(random=spec_pb.RandomMethod(max_length=10, max_trials=8, max_concurrent_trials=8))
    assert [played(message, slots=slots).duration for slots in (1, 2, 4, 0)] == [80.0, 40.0, 20.0, 10.0]


def test_recorded_curves_decide() -> None:
    asked = spec_from(halving(max_trials=4, max_concurrent_trials=4, divisor=2.0, num_rungs=2))
    curves = RecordedCurves([RecordedCurve((0.0, 16.0), (number, number)) for number in (3.0, 1.0, 2.0, 4.0)])
    told = simulate(asked, curves)
    assert [trial.length for trial in told.trials] == [8, 16, 16, 8]
    assert [trial.metric for trial in told.trials] == [3.0, 1.0, 2.0, 4.0]


def test_curves_are_straight_between_their_points() -> None:
    curve = RecordedCurve((1.0, 3.0), (10.0, 20.0))
    assert [curve.at(length) for length in (0.5, 1.0, 2.0, 3.0, 9.0)] == [10.0, 10.0, 15.0, 20.0, 20.0]


@pytest.mark.parametrize(("lengths", "metrics"), [((), ()), ((1.0,), ()), ((1.0, 1.0), (2.0, 3.0))])
def test_curves_that_are_none_are_refused(lengths: tuple[float, ...], metrics: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"curves\[0\] needs"):
        RecordedCurve(lengths, metrics).check("curves[0]")


def test_synthetic_curves_fall_when_smaller_is_better() -> None:
    space = spec_from(adaptive()).space
    curves = SyntheticCurves(space, max_length=64)
    metrics = [curves.metric(0, {"x": 0.3}, length) for length in (1, 16, 64)]
    assert metrics == sorted(metrics, reverse=True)
    rising = SyntheticCurves(space, smaller_is_better=False, max_length=64)
    assert rising.metric(0, {"x": 0.3}, 64) > rising.metric(0, {"x": 0.3}, 1)
