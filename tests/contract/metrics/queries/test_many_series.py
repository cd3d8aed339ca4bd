"""Many series of one range at once."""

from __future__ import annotations

import math
import uuid
from typing import Any

import pytest
from support.services.metrics import Metrics

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.errors import InvalidArgumentError
from resolute_metrics.queries.curves import series_pages


def asked(*names: tuple[str, str], **options: Any) -> api.ListSeriesRequest:
    """A request for series, by trial and name."""
    request = api.ListSeriesRequest(**options)
    for trial, name in names:
        request.series.add(trial_id=trial, group="training", name=name)
    return request


def report(metrics: Metrics, values: list[float], *, name: str = "loss") -> str:
    """Reports one value a step, from step 0; gives the trial."""
    metrics.report(*(("training", step, {name: value}) for step, value in enumerate(values)))
    return metrics.trial


def test_each_series_is_as_if_it_was_asked_for_alone(metrics: Metrics) -> None:
    fall, rise = metrics.anew(), metrics.anew()
    names = [
        (report(fall, [1 / (step + 1) for step in range(300)]), "loss"),
        (str(uuid.uuid4()), "loss"),
        (report(rise, [math.nan, *map(float, range(40))]), "loss"),
        (rise.trial, "never"),
    ]
    found = metrics.call("ListSeries", asked(*names, max_points=20, min_steps=10, max_steps=200))
    assert not found.next_page_token
    assert [one.total_points for one in found.series] == [191, 0, 31, 0]
    alone = fall.series("loss", max_points=20, min_steps=10, max_steps=200)
    first = found.series[0]
    assert (first.steps, first.values, first.times) == (alone.steps, alone.values, alone.times)
    assert found.series[2].steps == rise.series("loss", max_points=20, min_steps=10).steps


def test_a_later_run_takes_over_from_its_first_step(metrics: Metrics) -> None:
    report(metrics, [1.0, 2.0, 3.0, 4.0])
    metrics.report(("training", 2, {"loss": 9.0}), run=2)
    [found] = metrics.call("ListSeries", asked((metrics.trial, "loss"))).series
    assert list(found.values) == [1, 2, 9]


@pytest.mark.parametrize(("limit", "pages"), [("MAX_POINTS", 4), ("MOST_READ", 4)])
def test_what_is_too_much_for_one_answer_comes_in_pages(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch, limit: str, pages: int
) -> None:
    monkeypatch.setattr(series_pages, limit, 50)
    trials = [report(metrics.anew(), [float(number)] * 30) for number in range(pages)]
    request = asked(*((trial, "loss") for trial in trials))
    found = metrics.pages("ListSeries", request, "series")
    assert [[one.values[0] for one in page] for page in found] == [[0], [1], [2], [3]]


def test_none_too_many_and_no_trials_are_refused(metrics: Metrics) -> None:
    one = (metrics.trial, "loss")
    for request in (asked(), asked(*[one] * 501), asked(("x", "loss")), asked(one, max_points=3)):
        with pytest.raises(InvalidArgumentError):
            metrics.call("ListSeries", request)
    token = metrics.call("ListSeries", asked(one)).next_page_token
    assert token == ""
    with pytest.raises(InvalidArgumentError):
        metrics.call("ListSeries", asked(one, page_token="made up"))
