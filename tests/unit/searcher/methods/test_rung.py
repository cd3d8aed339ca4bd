"""A rung keeps its best share apart, exactly as a sorted list would."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right

from hypothesis import given
from hypothesis import strategies as st

from resolute_searcher.methods.successive_halving.rung import Rung

METRICS = st.lists(st.integers(-5, 5).map(float), max_size=80)
DIVISORS = st.sampled_from([1.5, 2.0, 3.0, 4.0, 7.3])


@given(METRICS, DIVISORS)
def test_a_report_rises_or_makes_room_as_in_a_sorted_list(metrics: list[float], divisor: float) -> None:
    rung = Rung(divisor)
    listed: list[tuple[float, str]] = []
    for number, metric in enumerate(metrics):
        trial = f"t{number}"
        old, new = int(len(listed) / divisor), int((len(listed) + 1) / divisor)
        position = bisect_right([value for value, _ in listed], metric)
        listed.insert(position, (metric, trial))
        rung.insert(trial, metric)
        assert rung.in_top(trial) == (position < new)
        assert rung.top_grew() == (old != new)
        if new:
            last = rung.last_of_top()
            assert last is not None
            assert last.trial_key == listed[new - 1][1]
        assert rung.rank(trial) == position + 1
    assert [(entry.metric, entry.trial_key) for entry in rung] == listed


@given(METRICS, DIVISORS)
def test_the_newest_of_equals_can_stand_first(metrics: list[float], divisor: float) -> None:
    rung = Rung(divisor, at_least=1, newest_first=True)
    values: list[float] = []
    for number, metric in enumerate(metrics):
        position = bisect_left(values, metric)
        values.insert(position, metric)
        rung.insert(f"t{number}", metric)
        assert rung.in_top(f"t{number}") == (position < max(int(len(values) / divisor), 1))


@given(METRICS, DIVISORS, st.data())
def test_a_forgotten_trial_leaves_no_trace_in_the_order(
    metrics: list[float], divisor: float, data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, max(len(metrics) - 1, 0))))
    rung, clean = Rung(divisor), Rung(divisor)
    for number, metric in enumerate(metrics):
        rung.insert(f"t{number}", metric)
    for number in gone:
        rung.remove(f"t{number}")
    for number, metric in enumerate(metrics):
        if number not in gone:
            clean.insert(f"t{number}", metric)
    assert [entry.trial_key for entry in rung] == [entry.trial_key for entry in clean]
    assert [entry.trial_key for entry in rung.best()] == [entry.trial_key for entry in clean.best()]
    assert len(rung) == len(clean)


@given(METRICS, DIVISORS, st.booleans())
def test_a_snapshot_restores_everything(metrics: list[float], divisor: float, newest_first: bool) -> None:
    rung, other = Rung(divisor, newest_first=newest_first), Rung(divisor, newest_first=newest_first)
    for number, metric in enumerate(metrics):
        rung.insert(f"t{number}", metric)
    other.restore(json.loads(json.dumps(rung.snapshot())))
    assert other.snapshot() == rung.snapshot()
    for one in (rung, other):
        one.insert("next", 0.0)
    assert other.snapshot() == rung.snapshot()
    assert other.last_of_top() == rung.last_of_top()
