"""When an experiment will be done."""

from __future__ import annotations

from resolute_experiments.lifecycle.progress import Pace


def test_what_is_left_takes_as_long_as_what_was_done() -> None:
    pace = Pace()
    pace.look(0.2, now=100.0, running=True)
    assert pace.seconds_left() is None, "nothing was done since it is looked at"
    pace.look(0.3, now=110.0, running=True)
    assert round(pace.seconds_left() or 0.0, 6) == 70.0


def test_time_in_which_no_trial_runs_counts_for_nothing() -> None:
    pace = Pace()
    pace.look(0.0, now=0.0, running=True)
    pace.look(0.5, now=10.0, running=True)
    pace.look(0.5, now=500.0, running=False)
    assert pace.seconds_left() == 10.0
