"""Where the points of a run end."""

from __future__ import annotations

import numpy as np

from resolute_metrics.queries.superseded import effective_mask, superseded_from


def test_nothing_cuts_the_last_run() -> None:
    assert superseded_from([(1, 0)]) == {}
    assert superseded_from([]) == {}


def test_each_run_ends_at_the_lowest_first_step_of_all_later_ones() -> None:
    assert superseded_from([(1, 0), (2, 50), (3, 30), (4, 90)]) == {1: 30, 2: 30, 3: 90}


def test_of_several_streams_of_a_run_the_first_step_counts() -> None:
    assert superseded_from([(2, 50), (1, 0), (2, 40), (1, 10)]) == {1: 40}


def test_the_step_of_the_cut_belongs_to_the_later_run() -> None:
    steps = np.array([1, 2, 3])
    assert effective_mask(steps, 3).tolist() == [True, True, False]
    assert effective_mask(steps, None).all()
