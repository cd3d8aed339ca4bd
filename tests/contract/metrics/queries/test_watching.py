"""Watching a series: what is there, then what comes, so that a plot always shows the effective series."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import pytest
from support.clocks import ManualClock
from support.services.metrics import Metrics, Report, blocks_of

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.errors import InvalidArgumentError, UnavailableError
from resolute_metrics.limits import Limits
from resolute_metrics.servicer import Servicer
from resolute_serving.following import PollIntervals


def watching(metrics: Metrics, *, name: str = "loss", most: int | None = None) -> api.WatchSeriesRequest:
    """A request to watch one series of the trial."""
    request = api.WatchSeriesRequest()
    request.subscriptions.add(
        key="plot", trial_id=metrics.trial, group="training", name=name, max_points=most
    )
    return request


class _Plot:
    """One stream, and what a plot of it would show."""

    def __init__(self, metrics: Metrics, *, name: str = "loss", most: int | None = None) -> None:
        request = watching(metrics, name=name, most=most)
        self.points: list[tuple[int, float]] = []
        self.resets = 0
        self.total = 0
        self._responses = metrics.servicer.WatchSeries(request, None)
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        async for response in self._responses:
            if response.reset:
                self.points = []
                self.resets += 1
            self.points += zip(response.steps, response.values, strict=True)
            self.total = response.total_points
            self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._news.clear()
            await self._news.wait()

    async def shows(self, points: list[tuple[int, float]]) -> None:
        await self.until(lambda: self.points == points)


def _losses(*steps: int) -> list[Report]:
    return [("training", step, {"loss": float(step)}) for step in steps]


def _points(*steps: int) -> list[tuple[int, float]]:
    return [(step, float(step)) for step in steps]


async def _send(metrics: Metrics, *steps: int, first: int = 0, run: int = 1, source: str = "rank0") -> None:
    request = metrics.request(blocks_of(_losses(*steps), first=first), first=first, run=run, source=source)
    await metrics.servicer.IngestReports(request, None)


@pytest.fixture
def patient(shared: Metrics) -> Metrics:
    """A service whose watches only look when they are told."""
    fresh = shared.anew()
    pace = PollIntervals(recheck=3600, heartbeat=3600)
    fresh.servicer = Servicer(fresh.database, limits=Limits(), clock=ManualClock(), pace=pace)
    return fresh


def _run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_watch_gives_what_is_there_and_then_only_what_comes(patient: Metrics) -> None:
    async def scenario() -> None:
        await _send(patient, 1, 2)
        plot = _Plot(patient)
        await plot.shows(_points(1, 2))
        for step in range(3, 9):
            await _send(patient, step, first=step - 1)
            await plot.shows(_points(*range(1, step + 1)))
        assert (plot.resets, plot.total) == (1, 8)
        plot.task.cancel()

    _run(scenario)


def test_a_trial_may_be_watched_before_it_reports(patient: Metrics) -> None:
    async def scenario() -> None:
        plot = _Plot(patient)
        await plot.until(lambda: plot.resets == 1)
        await _send(patient, 5)
        await plot.shows(_points(5))
        plot.task.cancel()

    _run(scenario)


def test_points_between_older_ones_and_a_later_run_are_shown_where_they_belong(patient: Metrics) -> None:
    async def scenario() -> None:
        await _send(patient, 1, 2, 6, 7)
        plot = _Plot(patient)
        await plot.shows(_points(1, 2, 6, 7))
        await _send(patient, 4, source="rank1")
        await plot.shows(_points(1, 2, 4, 6, 7))
        # A second run that goes back to step 3 supersedes what the first reported from there on.
        await _send(patient, 3, run=2)
        await plot.shows(_points(1, 2, 3))
        await _send(patient, 4, run=2, first=1)
        await plot.shows(_points(1, 2, 3, 4))
        # Late data of the superseded run is accepted and changes nothing that counts.
        await _send(patient, 8, first=4)
        await _send(patient, 5, run=2, first=2)
        await plot.shows(_points(1, 2, 3, 4, 5))
        plot.task.cancel()

    _run(scenario)


def test_a_long_watch_never_holds_many_more_points_than_were_asked_for(patient: Metrics) -> None:
    async def scenario() -> None:
        plot = _Plot(patient, most=10)
        for number in range(30):
            await _send(patient, *range(number * 5, number * 5 + 5), first=number * 5)
            await plot.until(lambda number=number: plot.total == number * 5 + 5)  # type: ignore[misc]
            assert len(plot.points) <= 20
        assert plot.points[0] == (0, 0.0)
        assert plot.points[-1] == (149, 149.0)
        plot.task.cancel()

    _run(scenario)


def test_other_metrics_of_the_trial_say_nothing(patient: Metrics) -> None:
    async def scenario() -> None:
        await _send(patient, 1)
        plot = _Plot(patient)
        await plot.shows(_points(1))
        other = patient.request(blocks_of([("training", 2, {"accuracy": 0.5})], first=1), first=1)
        await patient.servicer.IngestReports(other, None)
        await _send(patient, 3, first=2)
        await plot.shows(_points(1, 3))
        assert plot.resets == 1
        plot.task.cancel()

    _run(scenario)


def test_a_quiet_watch_shows_that_it_lives(shared: Metrics) -> None:
    fresh, clock = shared.anew(), ManualClock()
    pace = PollIntervals(recheck=0.01, heartbeat=10.0)
    fresh.servicer = Servicer(fresh.database, limits=Limits(), clock=clock, pace=pace)

    async def scenario() -> None:
        responses = fresh.servicer.WatchSeries(watching(fresh), None)
        assert (await anext(responses)).reset
        clock.advance(11)
        quiet = await anext(responses)
        assert (quiet.key, quiet.reset, list(quiet.steps)) == ("", False, [])

    _run(scenario)


def test_a_service_that_stops_ends_its_watches_with_an_error(patient: Metrics) -> None:
    async def scenario() -> None:
        plot = _Plot(patient)
        await plot.until(lambda: plot.resets == 1)
        patient.servicer.notifier.close()
        with pytest.raises(UnavailableError, match="watch again"):
            await plot.task

    _run(scenario)


def test_too_few_points_are_refused(patient: Metrics) -> None:
    async def scenario() -> None:
        request = watching(patient, most=2)
        with pytest.raises(InvalidArgumentError, match="max_points is 2"):
            await anext(patient.servicer.WatchSeries(request, None))

    _run(scenario)


def test_many_series_of_several_trials_are_watched_in_one_stream(patient: Metrics) -> None:
    trials = [patient.trial, *(str(uuid.uuid4()) for _ in range(29))]
    request = api.WatchSeriesRequest()
    for number, trial in enumerate(trials):
        for name in ("loss", "lr"):
            request.subscriptions.add(
                key=f"{number} {name}", trial_id=trial, group="training", name=name, max_points=4
            )
    shown: dict[str, list[float]] = {}

    async def send(trial: str, steps: range) -> None:
        rows = [("training", step, {"loss": float(step), "lr": -float(step)}) for step in steps]
        batch = patient.request(blocks_of(rows, first=steps.start), first=steps.start, trial=trial)
        await patient.servicer.IngestReports(batch, None)

    async def collect(arrived: asyncio.Event) -> None:
        async for response in patient.servicer.WatchSeries(request, None):
            shown[response.key] = [*([] if response.reset else shown[response.key]), *response.values]
            arrived.set()

    async def scenario() -> None:
        arrived = asyncio.Event()
        await send(trials[0], range(100))
        plots = asyncio.create_task(collect(arrived))
        while len(shown) < 60:
            await arrived.wait()
            arrived.clear()
        assert shown["0 loss"] == [0, 1, 98, 99]
        assert [key for key, values in shown.items() if values] == ["0 loss", "0 lr"]
        await send(trials[17], range(2))
        while not (shown["17 loss"] and shown["17 lr"]):
            await arrived.wait()
            arrived.clear()
        assert (shown["17 loss"], shown["17 lr"]) == ([0, 1], [0, -1])
        plots.cancel()

    _run(scenario)


def test_two_series_with_one_key_are_refused(patient: Metrics) -> None:
    async def scenario() -> None:
        request = watching(patient)
        request.subscriptions.append(request.subscriptions[0])
        with pytest.raises(InvalidArgumentError, match="'plot' comes twice"):
            await anext(patient.servicer.WatchSeries(request, None))

    _run(scenario)
